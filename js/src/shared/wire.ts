/** The wire format: documents in JSON of one version, and reports as compact bytes. */

import { hex, joined, littleEndian, unhex } from "./bytes.js";
import { kindOf, malformed, must, WireError } from "./errors.js";
import { parse } from "./json.js";
import { isText, isWhole, type Table, typeName, type Value } from "./values.js";

export const WIRE_VERSION = 5;

/** A report: the only thing that leaves a device. */
export interface Report {
  /** The id of the release it was made for. */
  release: Uint8Array;
  population: number;
  nonce: Uint8Array;
  /** A packed set of cells; with `ldpmab`, null for an empty list of numbers. */
  payload: Uint8Array | null;
  /** The number of the question that was asked: a public coin. */
  question: number;
  /** Where arms are public, the order of the arms that was drawn, likewise. */
  ranking: number[];
}

const head = (kind: number) => Uint8Array.of(0x73, 0x76, WIRE_VERSION, kind);

/** Write a report as bytes: 37, and the packed set. */
export function reportToBytes({ release, population, nonce, payload, question, ranking }: Report): Uint8Array {
  const who = [release, littleEndian(population, 2), nonce];
  if (!payload) return joined(head(1), ...who, littleEndian(0, 4));
  return joined(
    head(3),
    ...who,
    littleEndian(question, 2),
    Uint8Array.of(ranking.length, ...ranking),
    payload,
  );
}

/** Write several compact reports as one message. */
export const batchToBytes = (reports: Uint8Array[]): Uint8Array =>
  joined(
    head(4),
    littleEndian(reports.length, 4),
    ...reports.map((each) => littleEndian(each.length, 4)),
    ...reports,
  );

export const notCanonical = (kind: string): WireError =>
  new WireError("malformed", `a ${kind} must be in its canonical form, byte for byte; got another text`);

/** Read a JSON object of one kind, of a wire version that is known here. */
export function tableFromJson(text: string, kind: string): Table {
  const table = parsed(text, kind);
  if (!(table instanceof Map)) throw malformed(`a ${kind}`, "be a JSON object", typeName(table));
  const version = table.get("sottovoce");
  if (!isWhole(version) && typeof version !== "bigint") {
    throw new WireError("malformed", `a ${kind} must have its wire version in 'sottovoce'`);
  }
  checkVersion(version);
  if (table.get("kind") !== kind) throw new WireError("malformed", `a ${kind} must say so in 'kind'`);
  return table;
}

function parsed(text: string, kind: string): Value {
  try {
    return parse(text);
  } catch {
    throw new WireError("malformed", `a ${kind} must be valid JSON`);
  }
}

function checkVersion(version: number | bigint): void {
  // Shown only if it can be a version: by mistake, somebody may have put raw data there.
  const came = version >= 0 && version < 256 ? version : "another number";
  if (version > WIRE_VERSION) {
    const text = must("the wire version", `be at most ${WIRE_VERSION}`, came, "upgrade sottovoce");
    throw new WireError("newer wire version", text);
  }
  if (version < WIRE_VERSION) {
    const text = must("the wire version", `be at least ${WIRE_VERSION}`, came, "upgrade what sent it");
    throw new WireError("malformed", text);
  }
}

/** Return the bytes that an entry of a table holds as digits. */
export function hexadecimal(value: Value | undefined, length: number, what: string): Uint8Array {
  if (isText(value) && new RegExp(`^[0-9a-f]{${2 * length}}$`).test(value)) return unhex(value);
  throw malformed(what, `be ${2 * length} hexadecimal digits`, kindOf(value));
}

export { hex };
