/** The device: choose an arm for a person, and report the outcome under ε-LDP. */

import { DeviceError, must } from "../shared/errors.js";
import type { Release } from "../shared/release.js";
import { repr } from "../shared/values.js";
import { findBin } from "../shared/walk.js";
import type { Report } from "../shared/wire.js";
import { freshCoins } from "./coins.js";
import { type Context, encode } from "./encode.js";
import { type Agreement, anybody, Following } from "./following.js";
import { type AnyLedger, OneReport } from "./ledger.js";
import type { Secret } from "./method.js";
import { outcomeOf, privatise, type Reward } from "./privatise.js";
import { randomBytes } from "./randomness.js";

interface Choice {
  release: Release;
  secret: Secret;
  /** Whether the context was usable. If not, there is an arm for nobody and nothing to tell. */
  fits: boolean;
}

/**
 * One person's side. Raw data goes in; only a report comes out.
 *
 * It has one choice at a time, in memory: `report` is about the last `choose`. A `Client` keeps any
 * number of them. Without a ledger, the device reports once and then refuses.
 */
export class Device extends Following {
  #pending: Choice | undefined;
  /** The ranking of the next report: if each choice had its own, the app could pick one. */
  #ranking: number[] | undefined;

  constructor(release: Release, { ledger = new OneReport(), ...agreed }: Agreement & { ledger?: AnyLedger } = {}) {
    super(release, ledger, agreed);
  }

  /** Return the arm for this person, drawn from the arms on offer in the person's bin. */
  choose(context: Context): string {
    const { release } = this;
    const { experiment } = release;
    // Forgotten first: if this context is refused, no report may be about an earlier one.
    this.#pending = undefined;
    const pend = (point: number[], fits: boolean) => {
      const secret = this.chosen(point, freshCoins, this.#ranking);
      this.#ranking = secret.ranking.length ? secret.ranking : undefined;
      this.#pending = { release, secret, fits };
      return experiment.arms[secret.arm] as string;
    };
    let point: number[];
    try {
      point = encode(experiment, context);
    } catch (error) {
      // Whoever has no usable context can still report that there is nothing to tell.
      pend(anybody(experiment), false);
      throw error;
    }
    return pend(point, true);
  }

  /** Return the ε-LDP report on the outcome of the last choice, and spend its ε. */
  async report({ reward }: { reward: Reward }): Promise<Report> {
    outcomeOf(this.release.experiment, reward); // an outcome that cannot be used costs nothing
    const choice = this.#pending;
    if (!choice) {
      throw new DeviceError("choose must come before each report; nothing was chosen since the last one");
    }
    if (reward !== null && !choice.fits) {
      throw new DeviceError(
        "choose must come before each report; the last context was refused: the reward of such a report must" +
          " be None",
      );
    }
    // Gone before the report is made: whatever happens now, there is no second report on it.
    this.#pending = undefined;
    const report = await this.#privatise(choice.release, choice.secret, reward);
    this.#ranking = undefined;
    return report;
  }

  /** Return the ε-LDP report on a logged row, whose arm some other policy chose. */
  async reportLogged(context: Context, { arm, reward }: { arm: string; reward: Reward }): Promise<Report> {
    const { release } = this;
    const { arms } = release.experiment;
    const number = arms.indexOf(arm);
    if (number < 0) throw new DeviceError(must("a logged arm", `be one of ${repr(arms)}`, "another name"));
    return this.#logged(release, encode(release.experiment, context), number, reward);
  }

  /** Return the ε-LDP report on a logged row that does not fit the experiment. */
  async reportNothingLogged(): Promise<Report> {
    return this.#logged(this.release, anybody(this.release.experiment), 0, null);
  }

  #logged(release: Release, point: number[], arm: number, reward: Reward): Promise<Report> {
    const policy = findBin(release, point);
    return this.#privatise(release, { point, policy, arm, logged: true, ranking: [] }, reward);
  }

  async #privatise(release: Release, secret: Secret, reward: Reward): Promise<Report> {
    const { state } = release.experiment;
    if (state !== "running") throw new DeviceError(must("an experiment", "be running to be reported to", state));
    const { population, ledger } = this;
    const answer = await privatise(release, secret, { population, reward, ledger });
    return { release: release.id, population, nonce: randomBytes(16), ...answer };
  }
}

