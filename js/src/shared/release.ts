/** A policy release: immutable, versioned, public. The one module that knows its form. */

import { afterAmendments, amendmentsFrom, amendmentTable } from "./amendments.js";
import { hex, utf8 } from "./bytes.js";
import { ExperimentError, malformed, WireError } from "./errors.js";
import { exactSum, isOne } from "./exact.js";
import { type Experiment, experimentFrom, experimentTable } from "./experiment.js";
import { sha256 } from "./hashes.js";
import { leaves, type Partition, partitionFrom } from "./partition.js";
import { checkedScales } from "./scale.js";
import { canonical, isText, isWhole, real, Real, repr, table, type Table, tupleText, typeName, type Value } from "./values.js";
import { notCanonical, tableFromJson, WIRE_VERSION } from "./wire.js";

const LAST_VERSION = 2 ** 32 - 1;

/** The arms on offer in one bin and the chance of each; waiting: live, but not on offer. */
export interface BinPolicy {
  path: string;
  arms: number[];
  propensities: number[];
  waiting: number[];
  live: number[];
}

/** What to do in each bin, and which cells to report on. */
export interface Release {
  version: number;
  /** As it is after all amendments so far. */
  experiment: Experiment;
  partition: Partition;
  bins: BinPolicy[];
  /** The bins where more than one arm is live, in order. */
  contested: BinPolicy[];
  rewardShare: number;
  ask: number[];
  scaleShare: number;
  thresholds: number[];
  /** Its canonical text, and the first bytes of that text's hash. */
  text: string;
  id: Uint8Array;
  /** What other modules have worked out from this release. */
  derived: Map<string, unknown>;
}

/** Return what a key stands for; work it out once for each release. */
export function once<T>(release: Release, key: string, make: () => T): T {
  if (!release.derived.has(key)) release.derived.set(key, make());
  return release.derived.get(key) as T;
}

/** Read a release from canonical JSON; refuse any other text, whatever it means. */
export function releaseFromJson(text: string): Release {
  let release: Release;
  try {
    release = releaseFrom(tableFromJson(text, "release"));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new WireError("malformed", "a release must not be nested so deeply");
  }
  if (canonical(releaseTable(release)) !== text) throw notCanonical("release");
  release.text = text;
  release.id = sha256(utf8(text)).slice(0, 12);
  return release;
}

class Lacks extends Error {}

/** Return the items of a list, the keys of a table or the letters of a text, as Python's `tuple`. */
function items(value: Value | undefined): Value[] {
  if (Array.isArray(value)) return value;
  if (value instanceof Map) return [...value.keys()];
  if (isText(value)) return [...value];
  throw new Lacks();
}

const get = (entry: Value, key: string): Value => {
  const value = entry instanceof Map ? entry.get(key) : undefined;
  if (value === undefined) throw new Lacks();
  return value;
};

interface Entry {
  path: Value;
  arms: Value[];
  propensities: Value[];
  waiting: Value[];
}

function releaseFrom(given: Table): Release {
  const or = (key: string, usual: Value): Value => (given.has(key) ? (given.get(key) as Value) : usual);
  let version: Value, share: Value, scaleShare: Value, ask: Value[], thresholds: Value[];
  let experiment: Experiment, partition: Partition, entries: Entry[];
  try {
    version = get(given, "version");
    const bins = get(given, "bins");
    share = or("reward_share", 0);
    const first = experimentFrom(get(given, "experiment"));
    experiment = afterAmendments(first, amendmentsFrom(or("amendments", [])));
    partition = partitionFrom(experiment.levels, get(given, "cuts"), or("sets", new Map()));
    const numbers = experiment.axes.map((axis) => axis.levels === 0);
    partition.scales = checkedScales(numbers, or("scales", new Map()));
    ask = items(or("ask", []));
    thresholds = items(or("thresholds", []));
    scaleShare = or("scale_share", 0);
    entries = items(bins).map((entry) => ({
      path: get(entry, "bin"),
      arms: items(get(entry, "arms")),
      propensities: items(get(entry, "propensities")),
      waiting: items((entry as Table).has("waiting") ? (entry as Table).get("waiting") : []),
    }));
  } catch (error) {
    if (error instanceof ExperimentError) {
      throw new WireError("malformed", `a release must have an experiment; ${error.message}`);
    }
    if (!(error instanceof Lacks)) throw error;
    throw new WireError("malformed", "a release must have version, experiment, cuts and bins");
  }
  if (!isWhole(version) || version < 1 || version > LAST_VERSION) {
    throw malformed("a release's version", `be a whole number from 1 to ${LAST_VERSION}`, repr(version));
  }
  const paths = leaves(partition);
  if (entries.length !== paths.length || !paths.every((path, i) => entries[i]?.path === path)) {
    throw new WireError("malformed", "a release must have one entry for each bin");
  }
  const policies = entries.map((entry) => checkedPolicy(entry, experiment));
  const most = experiment.settings.mostRewardShare(experiment.auxiliary.length);
  if (!isWhole(share) || share < 0 || share > most) {
    throw malformed("a release's reward_share", `be a whole number from 0 to ${most}`, repr(share));
  }
  if (![...ask, ...thresholds, scaleShare].every((each) => typeName(each) === "int")) {
    throw malformed("a release's ask, thresholds and scale_share", "be whole numbers", "not");
  }
  const release: Release = {
    version,
    experiment,
    partition,
    bins: policies,
    contested: policies.filter((each) => each.arms.length > 1),
    rewardShare: share,
    ask: ask.map(Number),
    scaleShare: Number(scaleShare),
    thresholds: thresholds.map(Number),
    text: "",
    id: new Uint8Array(),
    derived: new Map(),
  };
  experiment.settings.checkRelease(release);
  return release;
}

/** Write the release for the wire. */
function releaseTable({ version, experiment, partition, bins, ...rest }: Release): Table {
  const { amendments } = experiment;
  const { cuts, sets, scales } = partition;
  const knots = [...scales].map(([axis, each]) => [`${axis}`, each.slice(1, -1).map(real)] as const);
  const or = <T>(empty: number, value: T): T | undefined => (empty ? value : undefined);
  return table({
    sottovoce: WIRE_VERSION,
    kind: "release",
    version,
    experiment: experimentTable(experiment),
    amendments: or(amendments.length, amendments.map(amendmentTable)),
    cuts,
    sets: or(sets.size, sets),
    scales: or(scales.size, new Map(knots)),
    bins: bins.map(({ path, arms, propensities, waiting }) =>
      table({ bin: path, arms, propensities: propensities.map(real), waiting: or(waiting.length, waiting) }),
    ),
    reward_share: or(rest.rewardShare, rest.rewardShare),
    ask: or(rest.ask.length, rest.ask),
    scale_share: or(rest.scaleShare, rest.scaleShare),
    thresholds: or(rest.thresholds.length, rest.thresholds),
  });
}

function checkedPolicy(entry: Entry, { arms: { length: count }, retired }: Experiment): BinPolicy {
  const path = entry.path as string;
  const [what, named] = [`the arms of bin ${repr(path)}`, [...entry.arms, ...entry.waiting] as number[]];
  const known = named.every((arm) => isWhole(arm) && arm >= 0 && arm < count);
  if (!known || !entry.arms.length || new Set(named).size !== named.length) {
    throw malformed(what, `be different and below ${count}`, tupleText(named));
  }
  if (named.some((arm) => retired.has(arm))) throw malformed(what, "not be retired", tupleText(named));
  const arms = named.slice(0, entry.arms.length);
  const inOrder = arms.every((arm, i) => !i || (arms[i - 1] as number) < arm);
  if (!inOrder || (entry.waiting.length && arms.length === 1)) {
    throw malformed(what, "be in order, and none may wait where only one is on offer", tupleText(named));
  }
  const chances = entry.propensities.map((each) => (each instanceof Real ? each.value : NaN));
  const fits = chances.length === arms.length && chances.every((each) => 0 < each && each <= 1);
  if (!fits || !isOne(exactSum(chances))) {
    const rule = "be one for each live arm, > 0, and add up to 1";
    throw malformed(`the propensities of bin ${repr(path)}`, rule, tupleText(entry.propensities));
  }
  const live = [...named].sort((one, other) => one - other);
  return { path, arms, propensities: chances, waiting: named.slice(arms.length), live };
}

/** The text of an id, to compare. */
export const idText = ({ id }: Release): string => hex(id);
