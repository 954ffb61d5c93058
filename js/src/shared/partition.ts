/** A partition of [0, 1]^d: a tree of splits at midpoints and into sets of levels. */

import { malformed, WireError } from "./errors.js";
import { positionAt } from "./scale.js";
import { isWhole, repr, type Table, typeName, type Value } from "./values.js";

const MOST_DEPTH = 96;
const MOST_BINS = 4096;
/** No edge is halved more often. */
const HALVINGS = 48;

/** A bin is named by its path from the root: "0" for a lower part, "1" for an upper one. */
export interface Partition {
  cuts: Map<string, number>;
  /** How many levels each axis has that is split into sets; 0 for midpoints. */
  levels: number[];
  sets: Map<string, number[]>;
  scales: Map<number, number[]>;
}

/** Return the position of a place in [0, 1] on the scale of an axis. */
export function position({ scales }: Partition, axis: number, place: number): number {
  const knots = scales.get(axis);
  return knots ? positionAt(knots, place) : place;
}

/** Return the bins, from low to high along each split. */
export function leaves({ cuts }: Partition): string[] {
  const found: string[] = [];
  const pending = [""];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (cuts.has(path)) pending.push(`${path}1`, `${path}0`);
    else found.push(path);
  }
  return found;
}

const byLength = (one: string, other: string) => one.length - other.length;

/** Read and check cuts and sets that came over the wire. */
export function partitionFrom(levels: number[], cutsTable: Value, setsTable: Value): Partition {
  const cuts = checkedCuts(levels, cutsTable);
  const found: Partition = { cuts, levels, sets: new Map(), scales: new Map() };
  if (!(setsTable instanceof Map)) {
    throw malformed("sets", "map paths to lists of levels", typeName(setsTable));
  }
  const needed = [...cuts].filter(([, axis]) => levels[axis]);
  if (needed.length !== setsTable.size || !needed.every(([path]) => setsTable.has(path))) {
    const rule = "say for each bin that is split by levels, and no other, which go up";
    throw malformed("sets", rule, `${setsTable.size} for ${needed.length} such bins`);
  }
  for (const path of [...setsTable.keys()].sort(byLength)) {
    const listed = setsTable.get(path);
    if (!Array.isArray(listed) || !listed.every((each) => isWhole(each) || typeof each === "bigint")) {
      throw malformed("sets", "map paths to lists of levels", "something else");
    }
    const left = levelsOf(found, path, cuts.get(path) as number);
    const fits = listed.every(
      (each, i) => left.includes(each as number) && (!i || (listed[i - 1] as number) < (each as number)),
    );
    if (!fits || !listed.length || listed.length === left.length) {
      const rule = "name, in order, some levels of a bin but not all of them";
      throw malformed(`the set of bin ${repr(path)}`, rule, repr(listed));
    }
    found.sets.set(path, listed as number[]);
  }
  return found;
}

/** Return the levels that a bin holds, along an axis that is split into sets. */
function levelsOf({ cuts, levels, sets }: Partition, path: string, axis: number): number[] {
  let left = Array.from({ length: levels[axis] as number }, (_, level) => level);
  for (let depth = 0; depth < path.length; depth++) {
    const above = path.slice(0, depth);
    if (cuts.get(above) !== axis) continue;
    const upper = sets.get(above) as number[];
    left = left.filter((level) => upper.includes(level) === (path[depth] === "1"));
  }
  return left;
}

/** Check cuts: each parent before its children, no more bins and no finer ones than allowed. */
function checkedCuts(levels: number[], table: Value): Map<string, number> {
  const rule = `map paths to axes below ${levels.length}, each parent before its children`;
  if (!(table instanceof Map)) throw malformed("cuts", rule, typeName(table));
  const cuts = new Map<string, number>();
  if ((table as Table).size >= MOST_BINS) {
    throw malformed("cuts", `make at most ${MOST_BINS} bins`, table.size + 1);
  }
  for (const path of [...table.keys()].sort(byLength)) {
    const axis = table.get(path) as Value;
    if (path.length >= MOST_DEPTH) throw malformed("cuts", `make bins at most ${MOST_DEPTH} splits deep`, "more");
    const known = path === "" || (cuts.has(path.slice(0, -1)) && /[01]$/.test(path));
    if (!known || !isWhole(axis) || axis < 0 || axis >= levels.length) {
      throw malformed("cuts", rule, repr(new Map([[path, axis]])));
    }
    cuts.set(path, axis);
    // A shorter path cannot have halved an edge so often.
    if (path.length >= HALVINGS && !levels[axis] && halvings(cuts, path, axis) >= HALVINGS) {
      throw new WireError("malformed", `cuts must leave every edge at least 2^-${HALVINGS} long`);
    }
  }
  return cuts;
}

/** Return how often a bin's edge along an axis has been halved. */
const halvings = (cuts: Map<string, number>, path: string, axis: number): number =>
  Array.from(path).filter((_, depth) => cuts.get(path.slice(0, depth)) === axis).length;
