/** The axes of an experiment as questions see them: levels without order, and patterns of signs. */

import type { Experiment } from "../experiment.js";

/** Return the first pattern of each axis, and in the end how many there are; 0 is about no axis. */
export function patternsOf(experiment: Experiment): number[] {
  const firsts = [1];
  for (const count of experiment.levels) firsts.push((firsts[firsts.length - 1] as number) + rowsFor(count));
  return firsts;
}

/** Return how many patterns an axis has: as many as the next power of two has rows. */
const rowsFor = (levels: number): number => (levels ? 2 ** (32 - Math.clz32(levels - 1)) : 1);

/** Return ±1, an entry of the Hadamard matrix: minus for an odd number of common bits. */
export function patternSign(row: number, level: number): number {
  let bits = row & level;
  for (const by of [8, 4, 2, 1]) bits ^= bits >> by;
  return 1 - 2 * (bits & 1);
}
