/** The methods: their public settings, and which experiments and releases fit them. */

import { knownKeys, type Given, wrong } from "./check.js";
import type { Experiment } from "./experiment.js";
import { ldpmab } from "./ldpmab.js";
import type { Release } from "./release.js";
import { repr, type Table, typeName } from "./values.js";
import { whisper } from "./whisper/settings.js";

/** The settings of a method, checked. */
export interface MethodSettings {
  name: string;
  publicArms: boolean;
  certified: boolean;
  toTable(): Table;
  /** Refuse an experiment that the method cannot run. */
  checkExperiment(experiment: Experiment): void;
  /** Refuse a release that the method's learner would never publish. */
  checkRelease(release: Release): void;
  /** The largest `reward_share` of a release; 0 where nobody is asked so. */
  mostRewardShare(auxiliary: number): number;
  /** How many levels each axis has that is split into sets; 0 for midpoints. */
  levelsInSets(experiment: Experiment): number[];
}

/** The registry: the keys of each method's settings, and what reads them. */
const METHODS: Record<string, { keys: string[]; read(settings: Table): MethodSettings }> = {
  whisper,
  ldpmab,
};

/** Read the table of a method, or its name. */
export function settingsFrom(value: Given): MethodSettings {
  const table: Given = typeof value === "string" ? new Map([["name", value]]) : value;
  if (!(table instanceof Map)) throw wrong("method", "be a table", typeName(table));
  const name = table.get("name");
  if (typeof name !== "string" || !Object.hasOwn(METHODS, name)) {
    throw wrong("the method's name", `be one of ${repr(Object.keys(METHODS))}`, repr(name));
  }
  const method = METHODS[name] as (typeof METHODS)[string];
  const settings = new Map(table);
  settings.delete("name");
  return method.read(knownKeys(settings, `method ${name}`, method.keys));
}
