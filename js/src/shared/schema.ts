/** The public context schema: how raw features become a point of [0, 1]^d. */

import * as check from "./check.js";
import { type Given, wrong } from "./check.js";
import { ContextError, kindOf, must } from "./errors.js";
import { isText, real, repr, type Table, table, tupleText, type Value } from "./values.js";

const MOST_LEVELS = 1024;
const LEVELS_RULE = "be one of the schema's levels";

/** One coordinate of a context. levels: 0 for a number; otherwise how many places there are. */
export interface Axis {
  name: string;
  levels: number;
  ordered: boolean;
}

type Kind = "numeric" | "ordinal" | "categorical" | "boolean";
const KINDS: Kind[] = ["numeric", "ordinal", "categorical", "boolean"];

/** A feature: `positions` maps a raw value to [0, 1] on each axis; only the device calls it. */
export interface Feature {
  name: string;
  optional: boolean;
  axes: Axis[];
  positions(value: unknown): number[];
  toTable(): Table;
}

/** What each kind of feature adds: its own axes, its table, and the position of a value. */
interface Part {
  axes: Axis[];
  rule: string;
  written: Value;
  other?: boolean;
  /** The position of a raw value, or undefined if there is none; of a missing one, any. */
  position(value: unknown, missing: boolean): number | undefined;
}

const middles = (count: number) => Array.from({ length: count }, (_, i) => (i + 0.5) / count);

function feature(name: string, optional: boolean, kind: Kind, part: Part): Feature {
  const { rule } = part;
  const ownAxis = kind === "numeric" || kind === "ordinal";
  const more = optional && ownAxis ? [{ name: `${name} is missing`, levels: 2, ordered: true }] : [];
  return {
    name,
    optional,
    axes: [...part.axes, ...more],
    positions(value) {
      const missing = value == null || (typeof value === "number" && Number.isNaN(value));
      if (missing && !optional) {
        const hint = "say optional=True in the schema if it may be missing";
        throw new ContextError(must(`feature ${repr(name)}`, rule, kindOf(value), hint));
      }
      const position = part.position(value, missing);
      if (position === undefined) {
        const unknown = isText(value) && (kind === "ordinal" || kind === "categorical");
        const came = unknown ? "an unknown level" : kindOf(value);
        throw new ContextError(must(`feature ${repr(name)}`, rule, came));
      }
      return more.length ? [position, missing ? 0.75 : 0.25] : [position];
    },
    toTable: () =>
      table({ name, [kind]: part.written, other: part.other || undefined, optional: optional || undefined }),
  };
}

function numeric(name: string, bounds: Value[]): Part {
  const [low, high] = bounds.map(check.finite);
  if (low === undefined || high === undefined || !(low < high) || !Number.isFinite(high - low)) {
    throw wrong(`the bounds of ${repr(name)}`, "be finite numbers with low < high", tupleText(bounds));
  }
  return {
    axes: [{ name, levels: 0, ordered: true }],
    rule: "be a finite number",
    written: [real(low + 0), real(high + 0)], // not -0.0, which has another fingerprint
    position(value, missing) {
      const number = check.finite(missing ? low : value);
      if (number === undefined) return undefined;
      return (Math.min(Math.max(number, low), high) - low) / (high - low);
    },
  };
}

function checkedLevels(name: string, levels: Value[], places: string[]): string[] {
  check.name(name, "the name of a feature");
  const what = `the levels of ${repr(name)}`;
  const known = check.distinctNames(levels, what, 2, (came) => tupleText(came as Value[]));
  const taken = places.filter((place) => known.includes(place));
  if (taken.length) {
    const rule = "leave the names of the places for other and missing levels to the schema";
    throw wrong(what, rule, repr(taken));
  }
  if (known.length + places.length > MOST_LEVELS) {
    const rule = `be at most ${MOST_LEVELS}, with the places for other and missing levels`;
    throw wrong(what, rule, known.length + places.length);
  }
  return known;
}

function ordinal(name: string, listed: Value[]): Part {
  const levels = checkedLevels(name, listed, []);
  const places = middles(levels.length);
  const positions = new Map<unknown, number>(levels.map((level, i) => [level, places[i] as number]));
  return {
    axes: [{ name, levels: levels.length, ordered: true }],
    rule: LEVELS_RULE,
    written: levels,
    position: (value, missing) => positions.get(missing ? levels[0] : value),
  };
}

function categorical(name: string, listed: Value[], optional: boolean, other: boolean): Part {
  const more = [...(other ? ["other"] : []), ...(optional ? ["missing"] : [])];
  const levels = checkedLevels(name, listed, more);
  const places = middles(levels.length + more.length);
  const positions = new Map<unknown, number>(levels.map((level, i) => [level, places[i] as number]));
  if (optional) positions.set(undefined, places[places.length - 1] as number);
  const otherPlace = other ? places[levels.length] : undefined;
  return {
    axes: [{ name, levels: places.length, ordered: places.length === 2 }],
    rule: LEVELS_RULE,
    written: levels,
    other,
    position: (value, missing) =>
      missing || isText(value) ? (positions.get(missing ? undefined : value) ?? otherPlace) : undefined,
  };
}

function boolean(name: string, optional: boolean): Part {
  const count = optional ? 3 : 2;
  return {
    axes: [{ name, levels: count, ordered: count === 2 }],
    rule: "be True or False",
    written: true,
    position(value, missing) {
      const truth = missing ? false : value;
      return typeof truth === "boolean" ? ((missing ? 2 : Number(truth)) + 0.5) / count : undefined;
    },
  };
}

/** Read a feature such as `{"name": "age", "numeric": [18, 90], "optional": true}`. */
export function featureFromTable(entry: Given): Feature {
  const rule =
    "have a name and one of numeric = [low, high], ordinal = [...], categorical = [...], boolean = true";
  const what = "a context feature";
  const fits = entry instanceof Map;
  const [kind, ...others] = fits ? KINDS.filter((each) => entry.has(each)) : [];
  if (!fits || !kind || others.length || !entry.has("name")) throw wrong(what, rule, repr(entry));
  const name = entry.get("name") as string;
  const flags = kind === "categorical" ? ["optional", "other"] : ["optional"];
  const known = ["name", kind, ...flags];
  const strange = [...entry.keys()].filter((key) => !known.includes(key)).sort();
  if (strange.length) {
    throw wrong(what, `have only the keys ${repr(known)}`, `${repr(strange)} in ${repr(name)}`);
  }
  const given = entry.get(kind);
  const pair = kind === "numeric" && Array.isArray(given) && given.length === 2;
  const list = (kind === "ordinal" || kind === "categorical") && Array.isArray(given);
  if (!pair && !list && !(kind === "boolean" && given === true)) throw wrong(what, rule, repr(entry));
  // The levels of an ordinal feature are checked before its flag, as in Python.
  const flag = (key: string) =>
    check.truthValue(entry.has(key) ? entry.get(key) : false, `${key} of ${repr(name)}`);
  const values = given as Value[];
  if (kind === "ordinal") {
    const part = ordinal(name, values);
    return feature(name, flag("optional"), kind, part);
  }
  check.name(name, "the name of a feature");
  const optional = flag("optional");
  if (kind === "numeric") return feature(name, optional, kind, numeric(name, values));
  if (kind === "boolean") return feature(name, optional, kind, boolean(name, optional));
  return feature(name, optional, kind, categorical(name, values, optional, flag("other")));
}
