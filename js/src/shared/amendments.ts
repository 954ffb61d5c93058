/** Amendments: what an operator may change about a running experiment, and what holds after each. */

import { utf8, hex } from "./bytes.js";
import * as check from "./check.js";
import { wrong } from "./check.js";
import { ExperimentError } from "./errors.js";
import { type Experiment, experimentOf, fingerprint } from "./experiment.js";
import { sha256 } from "./hashes.js";
import { canonical, isText, real, repr, type Table, table, typeName, type Value } from "./values.js";

/** Every kind of amendment, with the key that says what it is about, and the state that follows. */
const KINDS = {
  "add arm": { about: "arm" },
  "retire arm": { about: "arm" },
  "extend horizon": { about: "horizon" },
  pause: { next: "paused" },
  resume: { next: "running" },
  stop: { next: "stopped" },
  archive: { next: "archived" },
} as const satisfies Record<string, { about?: "arm" | "horizon"; next?: State }>;

export type State = "running" | "paused" | "stopped" | "archived";
type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];

const MOST_ARMS = 255;

export interface Amendment {
  before: Value;
  made: string;
  by: string;
  kind: Kind;
  arm?: string;
  horizon?: number;
  cap?: number;
}

/** Write an amendment for the wire. */
export const amendmentTable = ({ cap, ...rest }: Amendment): Table =>
  table({ ...rest, cap: cap === undefined ? cap : real(cap) });

const hashOf = (amendment: Amendment): string => hex(sha256(utf8(canonical(amendmentTable(amendment)))));

/** What a restore says; no other amendment says any of it. */
const RESTORED = ["release", "link", "branch"];

/** Read one amendment. */
function amendmentFrom(value: Value): Amendment {
  const needed = ["before", "by", "kind", "made"];
  const entries = check.knownKeys(value, "an amendment", [...needed, "arm", "horizon", "cap", ...RESTORED]);
  const missing = needed.filter((key) => !entries.has(key));
  if (missing.length) throw new ExperimentError(`an amendment must say ${repr(missing)}`);
  const kind = entries.get("kind");
  if (kind === "restore") throw new ExperimentError("this device does not follow a restored server yet");
  if (!isText(kind) || !Object.hasOwn(KINDS, kind)) {
    throw wrong("an amendment", `be one of ${repr(NAMES)}`, repr(kind));
  }
  const by = check.name(entries.get("by"), "who makes an amendment");
  const made = entries.get("made");
  if (!isMoment(made)) {
    throw wrong("when an amendment was made", "be written as 2026-03-01T09:30:00Z", repr(made));
  }
  const found: Amendment = { before: entries.get("before") as Value, made, by, kind: kind as Kind };
  const about = (KINDS[kind as Kind] as { about?: string }).about;
  for (const key of ["arm", "horizon", ...RESTORED]) {
    if ((entries.get(key) != null) !== (about === key)) {
      throw wrong(`an amendment of kind ${repr(kind)}`, about ? `say ${about}` : "say nothing else", key);
    }
  }
  if (about === "arm") found.arm = check.name(entries.get("arm"), "an arm");
  if (about === "horizon") found.horizon = check.wholeNumber(entries.get("horizon"), "horizon", 1);
  if (entries.get("cap") != null) {
    const cap = check.finite(entries.get("cap"));
    if (kind !== "add arm" || cap === undefined || !(0 < cap && cap <= 0.5)) {
      const rule = "be more than 0 and at most 0.5, for an arm that is added";
      throw wrong("the cap of an amendment", rule, repr(entries.get("cap")));
    }
    found.cap = cap;
  }
  return found;
}

/** Read the amendments of a release. */
export function amendmentsFrom(tables: Value): Amendment[] {
  if (!Array.isArray(tables)) throw wrong("amendments", "be a list of tables", typeName(tables));
  return tables.map(amendmentFrom);
}

/** Return whether an experiment is running, paused, stopped or archived. */
export function stateAfter(amendments: Amendment[]): State {
  const states = amendments.map((each) => (KINDS[each.kind] as { next?: State }).next).filter((each) => each);
  return states[states.length - 1] ?? "running";
}

/** Return what an experiment is after one more amendment, or raise ExperimentError. */
function amended(experiment: Experiment, amendment: Amendment): Experiment {
  checkOrder(experiment, amendment);
  const { kind, arm = "", horizon = 0 } = amendment;
  let now = experiment;
  if (kind === "add arm") now = withArm(experiment, arm);
  if (kind === "retire arm") {
    const inUse = experiment.arms.filter((_, k) => !experiment.retired.has(k));
    if (!inUse.includes(arm)) throw wrong("a retired arm", `be one of ${repr(inUse)}`, repr(arm));
    if (inUse.length === 2) throw wrong("arms", "be at least 2 after one is retired", "1");
  }
  if (kind === "extend horizon") {
    if (horizon <= experiment.horizon) {
      throw wrong("an extended horizon", `be more than ${experiment.horizon}, which it is`, horizon);
    }
    now = experimentOf({ ...experiment, horizon });
  }
  const amendments = [...experiment.amendments, amendment];
  return experimentOf({ ...now, first: experiment.first ?? experiment, amendments });
}

export const afterAmendments = (first: Experiment, amendments: Amendment[]): Experiment =>
  amendments.reduce(amended, first);

/** Say whether what holds now is what held before, with all of its amendments and perhaps more. */
export const continues = (now: Experiment, before: Experiment): boolean =>
  isSame(now, before) &&
  before.amendments.every((each, i) => {
    const other = now.amendments[i];
    return other !== undefined && hashOf(other) === hashOf(each);
  });

export const isSame = (one: Experiment, other: Experiment): boolean => fingerprint(one) === fingerprint(other);

/** Return the kinds of amendments that may come to an experiment in a state. */
const kindsIn = (state: State): Kind[] =>
  state === "stopped"
    ? ["archive"]
    : state === "archived"
      ? []
      : NAMES.filter((kind) => kind !== (state === "running" ? "resume" : "pause"));

/** Check that an amendment follows the last one, and may come in this state. */
function checkOrder(experiment: Experiment, amendment: Amendment): void {
  const { amendments, state } = experiment;
  const last = amendments[amendments.length - 1];
  if (amendment.before !== (last ? hashOf(last) : fingerprint(experiment))) {
    throw wrong("an amendment", "name the amendment before it by its hash", "another hash");
  }
  if (last && amendment.made < last.made) {
    throw wrong("an amendment", `not be older than ${last.made}`, amendment.made);
  }
  const allowed = kindsIn(state).sort();
  if (!allowed.includes(amendment.kind)) {
    const rule = allowed.length ? `be one of ${repr(allowed)}` : "not come any more";
    throw wrong(`an amendment to an experiment that is ${state}`, rule, repr(amendment.kind));
  }
}

function withArm(experiment: Experiment, arm: string): Experiment {
  const { arms, auxiliary } = experiment;
  if (arms.includes(arm)) throw wrong("an added arm", "have a new name", repr(arm));
  if (arms.length === MOST_ARMS) throw wrong("arms", `be at most ${MOST_ARMS}`, MOST_ARMS + 1);
  return experimentOf({
    ...experiment,
    arms: [...arms, arm],
    // A log says nothing of an arm that came later.
    auxiliary: auxiliary.map((each) => (each.behaviour ? { ...each, behaviour: [...each.behaviour, 0] } : each)),
  });
}

function isMoment(made: unknown): made is string {
  if (!isText(made) || !/^[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(made)) return false;
  const moment = new Date(made);
  return !Number.isNaN(+moment) && moment.toISOString() === made.replace("Z", ".000Z");
}
