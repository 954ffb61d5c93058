/**
 * The one door: the only functions through which anything about a person leaves the device. What they
 * return is ε-LDP in all that is private about the person. The proof is in docs/explanation.
 *
 * `privatise` is for an outcome that is known. For one that is yet to come, `prepare` makes all of the
 * answer but that, and `finish` the rest.
 */

import { DeviceError } from "../shared/errors.js";
import { type Experiment, fingerprint } from "../shared/experiment.js";
import type { BinPolicy, Release } from "../shared/release.js";
import { outcome } from "../shared/reward.js";
import type { Coins } from "./coins.js";
import type { AnyLedger } from "./ledger.js";
import { drawArm, type Prepared, type RandomisedAnswer, type Secret, type Spend } from "./method.js";
import * as whisper from "./whisper/index.js";

/** A reward as the experiment counts rewards; null: no outcome came. */
export type Reward = number | boolean | null;

/** Return the outcome as a number in [0, 1], or null; raise RewardError if it is neither. */
export function outcomeOf({ rewards }: Experiment, reward: Reward): number | null {
  const number = outcome(rewards, reward ?? rewards.low);
  return reward === null ? null : number;
}

/** Draw an arm by the policy of a bin; return it with the public ranking, if any. */
export const choose = (
  release: Release,
  policy: BinPolicy,
  coins: Coins,
  ranking?: number[],
): [number, number[]] =>
  isWhisper(release.experiment)
    ? whisper.choose(release, policy, coins, ranking)
    : [drawArm(release, policy, coins), []];

/** Return the ε-LDP answer of one person, and spend ε. */
export async function privatise(
  release: Release,
  secret: Secret,
  { population, reward, ledger }: { population: number; reward: Reward; ledger: AnyLedger },
): Promise<RandomisedAnswer> {
  const known = outcomeOf(release.experiment, reward);
  if (!isWhisper(release.experiment)) return withoutNoise(release);
  return whisper.privatise(release, secret, population, known, spending(release, population, ledger));
}

/** Return the answer of one person but for the outcome, and spend its ε. */
export async function prepare(
  release: Release,
  secret: Secret,
  population: number,
  ledger: AnyLedger,
): Promise<Prepared> {
  if (!isWhisper(release.experiment)) return { ...withoutNoise(release), kept: new Uint8Array() };
  return whisper.prepare(release, secret, population, spending(release, population, ledger));
}

/** Return the payload of a prepared answer; a reward of null tells nothing. */
export function finish(experiment: Experiment, kept: Uint8Array, reward: Reward): Uint8Array | null {
  const known = outcomeOf(experiment, reward);
  return isWhisper(experiment) ? whisper.finish(kept, known) : null;
}

const isWhisper = ({ settings }: Experiment): boolean => settings.name === "whisper";

/** A report with Laplace noise: nothing where nothing is contested, and otherwise not from here. */
function withoutNoise({ contested }: Release): RandomisedAnswer {
  if (contested.length) {
    throw new DeviceError(
      "the Laplace mechanism of ldpmab needs OpenDP, and there is none for JavaScript: report with whisper," +
        " or from Python",
    );
  }
  return { payload: null, question: 0, ranking: [] };
}

function spending(release: Release, population: number, ledger: AnyLedger): Spend {
  const { experiment, version } = release;
  return () =>
    ledger.spend(experiment.populations[population]?.epsilon as number, {
      experiment: fingerprint(experiment),
      name: experiment.name,
      release: version,
    });
}
