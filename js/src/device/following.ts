/** What every device is made of: the release that it follows, and what its owner has agreed to. */

import { continues, isSame } from "../shared/amendments.js";
import * as check from "../shared/check.js";
import { wrong } from "../shared/check.js";
import { DeviceError, ForkError, must } from "../shared/errors.js";
import { type Experiment, fingerprint, TARGET } from "../shared/experiment.js";
import type { Release } from "../shared/release.js";
import { realText, repr, shortText } from "../shared/values.js";
import { findBin } from "../shared/walk.js";
import type { Coins } from "./coins.js";
import type { AnyLedger } from "./ledger.js";
import type { Secret } from "./method.js";
import { choose } from "./privatise.js";

/** What the owner of a device decides. */
export interface Agreement {
  /** The population that the person belongs to; the target, if none is named. */
  population?: string;
  /** The most ε that one report may spend, whatever a release asks for. */
  mostEpsilon?: number;
  /** WEAKER PRIVACY. Agree to experiments in which the arm of each person is public. */
  publicArms?: boolean;
}

export class Following {
  protected readonly population: number;
  readonly #publicArms: boolean;

  constructor(
    public release: Release,
    protected readonly ledger: AnyLedger,
    { population = TARGET, mostEpsilon, publicArms = false }: Agreement,
  ) {
    const { populations } = release.experiment;
    const names = populations.map((each) => each.name);
    this.population = names.indexOf(population);
    const own = populations[this.population];
    if (!own) throw wrong("population", `be one of ${repr(names)}`, repr(population));
    if (mostEpsilon !== undefined && own.epsilon > check.epsilon(mostEpsilon, "most_epsilon")) {
      const rule = `ask for at most epsilon = ${shortText(mostEpsilon)} a report`;
      throw new DeviceError(must("a release", rule, realText(own.epsilon)));
    }
    this.#publicArms = publicArms;
  }

  /** Use a newer release from the next choice on. */
  follow(release: Release): void {
    this.check(release);
    this.release = release;
  }

  /** Raise unless a release is of the same experiment, with all amendments seen so far. */
  check({ experiment: now }: Release): void {
    const before = this.release.experiment;
    if (!isSame(now, before)) {
      const rule = `be of experiment ${fingerprint(before)}`;
      throw new DeviceError(must("a release to follow", rule, fingerprint(now)));
    }
    if (!continues(now, before)) {
      throw new ForkError(
        "a release to follow must have all amendments that this device has seen; it has others, or fewer",
      );
    }
  }

  /** Choose an arm for a point of [0, 1]^d. */
  protected chosen(point: number[], coins: Coins, earlier?: number[]): Secret {
    const { release } = this;
    const policy = findBin(release, point);
    if (release.experiment.settings.publicArms && !this.#publicArms) {
      throw new DeviceError(
        "an experiment must keep arms private, unless the device agrees to public_arms; got one in which they" +
          " are public",
      );
    }
    const [arm, ranking] = choose(release, policy, coins, earlier);
    return { point, policy, arm, ranking, logged: false };
  }
}

/** Return a point that stands for somebody: a null report does not depend on who it is. */
export const anybody = ({ axes }: Experiment): number[] => axes.map(() => 0.5);
