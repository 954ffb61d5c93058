/** What the device needs of a method: how an arm is drawn, and how an outcome is privatised. */

import { roundEven } from "../shared/exact.js";
import { type BinPolicy, once, type Release } from "../shared/release.js";
import type { Coins } from "./coins.js";

/** All that is private about one person, but for `logged` and `ranking`. */
export interface Secret {
  /** The context in [0, 1]^d, and the bin it is in. */
  point: number[];
  policy: BinPolicy;
  arm: number;
  /** Whether some other policy chose the arm. */
  logged: boolean;
  ranking: number[];
}

/** What leaves the device: public coins and a randomised payload; null is an empty list of numbers. */
export interface RandomisedAnswer {
  payload: Uint8Array | null;
  question: number;
  ranking: number[];
}

/** An answer whose outcome is yet to come; kept: what is needed to finish it. */
export interface Prepared {
  kept: Uint8Array;
  question: number;
  ranking: number[];
}

/** Spends the ε of one report: called when the mechanism is ready, just before it draws. */
export type Spend = () => Promise<void> | void;

/** Draw one of the arms on offer by its propensity, to a part in 2^53. Everybody makes one draw. */
export function drawArm(release: Release, policy: BinPolicy, coins: Coins): number {
  const bounds = (once(release, "bounds", () => boundsOf(release)).get(policy.path) ?? []) as number[];
  const drawn = coins(policy);
  return policy.arms[bounds.filter((bound) => bound <= drawn).length] as number;
}

/** Return where the draws for each arm but the last end, worked out for all bins at once. */
const boundsOf = (release: Release): Map<string, number[]> =>
  new Map(
    release.bins.map(({ path, propensities }) => {
      let sum = 0;
      const sums = propensities.map((each) => (sum += each));
      return [path, sums.slice(0, -1).map((each) => roundEven(2 ** 53 * (each / sum)))];
    }),
  );
