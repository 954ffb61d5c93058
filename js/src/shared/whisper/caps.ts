/** Caps: an added arm that only few people of a bin may get while it is compared there. */

import type { Experiment } from "../experiment.js";

export const NO_CAP = 0.5;

export const capsOf = ({ arms, caps }: Experiment): number[] => arms.map((_, arm) => caps.get(arm) ?? NO_CAP);

/** Return how many people get the first of two arms that are compared. */
export function shareOf(caps: number[], arm: number, other: number): number {
  const [own, rival] = [caps[arm] as number, caps[other] as number];
  if (own < NO_CAP && rival >= NO_CAP) return own;
  return rival < NO_CAP && own >= NO_CAP ? 1 - rival : NO_CAP;
}

/** Return how many of the people with an arm tell of their outcome; share: who get that arm. */
export const toldShareOfArm = (share: number): number => (share <= NO_CAP ? 1 : (1 - share) / share);

/** Say whether a best arm is capped, and some other live arm is not: it is compared with that. */
export const needsUncappedRival = (live: number[], caps: number[], best: number): boolean =>
  (caps[best] as number) < NO_CAP && live.some((arm) => (caps[arm] as number) >= NO_CAP);
