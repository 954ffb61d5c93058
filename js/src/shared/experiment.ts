/** An experiment: all that is public about it before the first person takes part. */

import { type Amendment, type State, stateAfter } from "./amendments.js";
import { hex, utf8 } from "./bytes.js";
import * as check from "./check.js";
import { type Given, wrong } from "./check.js";
import { duration } from "./durations.js";
import { ExperimentError } from "./errors.js";
import { sha256 } from "./hashes.js";
import { type MethodSettings, settingsFrom } from "./methods.js";
import { type RewardScale, rewardScale } from "./reward.js";
import { type Axis, type Feature, featureFromTable } from "./schema.js";
import { canonical, real, repr, type Table, table, type Value } from "./values.js";

export const TARGET = "target";
const MOST_FEATURES = 1000;

/** A source of users with its own ε; behaviour: the chance of each arm in its rows, if it is known. */
export interface Population {
  name: string;
  epsilon: number;
  users: number;
  behaviour?: number[];
}

/** What an experiment is made of. */
interface Parts {
  name: string;
  arms: string[];
  context: Feature[];
  epsilon: number;
  horizon: number;
  auxiliary: Population[];
  /** The method's settings, or the table that says them. */
  settings?: MethodSettings;
  method: Value;
  releaseEvery: number;
  seed: number;
  reward: Given;
  rewardWindow: Given;
  /** Of an experiment that was amended: its first form, and what was amended since. */
  first?: Experiment;
  amendments: Amendment[];
}

/** An experiment, checked, with what follows from its parts. */
export interface Experiment extends Parts {
  settings: MethodSettings;
  axes: Axis[];
  /** How many levels each axis has that is split into sets; 0 for midpoints. */
  levels: number[];
  /** The target first, then the auxiliary populations. */
  populations: Population[];
  rewards: RewardScale;
  /** How many seconds after a choice its reward may come; undefined: at once or never. */
  window: number | undefined;
  retired: Set<number>;
  caps: Map<number, number>;
  state: State;
  /** Whether some of the target's people may be asked for their reward. */
  audited: boolean;
}

/** Check the parts of an experiment, in the order of the Python package, and work out the rest. */
export function experimentOf(given: Parts): Experiment {
  const { arms, context, auxiliary, amendments } = given;
  check.distinctNames(arms, "arms", 2);
  check.distinctNames(
    context.map((each) => each.name),
    "context features",
    1,
  );
  const axes = context.flatMap((each) => each.axes);
  if (axes.length > MOST_FEATURES) throw wrong("context", `have at most ${MOST_FEATURES} axes`, axes.length);
  check.distinctNames(
    axes.map((axis) => axis.name),
    "axes of the context",
    1,
  );
  for (const { name, behaviour } of auxiliary) {
    if (behaviour && behaviour.length !== arms.length) {
      const rule = `have one chance for each of ${arms.length} arms`;
      throw wrong(`behaviour of population ${repr(name)}`, rule, behaviour.length);
    }
  }
  const epsilon = check.epsilon(given.epsilon as Value);
  const horizon = check.wholeNumber(given.horizon, "horizon", 1);
  const populations = [{ name: TARGET, epsilon, users: horizon }, ...auxiliary];
  check.distinctNames(
    populations.map((each) => each.name),
    "populations",
    1,
  );
  const settings = given.settings ?? settingsFrom(given.method);
  const gone = amendments.filter((each) => each.kind === "retire arm").map((each) => each.arm);
  const capped = amendments.filter((each) => each.cap !== undefined);
  const numbers = arms.map((_, arm) => arm);
  const found: Experiment = {
    ...given,
    settings,
    epsilon,
    horizon,
    axes,
    levels: [],
    populations,
    rewards: { low: 0, high: 1, clamps: false },
    window: undefined,
    retired: new Set(numbers.filter((arm) => gone.includes(arms[arm]))),
    caps: new Map(capped.map(({ arm, cap }) => [arms.indexOf(arm as string), cap as number])),
    state: stateAfter(amendments),
    audited: settings.mostRewardShare(auxiliary.length) > 0,
  };
  found.levels = settings.levelsInSets(found);
  settings.checkExperiment(found);
  found.releaseEvery = check.wholeNumber(given.releaseEvery, "release_every", 1);
  found.seed = check.wholeNumber(given.seed, "seed", 0);
  check.name(given.name, "name");
  found.rewards = rewardScale(given.reward);
  if (given.rewardWindow != null) found.window = duration(given.rewardWindow, "reward_window");
  return found;
}

const KEYS =
  "arms context epsilon horizon auxiliary method release_every seed name reward reward_window baseline".split(" ");

/** Read the experiment of a release. */
export function experimentFrom(value: Value): Experiment {
  const entries = check.knownKeys(value, "an experiment", KEYS);
  const missing = ["arms", "context", "epsilon"].filter((key) => !entries.has(key));
  if (missing.length) {
    throw new ExperimentError(`an experiment must have arms, context, epsilon; it lacks ${repr(missing)}`);
  }
  if (entries.has("baseline")) {
    throw new ExperimentError("this device does not take part in experiments with a baseline yet");
  }
  const given = (key: string, usual: Value): Value => (entries.has(key) ? (entries.get(key) as Value) : usual);
  const list = (key: string): Value[] => {
    const listed = given(key, []);
    if (!Array.isArray(listed)) throw wrong(key, "be a list of tables", repr(listed));
    return listed;
  };
  const [context, auxiliary] = [list("context"), list("auxiliary")];
  // What is not of its type yet is checked by `experimentOf`, in the order of the Python package.
  return experimentOf({
    name: given("name", "experiment") as string,
    arms: given("arms", null) as string[],
    context: context.map(featureFromTable),
    epsilon: given("epsilon", null) as unknown as number,
    horizon: given("horizon", 100_000) as number,
    auxiliary: auxiliary.map(populationFrom),
    method: given("method", "whisper"),
    releaseEvery: given("release_every", 100) as number,
    seed: given("seed", 0) as number,
    reward: given("reward", null),
    rewardWindow: given("reward_window", null),
    amendments: [],
  });
}

function populationFrom(entry: Value): Population {
  const needed = ["epsilon", "name", "users"];
  const table = check.knownKeys(entry, "an auxiliary population", [...needed, "behaviour"]);
  const missing = needed.filter((key) => !table.has(key));
  if (missing.length) {
    throw new ExperimentError(
      `an auxiliary population must have name, epsilon and users; it lacks ${repr(missing)}`,
    );
  }
  const name = check.name(table.get("name"), "the name of a population");
  const what = `of population ${repr(name)}`;
  const found: Population = {
    name,
    epsilon: check.epsilon(table.get("epsilon"), `epsilon ${what}`),
    users: check.wholeNumber(table.get("users"), `users ${what}`, 0),
  };
  const behaviour = table.get("behaviour");
  if (behaviour != null) found.behaviour = check.propensities(behaviour, `behaviour ${what}`);
  return found;
}

/** Write the first form of an experiment, with all defaults filled in. */
export function experimentTable(experiment: Experiment): Table {
  if (experiment.first) return experimentTable(experiment.first);
  const { name, arms, context, epsilon, horizon, auxiliary, settings, releaseEvery, seed } = experiment;
  const { reward, rewardWindow, rewards } = experiment;
  return table({
    name,
    arms,
    context: context.map((each) => each.toTable()),
    epsilon: real(epsilon),
    horizon,
    auxiliary: auxiliary.map(({ name, epsilon, users, behaviour }) =>
      table({ name, epsilon: real(epsilon), users, behaviour: behaviour?.map(real) }),
    ),
    method: settings.toTable(),
    release_every: releaseEvery,
    seed,
    reward: rewards.clamps ? [real(rewards.low), real(rewards.high)] : (reward ?? undefined),
    reward_window: rewardWindow ?? undefined,
  });
}

const fingerprints = new WeakMap<MethodSettings, string>();

/** The SHA-256 of all public settings of the first form, as 64 hexadecimal digits. */
export function fingerprint(experiment: Parts): string {
  const first = (experiment.first ?? experiment) as Experiment;
  // The settings are the one part that all forms of an experiment share.
  let found = fingerprints.get(first.settings);
  if (!found) {
    found = hex(sha256(utf8(canonical(experimentTable(first)))));
    fingerprints.set(first.settings, found);
  }
  return found;
}
