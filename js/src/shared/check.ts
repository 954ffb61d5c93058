/** Checks of public settings, as the Python package makes them, in the same words. */

import { exactSum, isOne } from "./exact.js";
import { ExperimentError, must } from "./errors.js";
import { isPrintable, isText, Real, repr, shortText, type Table, typeName, type Value } from "./values.js";

export type Given = Value | undefined;

export const wrong = (what: string, rule: string, came: unknown): ExperimentError =>
  new ExperimentError(must(what, rule, came));

/** Return a finite number as a double, and anything else as undefined. */
export function finite(value: unknown): number | undefined {
  const number = value instanceof Real ? value.value : typeof value === "bigint" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** Check a privacy budget. */
export function epsilon(value: Given, what = "epsilon"): number {
  const number = finite(value);
  if (number === undefined || number <= 0) throw wrong(what, "be finite and > 0", repr(value));
  if (number < 1e-9 || number > 1e6) throw wrong(what, "lie between 1e-09 and 1e+06", repr(value));
  return number;
}

/** Check a whole number; up to 2^53 it is exact. */
export function wholeNumber(value: Given, what: string, least: number): number {
  const whole = typeof value === "number" || typeof value === "bigint";
  if (!whole || value < least) throw wrong(what, `be a whole number >= ${least}`, repr(value));
  if (value > 2 ** 53) throw wrong(what, "be at most 2^53", repr(value));
  return Number(value);
}

export function truthValue(value: Given, what: string): boolean {
  if (typeof value !== "boolean") throw wrong(what, "be true or false", repr(value));
  return value;
}

/** Check a name. */
export function name(value: Given, what: string): string {
  if (!isText(value) || !value || !isPrintable(value)) {
    throw wrong(what, "be a non-empty, printable string", repr(value));
  }
  return value;
}

/** Check a list of different, non-empty names. */
export function distinctNames(values: Given, what: string, least: number, show = repr): string[] {
  if (!Array.isArray(values) || !values.every(isText)) throw wrong(what, "be a list of names", show(values));
  for (const each of values) name(each, what);
  if (values.length < least) throw wrong(what, `be at least ${least}`, `${values.length}: ${repr(values)}`);
  if (new Set(values).size !== values.length) throw wrong(what, "differ from each other", repr(values));
  return values;
}

/** Check that a table has known keys only. */
export function knownKeys(entry: Given, what: string, known: string[]): Table {
  if (!(entry instanceof Map)) throw wrong(what, "be a table", typeName(entry));
  const strange = [...entry.keys()].filter((key) => !known.includes(key)).sort();
  if (strange.length) throw wrong(what, `have only the keys ${repr([...known].sort())}`, repr(strange));
  return entry;
}

/** Check the probabilities of all arms; 0 means that nobody got the arm. */
export function propensities(values: Given, what: string): number[] {
  const rule = "be numbers >= 0 that add up to 1";
  const isNumber = (each: Value) => /^(int|float|bool)$/.test(typeName(each));
  if (!Array.isArray(values) || !values.every(isNumber)) throw wrong(what, rule, repr(values));
  const chances = values.map(finite);
  const known = chances.filter((each): each is number => each !== undefined && each >= 0);
  if (known.length !== chances.length || !isOne(exactSum(known))) throw wrong(what, rule, repr(values));
  return known;
}

export { shortText };
