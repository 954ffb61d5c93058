/**
 * The coins of a choice: which arm on offer a person gets.
 *
 * Where arms are private, the arm is drawn anew for each choice, or it stays until the policy of the
 * person's bin changes: it then follows from one random key of the device, by HMAC-SHA256. A public
 * ranking is drawn anew for each report: one that stayed would tie a person's reports together.
 */

import { bigEndian, utf8 } from "../shared/bytes.js";
import { hmac } from "../shared/hashes.js";
import type { BinPolicy } from "../shared/release.js";
import { real, repr, tupleText } from "../shared/values.js";
import { bits } from "./randomness.js";

/** Of one draw of an arm. */
export const BITS = 53;
export const KEY_BYTES = 32;

/** Return the 53 random bits that draw an arm of a bin. */
export type Coins = (policy: BinPolicy) => number;

export const freshCoins: Coins = () => Number(bits(BITS));

/** The same person keeps the same arm until the policy of their bin changes. */
export const stickyCoins =
  (key: Uint8Array): Coins =>
  ({ path, arms, propensities }) => {
    const text = `(${repr(path)}, ${tupleText(arms)}, ${tupleText(propensities.map(real))})`;
    return Number(bigEndian(hmac(key, utf8(text)).slice(0, 8)) >> BigInt(64 - BITS));
  };
