/**
 * The operating system's randomness, by `crypto.getRandomValues`. No seed can be set.
 *
 * All that a device draws for a person comes from here, as whole numbers: a draw below a limit is
 * repeated until it is below, so that no number is more likely than another.
 */

import { bigEndian } from "../shared/bytes.js";
import { DeviceError } from "../shared/errors.js";
import { bitLength } from "../shared/exact.js";

/** Where random bytes come from. A test puts something else in its place. */
export const source = {
  bytes(count: number): Uint8Array {
    const crypto = globalThis.crypto;
    if (!crypto?.getRandomValues) {
      throw new DeviceError("a device must have crypto.getRandomValues; there is none here: nothing was drawn");
    }
    return crypto.getRandomValues(new Uint8Array(count));
  },
};

export const randomBytes = (count: number): Uint8Array => source.bytes(count);

/** Return each of 0, …, 2^count − 1 with the same probability. */
export function bits(count: number): bigint {
  const length = (count + 7) >> 3;
  return bigEndian(source.bytes(length)) >> BigInt(8 * length - count);
}

/** Return each of 0, …, limit − 1 with the same probability. */
export function belowBig(limit: bigint): bigint {
  const count = bitLength(limit);
  let drawn = bits(count);
  while (drawn >= limit) drawn = bits(count);
  return drawn;
}

export const below = (limit: number): number => Number(belowBig(BigInt(limit)));

/** Return true with probability numerator/denominator. */
export const chance = (numerator: bigint, denominator: bigint): boolean => belowBig(denominator) < numerator;

/** Return true with probability numerator/2^count, always by a draw of that many bits. */
export const chanceOfBits = (numerator: bigint, count: number): boolean => bits(count) < numerator;
