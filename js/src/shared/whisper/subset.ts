/**
 * ε → the constants of signed subset selection, and its sets as bytes, in whole numbers only.
 * docs/explanation/mechanism.md derives and proves them.
 */

import { bitLength, GRID, onGrid, quotient } from "../exact.js";
import { fromLittleEndian, littleEndian } from "../bytes.js";

const UNIT = 1n << 64n;
const GUARD_BITS = 192n;

const keptOdds = new Map<number, bigint>();

/** Return A with 1 < A/2^64 ≤ e^ε for certain: ⌊2^64·e^min(ε, 64)⌋. */
export function odds(epsilon: number): bigint {
  const known = keptOdds.get(epsilon);
  if (known !== undefined) return known;
  // e^x = Σ x^k/k!. Each term is rounded down and the tail left out: the sum cannot exceed the truth.
  const numerator = onGrid(Math.min(epsilon, 64));
  let term = UNIT << GUARD_BITS;
  let total = term;
  for (let count = 1n; term; count++) {
    term = (term * numerator) / (count << GRID);
    total += term;
  }
  keptOdds.set(epsilon, total >> GUARD_BITS);
  return total >> GUARD_BITS;
}

/** One mechanism: N cells, of which a set holds `size`; A and B are the weights of sets. */
export interface SignedSubset {
  cells: number;
  size: number;
  told: bigint;
  other: bigint;
}

/** Return the mechanism for ε and N, with the size that makes the variance least. */
export function signedSubset(epsilon: number, cells: number): SignedSubset {
  const told = odds(epsilon);
  const gap = told - UNIT;
  const full = 2n * BigInt(cells) * UNIT;
  const below = full / gap;
  const size = below * (below + 1n) * gap ** 2n > full ** 2n ? below : below + 1n;
  return { cells, size: size < cells ? Number(size) : cells, told, other: UNIT };
}

/** T = wA + (2N − w)B, the sum of all weights up to a factor. */
const total = ({ cells, size, told, other }: SignedSubset): bigint =>
  BigInt(size) * told + BigInt(2 * cells - size) * other;

/** The variance of value/β in a cell, from a person in another cell. */
export function noise(mechanism: SignedSubset): number {
  const { cells, size, told, other } = mechanism;
  const [sum, gap] = [total(mechanism), told - other];
  if (cells === 1) return quotient(sum ** 2n, BigInt(cells * size) * gap ** 2n);
  return quotient((sum - told - other) * sum, BigInt((cells - 1) * size) * gap ** 2n);
}

/** The mean of (value/β)² in the cell that the person is in. */
export const inside = (mechanism: SignedSubset): number => {
  const { size, told, other } = mechanism;
  return quotient((told + other) * total(mechanism), BigInt(size) * (told - other) ** 2n);
};

type Packing = "bits" | "symbols" | "digits";
const packings = new Map<string, [Packing, number]>();

const bytesFor = (numbers: bigint): number => (bitLength(numbers - 1n) + 7) >> 3;

/** Choose the shortest packing, and say how many bytes it takes; N and w alone decide. */
function packingOf({ cells, size }: SignedSubset): [Packing, number] {
  const key = `${cells} ${size}`;
  let found = packings.get(key);
  if (!found) {
    const symbols = bytesFor(BigInt(2 * cells) ** BigInt(size));
    const digits = bytesFor(3n ** BigInt(cells));
    found = symbols <= digits ? ["symbols", symbols] : ["digits", digits];
    if (size === cells) found = ["bits", (cells + 7) >> 3];
    packings.set(key, found);
  }
  return found;
}

/** Write a set, given as the value −1, 0 (not in the set) or +1 of each cell. */
export function pack(mechanism: SignedSubset, values: ArrayLike<number>): Uint8Array {
  const [packing, length] = packingOf(mechanism);
  const { cells } = mechanism;
  if (packing === "bits") {
    const bits = Array.from(values, (value) => Number(value > 0)).reverse().join("");
    return littleEndian(BigInt(`0b${bits}`), length);
  }
  const base = packing === "symbols" ? BigInt(2 * cells) : 3n;
  let number = 0n;
  for (let cell = cells - 1; cell >= 0; cell--) {
    const value = values[cell] as number;
    if (packing === "digits") number = number * base + BigInt(value && (value > 0 ? 2 : 1));
    else if (value) number = number * base + BigInt(2 * cell + Number(value > 0));
  }
  return littleEndian(number, length);
}

/** Read the value −1, 0 or +1 of each cell in bytes that `pack` wrote. */
export function unpack(mechanism: SignedSubset, data: Uint8Array): number[] {
  const [packing] = packingOf(mechanism);
  const { cells, size } = mechanism;
  let number = fromLittleEndian(data);
  const values = new Array<number>(cells).fill(0);
  const base = { bits: 2n, symbols: BigInt(2 * cells), digits: 3n }[packing];
  for (let place = 0; place < (packing === "symbols" ? size : cells); place++) {
    const digit = Number(number % base);
    number /= base;
    if (packing === "bits") values[place] = digit ? 1 : -1;
    else if (packing === "symbols") values[digit >> 1] = digit & 1 ? 1 : -1;
    else values[place] = [0, -1, 1][digit] as number;
  }
  return values;
}
