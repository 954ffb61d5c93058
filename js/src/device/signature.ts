/**
 * Ed25519 (RFC 8032), verification only. Key, signature and message are public, so that the time this
 * takes can leak nothing. This module must never sign.
 *
 * WebCrypto's own Ed25519 is missing in many browsers, and takes keys of small order in some. This is
 * as strict as the Python device: S < L, only canonical encodings, no key of small order (under such a
 * key one signature can fit many messages), and [S]B = R + [k]A without the cofactor.
 */

import { fromLittleEndian, hex, joined, littleEndian } from "../shared/bytes.js";
import { sha512 } from "../shared/hashes.js";

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;

const mod = (number: bigint): bigint => ((number % P) + P) % P;

function power(base: bigint, exponent: bigint): bigint {
  let [square, product] = [base, 1n];
  for (let left = exponent; left; left >>= 1n) {
    if (left & 1n) product = (product * square) % P;
    square = (square * square) % P;
  }
  return product;
}

const inverse = (number: bigint): bigint => power(number, P - 2n);
const D = mod(-121665n * inverse(121666n));
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n);

/** Extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x·y = T/Z. */
type Point = [bigint, bigint, bigint, bigint];

/** Return whether the key's owner has signed the message. */
export function verify(key: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  const point = keyPoint(key);
  const scalar = fromLittleEndian(signature.slice(32));
  if (signature.length !== 64 || !point || scalar >= L) return false;
  const first = signature.slice(0, 32);
  const challenge = fromLittleEndian(sha512(joined(first, key, message))) % L;
  const [x, y, z, t] = point;
  // R = [S]B + [k](-A), compared as bytes: an R that is not canonical equals nothing.
  return hex(encode(sumOfProducts(scalar, BASE, challenge, [P - x, y, z, P - t]))) === hex(first);
}

/** Return whether these bytes can be trusted as a public key. */
export const isKey = (key: Uint8Array): boolean => keyPoint(key) !== undefined;

/** Decode a key; refuse one of small order, for which [8]A is the neutral element. */
function keyPoint(key: Uint8Array): Point | undefined {
  const point = key.length === 32 ? decode(fromLittleEndian(key)) : undefined;
  if (!point) return undefined;
  let eight = point;
  for (let i = 0; i < 3; i++) eight = add(eight, eight);
  return eight[0] === 0n && eight[1] === eight[2] ? undefined : point;
}

/** Decode a point by RFC 8032, 5.1.3. */
function decode(number: bigint): Point | undefined {
  const sign = number >> 255n;
  const y = number & (2n ** 255n - 1n);
  if (y >= P) return undefined;
  const [u, v] = [mod(y * y - 1n), mod(D * y * y + 1n)];
  let x = (u * power(v, 3n) * power((u * power(v, 7n)) % P, (P - 5n) / 8n)) % P;
  if (mod(v * x * x + u) === 0n) x = (x * ROOT_OF_MINUS_ONE) % P;
  if (mod(v * x * x - u) !== 0n || (x === 0n && sign)) return undefined;
  if ((x & 1n) !== sign) x = P - x;
  return [x, y, 1n, (x * y) % P];
}

function encode([x, y, z]: Point): Uint8Array {
  const shrink = inverse(z);
  const parity = ((x * shrink) % P) & 1n;
  return littleEndian(((y * shrink) % P) | (parity << 255n), 32);
}

/** Add two points (RFC 8032, 5.1.4). The formula is complete: there are no special cases. */
function add([x, y, z, t]: Point, [x2, y2, z2, t2]: Point): Point {
  const a = mod((y - x) * (y2 - x2));
  const b = ((y + x) * (y2 + x2)) % P;
  const c = (2n * D * t * t2) % P;
  const d = (2n * z * z2) % P;
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), (g * h) % P, mod(f * g), mod(e * h)];
}

/** Return [m]one + [n]other, both together, from the highest bit down. */
function sumOfProducts(m: bigint, one: Point, n: bigint, other: Point): Point {
  const both = add(one, other);
  let total: Point = [0n, 1n, 1n, 0n];
  for (let place = 252n; place >= 0n; place--) {
    total = add(total, total);
    const [first, second] = [(m >> place) & 1n, (n >> place) & 1n];
    if (first || second) total = add(total, first ? (second ? both : one) : other);
  }
  return total;
}

/** The point with y = 4/5 and an even x. */
const BASE = decode((4n * inverse(5n)) % P) as Point;
