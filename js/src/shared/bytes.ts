/** Bytes as text and back, and whole numbers in bytes. */

const encoder = new TextEncoder();

/** Return the bytes of a text in UTF-8. */
export const utf8 = (text: string): Uint8Array => encoder.encode(text);

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hex(bytes: Uint8Array): string {
  let digits = "";
  for (const each of bytes) digits += DIGITS[each];
  return digits;
}

export function unhex(digits: string): Uint8Array {
  const bytes = new Uint8Array(digits.length >> 1);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

export function joined(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Return a whole number as so many little-endian bytes. */
export function littleEndian(number: bigint | number, length: number): Uint8Array {
  const digits = length ? number.toString(16).padStart(2 * length, "0") : "";
  return unhex(digits).reverse();
}

/** Read big-endian bytes as a whole number. */
export const bigEndian = (bytes: Uint8Array): bigint => BigInt(`0x${hex(bytes) || 0}`);

/** Read little-endian bytes as a whole number. */
export const fromLittleEndian = (bytes: Uint8Array): bigint => bigEndian(Uint8Array.from(bytes).reverse());
