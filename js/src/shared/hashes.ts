/**
 * SHA-256, SHA-512 (FIPS 180-4) and HMAC-SHA256 (RFC 2104).
 *
 * Written out, because `crypto.subtle` is missing on pages without TLS and in React Native, and can
 * only be awaited. What is hashed is public, but for the key of sticky arms, which a person's own
 * device alone sees; there are no tables that a key would look things up in.
 */

import { joined } from "./bytes.js";

const primes: bigint[] = [];
for (let n = 2n; primes.length < 80; n++) if (primes.every((p) => n % p)) primes.push(n);

/** Return the first 64 bits of the fraction of a root of n, degree 2 or 3. */
function fractionOfRoot(n: bigint, degree: bigint): bigint {
  let low = 0n;
  for (let bit = 1n << 70n; bit; bit >>= 1n) {
    if ((low + bit) ** degree <= n << (64n * degree)) low += bit;
  }
  return low & 0xffffffffffffffffn;
}

/** The constants as pairs of 32-bit words. The high words are the constants of SHA-256. */
const words = (numbers: bigint[]): Int32Array =>
  Int32Array.from(numbers.flatMap((n) => [Number(n >> 32n) | 0, Number(n & 0xffffffffn) | 0]));
const K = words(primes.map((p) => fractionOfRoot(p, 3n)));
const START = words(primes.slice(0, 8).map((p) => fractionOfRoot(p, 2n)));

function padded(message: Uint8Array, block: number): DataView {
  const length = Math.ceil((message.length + 1 + block / 8) / block) * block;
  const whole = new Uint8Array(length);
  whole.set(message);
  whole[message.length] = 0x80;
  const view = new DataView(whole.buffer);
  view.setUint32(length - 4, message.length * 8);
  view.setUint32(length - 8, Math.floor(message.length / 2 ** 29));
  return view;
}

function digest(state: Int32Array): Uint8Array {
  const bytes = new Uint8Array(state.length * 4);
  const view = new DataView(bytes.buffer);
  state.forEach((word, i) => view.setInt32(4 * i, word));
  return bytes;
}

export function sha256(message: Uint8Array): Uint8Array {
  const view = padded(message, 64);
  const state = START.filter((_, i) => i % 2 === 0);
  const w = new Int32Array(64);
  const turn = (x: number, by: number) => (x >>> by) | (x << (32 - by));
  const at = (i: number) => w[i] as number;
  for (let start = 0; start < view.byteLength; start += 64) {
    for (let i = 0; i < 64; i++) {
      const near = at(i - 2);
      const far = at(i - 15);
      w[i] =
        i < 16
          ? view.getInt32(start + 4 * i)
          : (turn(near, 17) ^ turn(near, 19) ^ (near >>> 10)) +
            at(i - 7) +
            (turn(far, 7) ^ turn(far, 18) ^ (far >>> 3)) +
            at(i - 16);
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as number[] as [
      number, number, number, number, number, number, number, number,
    ];
    for (let i = 0; i < 64; i++) {
      const one =
        h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + (K[2 * i] as number) + at(i);
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => {
      state[i] = (state[i] as number) + word;
    });
  }
  return digest(state);
}

export function sha512(message: Uint8Array): Uint8Array {
  const view = padded(message, 128);
  const state = START.slice();
  const w = new Int32Array(160);
  const v = new Int32Array(16);
  let high = 0;
  let low = 0;
  /** Add a pair of words to (high, low). */
  const add = (h: number, l: number) => {
    const sum = (low >>> 0) + (l >>> 0);
    low = sum | 0;
    high = (high + h + (sum > 0xffffffff ? 1 : 0)) | 0;
  };
  /** Add the exclusive or of a pair turned, or in the last case shifted, by three numbers of bits. */
  const mix = (list: Int32Array, i: number, by: number[], shifts = 0) => {
    let [h, l] = [0, 0];
    by.forEach((bits, place) => {
      let [x, y] = [list[i] as number, list[i + 1] as number];
      const wraps = !(shifts && place === 2);
      if (bits > 31) [x, y] = [y, x];
      const n = bits & 31;
      h ^= (x >>> n) | (wraps ? y << (32 - n) : 0);
      l ^= (y >>> n) | (x << (32 - n));
    });
    add(h, l);
  };
  for (let start = 0; start < view.byteLength; start += 128) {
    for (let i = 0; i < 160; i += 2) {
      if (i < 32) {
        w[i] = view.getInt32(start + 4 * i);
        w[i + 1] = view.getInt32(start + 4 * i + 4);
        continue;
      }
      high = low = 0;
      mix(w, i - 4, [19, 61, 6], 1);
      add(w[i - 14] as number, w[i - 13] as number);
      mix(w, i - 30, [1, 8, 7], 1);
      add(w[i - 32] as number, w[i - 31] as number);
      w[i] = high;
      w[i + 1] = low;
    }
    v.set(state);
    for (let i = 0; i < 160; i += 2) {
      const [a, al, b, bl, c, cl, , , e, el, f, fl, g, gl] = v as unknown as number[] as [
        number, number, number, number, number, number, number, number, number, number, number, number,
        number, number,
      ];
      high = v[14] as number;
      low = v[15] as number;
      mix(v, 8, [14, 18, 41]);
      add((e & f) ^ (~e & g), (el & fl) ^ (~el & gl));
      add(K[i] as number, K[i + 1] as number);
      add(w[i] as number, w[i + 1] as number);
      const [h, l] = [high, low];
      mix(v, 0, [28, 34, 39]);
      add((a & b) ^ (a & c) ^ (b & c), (al & bl) ^ (al & cl) ^ (bl & cl));
      const [first, second] = [high, low];
      high = v[6] as number;
      low = v[7] as number;
      add(h, l);
      v.copyWithin(2, 0, 14);
      v[8] = high;
      v[9] = low;
      v[0] = first;
      v[1] = second;
    }
    for (let i = 0; i < 16; i += 2) {
      high = state[i] as number;
      low = state[i + 1] as number;
      add(v[i] as number, v[i + 1] as number);
      state[i] = high;
      state[i + 1] = low;
    }
  }
  return digest(state);
}

/** Return HMAC-SHA256 for a key of at most 64 bytes. */
export function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  const pad = (with_: number) => Uint8Array.from({ length: 64 }, (_, i) => (key[i] ?? 0) ^ with_);
  return sha256(joined(pad(0x5c), sha256(joined(pad(0x36), message))));
}
