/**
 * Signed subset selection: one person's (cell, value), or nothing, as a random set of cells.
 * docs/explanation/mechanism.md proves that it is ε-LDP; src/sottovoce/device/whisper/subset.py has
 * the proof of this very sampler.
 *
 * It draws a uniform set of all cells and puts the person's own cell right. Every coin and every pick
 * is drawn for everybody, in the same order and with public limits. It draws whole numbers only, so
 * that no data can leak through the rounding of floating-point numbers.
 */

import { onGrid } from "../../shared/exact.js";
import { pack, type SignedSubset, unpack } from "../../shared/whisper/subset.js";
import { belowBig, bits, chance, chanceOfBits } from "../randomness.js";

/** One draw for many picks is faster than one for each, unless the numbers become too long. */
const PICKS_AT_ONCE = 64;

/** Every double in [−1, 1] is a whole multiple of 2^−1126: as the Python device draws. */
const GRID = 1126;

/** Return a packed random set that is ε-LDP in (cell, value). value: in [−1, 1]. */
export function whisper(mechanism: SignedSubset, cell: number | undefined, value: number): Uint8Array {
  const { cells, size } = mechanism;
  const at = cell ?? 0;
  const truth = BigInt(size) * mechanism.told;
  const rest = BigInt(2 * cells - size) * mechanism.other;
  const sign = [-1, 1][Number(roundedUp(value))] as number;
  const told = Number(chance(truth, truth + rest));
  const turned = Number(chance(BigInt(size), BigInt(2 * cells - size)));
  const { values, leaver, joiner } = uniformSet(cells, size);

  const here = values[at] as number;
  const wanted = [0, -sign, sign, sign][2 * told + turned] as number;
  const own = [wanted, here][Number(cell === undefined)] as number;
  // The cell itself if it is right; who leaves if it must come in; who joins if it must go out.
  const partner = [joiner, at, leaver][1 + Number(own !== 0) - Number(here !== 0)] as number;
  values[partner] = here;
  values[at] = own;
  return pack(mechanism, values);
}

/** Return the same cells with all signs turned: a set for a value becomes one for its opposite. */
export const turned = (mechanism: SignedSubset, packed: Uint8Array): Uint8Array =>
  pack(
    mechanism,
    unpack(mechanism, packed).map((value) => -value),
  );

/** Round a value in [−1, 1] at random to a sign; say whether it is plus. */
export const roundedUp = (value: number): boolean =>
  chanceOfBits((1n << BigInt(GRID)) + (onGrid(value) << BigInt(GRID - 1074)), GRID + 1);

/** Return each of the 2^size·C(cells, size) sets with the same probability, as values. */
function uniformSet(cells: number, size: number): { values: Int8Array; leaver: number; joiner: number } {
  const few = Math.min(size, cells - size);
  const order = pickedFirst(cells, few ? few + 1 : 0);
  // The first few are a uniform subset, in uniform order; the next one is any of the others.
  const [first, next] = [order[0] as number, order[few] as number];
  const small = size === few;
  const members = small ? order.slice(0, few) : order.slice(few);
  const signs = bits(size);
  const values = new Int8Array(cells);
  members.forEach((member, i) => {
    values[member] = (signs >> BigInt(size - 1 - i)) & 1n ? 1 : -1;
  });
  return small ? { values, leaver: first, joiner: next } : { values, leaver: next, joiner: first };
}

/** Return all cells, the first ones picked without replacement (Fisher and Yates). */
function pickedFirst(cells: number, picks: number): number[] {
  const order = Array.from({ length: cells }, (_, cell) => cell);
  for (let start = 0; start < picks; start += PICKS_AT_ONCE) {
    const stop = Math.min(start + PICKS_AT_ONCE, picks);
    let ways = 1n;
    for (let place = start; place < stop; place++) ways *= BigInt(cells - place);
    let number = belowBig(ways);
    for (let place = start; place < stop; place++) {
      const left = BigInt(cells - place);
      const pick = place + Number(number % left);
      number /= left;
      [order[place], order[pick]] = [order[pick] as number, order[place] as number];
    }
  }
  return order;
}
