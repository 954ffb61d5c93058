/**
 * Every error that this package raises on purpose, with the names and the texts of the Python package.
 *
 * House rule: a message says what, the rule, and what came (see `must`). It never holds a raw
 * context or reward: of those, only the kind of value that came (see `kindOf`).
 */

import { Real, typeName } from "./values.js";

/** The root: every error below is one. */
export class SottovoceError extends Error {
  override get name(): string {
    return (this.constructor as typeof SottovoceError).called;
  }
  /** The name of the class, which a packer of code would shorten. */
  static called = "SottovoceError";
}

/** An experiment, schema or method that cannot be. */
export class ExperimentError extends SottovoceError {
  static override called = "ExperimentError";
}
/** A person's features do not fit the public schema. */
export class ContextError extends SottovoceError {
  static override called = "ContextError";
}
/** An outcome that the experiment cannot count. */
export class RewardError extends SottovoceError {
  static override called = "RewardError";
}
/** The device was used out of order. */
export class DeviceError extends SottovoceError {
  static override called = "DeviceError";
}
/** The privacy ledger cannot be trusted, so nothing is spent. */
export class LedgerError extends SottovoceError {
  static override called = "LedgerError";
}
/** The budget would be exceeded. */
export class BudgetSpent extends LedgerError {
  static override called = "BudgetSpent";
}
/** Reports that wait to be sent cannot be kept or read. */
export class OutboxError extends SottovoceError {
  static override called = "OutboxError";
}
/** No answer came from the server, or one that no server would give. */
export class TransportError extends SottovoceError {
  static override called = "TransportError";
}
/** The server has no such experiment. */
export class NoSuchExperiment extends TransportError {
  static override called = "NoSuchExperiment";
}
/** A release that nobody trusted has signed. */
export class SignatureError extends SottovoceError {
  static override called = "SignatureError";
}
/** A release that does not continue the history that was followed so far. */
export class ForkError extends SottovoceError {
  static override called = "ForkError";
}

/** Why a message was not taken; the words are those on the wire. */
export type Rejection =
  | "unknown release"
  | "unknown population"
  | "unknown question"
  | "wrong length"
  | "not finite"
  | "implausible"
  | "malformed"
  | "truncated"
  | "newer wire version"
  | "archived";

/** Bytes or JSON that are not a message of this package. */
export class WireError extends SottovoceError {
  static override called = "WireError";

  constructor(
    readonly reason: Rejection,
    message: string,
  ) {
    super(message);
  }
}

/** Return the one template for messages: `epsilon must be finite and > 0; got -1`. */
export const must = (what: string, rule: string, came: unknown, hint = ""): string =>
  `${what} must ${rule}; got ${came}${hint && `; ${hint}`}`;

/** Return the error for a message of another form than it must have. */
export const malformed = (what: string, rule: string, came: unknown): WireError =>
  new WireError("malformed", must(what, rule, came));

/** Name the kind of a raw value without showing it. */
export function kindOf(value: unknown): string {
  const number = value instanceof Real ? value.value : value;
  if (typeof number === "number" || typeof number === "bigint") {
    if (Number.isNaN(number)) return "NaN";
    return number === Infinity || number === -Infinity ? "an infinite number" : "another number";
  }
  return value == null ? "nothing" : `a ${typeName(value)}`;
}
