/** A signed release, and the chain that ties it to all releases before it. */

import { hex, joined, unhex, utf8 } from "./bytes.js";
import { malformed, WireError } from "./errors.js";
import { sha256 } from "./hashes.js";
import { canonical, isText, table } from "./values.js";
import { hexadecimal, notCanonical, tableFromJson, WIRE_VERSION } from "./wire.js";

/** How many releases one block of the chain covers. */
export const BLOCK = 256;

/** What a server publishes. Any cache may carry it, and cannot mark a copy. */
export interface SignedRelease {
  /** The link of the version before. */
  before: Uint8Array;
  key: string;
  signature: Uint8Array;
  /** The release in canonical JSON. */
  text: string;
  /** The link of this version, which the next one names. */
  link: Uint8Array;
}

/** Read a signed release in its canonical form. The device verifies the signature. */
export function signedFromJson(document: string): SignedRelease {
  const found = tableFromJson(document, "signed release");
  const text = found.get("release");
  if (!isText(text)) throw new WireError("malformed", "a signed release must hold its release as text");
  if (/[^\0-\x7f]/.test(text)) throw notCanonical("release");
  const read = (key: string, length: number) => hexadecimal(found.get(key), length, `a signed release's ${key}`);
  const before = read("before", 32);
  const key = hex(read("key", 8));
  const signature = read("signature", 64);
  const again = table({
    sottovoce: WIRE_VERSION,
    kind: "signed release",
    before: hex(before),
    key,
    signature: hex(signature),
    release: text,
  });
  if (canonical(again) !== document) throw notCanonical("signed release");
  return { before, key, signature, text, link: nextLink(before, sha256(utf8(text))) };
}

/** Return the bytes that are signed; the prefix makes the signature valid for releases only. */
export const messageOf = ({ before, text }: SignedRelease): Uint8Array =>
  joined(utf8("sottovoce release 2\n"), before, utf8(text));

/** Return the short name of a public key. Trust is in the whole key. */
export const keyId = (key: Uint8Array): string => hex(sha256(key)).slice(0, 16);

/** Return the link before the first release of an experiment. */
export const firstLink = (fingerprint: string): Uint8Array =>
  sha256(joined(utf8("sottovoce chain 1\n"), unhex(fingerprint)));

/** Return the link of a version from the link before and the hash of its text. */
export const nextLink = (link: Uint8Array, hashed: Uint8Array): Uint8Array => sha256(joined(link, hashed));

/** Return the block that holds the hash of a version: 0 for 1 to 256, and so on. */
export const blockOf = (version: number): number => Math.floor((version - 1) / BLOCK);

/** Read one block of the chain in its canonical form. */
export function blockFromJson(document: string): Uint8Array[] {
  const digits = tableFromJson(document, "chain").get("hashes");
  if (!Array.isArray(digits) || digits.length > BLOCK) {
    throw malformed("a chain", `hold at most ${BLOCK} hashes`, "something else");
  }
  const hashes = digits.map((each) => hexadecimal(each, 32, "a chain's hash"));
  const again = table({ sottovoce: WIRE_VERSION, kind: "chain", hashes: hashes.map(hex) });
  if (canonical(again) !== document) throw notCanonical("chain");
  return hashes;
}
