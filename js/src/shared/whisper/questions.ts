/**
 * The questions of `whisper`: one table, the same as in shared/whisper/questions.py, which says what
 * each question measures. A new question is one line here and its number in `KINDS`.
 */

import type { Experiment } from "../experiment.js";
import { patternsOf } from "./axes.js";
import * as tuning from "./tuning.js";
import { SHARES, THRESHOLDS } from "./tuning.js";

/** What is asked; the place is the number on the wire. */
const KINDS = [
  "CONTRAST",
  "LEVEL",
  "MASS",
  "OUTCOME",
  "COUNT",
  "RANKED",
  "REWARD",
  "LOGGED_LEVEL",
  "SCALE",
  "LOGGED_SCALE",
  "BIN_REWARD",
  "BIN_MASS",
] as const;
export type Kind = (typeof KINDS)[number];

type Cells = "everybody" | "bins" | "bin arms" | "all bins";
type Value = "one" | "outcome" | "signed outcome" | "position";
/** How many of SHARES are asked: so many, all who are asked nothing else, or as each release says. */
type Share = number | "rest" | "by release";

/** One kind of question; the fields are those of `Entry` in the Python package. */
export interface Entry {
  kind: Kind;
  logged: boolean;
  cells: Cells;
  value: Value;
  share: Share;
  /** What it measures: people, rows, rewards or places. */
  measures: "people" | "rows" | "rewards" | "places";
  shareUnknown?: number;
  /** Which experiments ask it, by their number of arms. */
  arms?: "two" | "more";
  publicArms?: boolean;
  certified?: boolean;
  /** Whether it is asked of those alone who are asked for their reward. */
  audits?: boolean;
}

type More = Partial<Pick<Entry, "shareUnknown" | "arms" | "publicArms" | "certified" | "audits">>;
const entry =
  (logged: boolean) =>
  (kind: Kind, cells: Cells, value: Value, measures: Entry["measures"], share: Share, more: More = {}): Entry => ({
    kind,
    logged,
    cells,
    value,
    measures,
    share,
    ...more,
  });
const served = entry(false);
const logged = entry(true);
const ofAllBins = (kind: Kind, value: Value, measures: Entry["measures"], share: Share): Entry =>
  served(kind, "all bins", value, measures, share, { publicArms: false, certified: false, audits: true });

const TABLE: Entry[] = [
  served("MASS", "bins", "one", "people", tuning.MASS_SHARE),
  served("LEVEL", "bins", "outcome", "rewards", tuning.LEVEL_SHARE, { publicArms: false }),
  served("CONTRAST", "bins", "signed outcome", "rewards", "rest", { publicArms: false }),
  served("RANKED", "bins", "outcome", "rewards", "rest", { publicArms: true }),
  ofAllBins("BIN_REWARD", "outcome", "rewards", tuning.BIN_REWARD_SHARE),
  ofAllBins("BIN_MASS", "one", "people", tuning.BIN_MASS_SHARE),
  served("REWARD", "everybody", "outcome", "rewards", "rest", { audits: true }),
  served("SCALE", "everybody", "position", "places", "by release"),
  logged("LOGGED_SCALE", "everybody", "position", "places", "by release"),
  logged("COUNT", "bin arms", "one", "rows", tuning.COUNT_SHARE, { shareUnknown: tuning.COUNT_SHARE_UNKNOWN }),
  logged("LOGGED_LEVEL", "bins", "outcome", "rewards", tuning.LOGGED_LEVEL_SHARE, { arms: "two" }),
  logged("OUTCOME", "bins", "signed outcome", "rewards", "rest", { arms: "two" }),
  logged("OUTCOME", "bin arms", "outcome", "rewards", "rest", { arms: "more" }),
];

/** Whether some who have a capped arm's rival tell of no outcome (`caps.ts`). */
export const isThinned = (asked: Entry): boolean =>
  asked.cells === "bins" && asked.measures === "rewards" && !asked.logged && !asked.publicArms;

/** Return the questions that an experiment asks, in the order of the table. */
const questionsOf = ({ arms, settings, audited, axes }: Experiment): Entry[] =>
  TABLE.filter(
    (each) =>
      (each.arms ?? (arms.length === 2 ? "two" : "more")) === (arms.length === 2 ? "two" : "more") &&
      (each.publicArms ?? settings.publicArms) === settings.publicArms &&
      (each.certified ?? settings.certified) === settings.certified &&
      (!each.audits || audited) &&
      (each.measures !== "places" || axes.some((axis) => !axis.levels)),
  );

/** Return the one question of a kind that an experiment asks. */
export const questionOf = (experiment: Experiment, kind: Kind): Entry =>
  questionsOf(experiment).find((each) => each.kind === kind) as Entry;

/** What may be asked: the first kind whose bound is above a coin of 0 … SHARES - 1. */
export interface Menu {
  kinds: Kind[];
  bounds: number[];
}

/** Return what a population's people are asked, but for what each release says the share of. */
export function menuOf(experiment: Experiment, population: number, logged: boolean, audits = false): Menu {
  const known = experiment.populations[population]?.behaviour !== undefined;
  const kinds: Kind[] = [];
  const bounds: number[] = [];
  const rest: Kind[] = [];
  let asked = 0;
  for (const each of questionsOf(experiment)) {
    const share = known || each.shareUnknown === undefined ? each.share : each.shareUnknown;
    if (each.logged !== logged || (each.audits ?? false) !== audits || share === "by release") continue;
    if (share === "rest") {
      rest.push(each.kind);
      continue;
    }
    asked += share;
    kinds.push(each.kind);
    bounds.push(asked);
  }
  return { kinds: [...kinds, ...rest], bounds: [...bounds, ...rest.map(() => SHARES)] };
}

/** One question. row: of the Hadamard matrix, or the threshold where it is about places. */
export interface Question {
  kind: Kind;
  axis?: number;
  row?: number;
}

/** Return how many numbers a kind of question takes. */
function numbersOf(kind: Kind, experiment: Experiment): number {
  const asked = TABLE.find((each) => each.kind === kind) as Entry;
  if (asked.cells === "all bins") return 1;
  if (asked.measures === "places") return experiment.axes.length * THRESHOLDS.length;
  const patterns = patternsOf(experiment);
  return patterns[patterns.length - 1] as number;
}

const sumOf = (kinds: readonly Kind[], experiment: Experiment): number =>
  kinds.reduce((sum, kind) => sum + numbersOf(kind, experiment), 0);

/** Return a question's number on the wire. */
export function numberOf({ kind, axis, row = 0 }: Question, experiment: Experiment): number {
  const first = sumOf(KINDS.slice(0, KINDS.indexOf(kind)), experiment);
  if (axis === undefined) return first;
  if (questionOf(experiment, kind).measures === "places") return first + axis * THRESHOLDS.length + row;
  return first + (patternsOf(experiment)[axis] as number) + row;
}

/** Return how many numbers the questions of an experiment take. */
export const mostQuestions = (experiment: Experiment): number => sumOf(KINDS, experiment);
