/** `whisper`, this project's method: its settings, and which experiments and releases fit. */

import { finite, wrong } from "../check.js";
import { malformed } from "../errors.js";
import type { MethodSettings } from "../methods.js";
import type { Release } from "../release.js";
import { isWhole, real, repr, table, type Table } from "../values.js";
import { capsOf, needsUncappedRival, NO_CAP, shareOf } from "./caps.js";
import { mostQuestions } from "./questions.js";
import { ASK, SHARES, THRESHOLDS } from "./tuning.js";

export const whisper = {
  keys: ["guarantee", "delta", "public_arms", "half_life"],
  read(settings: Table): MethodSettings {
    const given = (key: string, usual: boolean | string) => (settings.has(key) ? settings.get(key) : usual);
    const guarantee = given("guarantee", "regret");
    const certified = guarantee === "certified";
    if (guarantee !== "regret" && !certified) {
      throw wrong("the guarantee of whisper", "be 'regret' or 'certified'", repr(guarantee));
    }
    const delta = settings.has("delta") ? finite(settings.get("delta")) : 0.05;
    if (delta === undefined || !(0 < delta && delta < 1)) {
      throw wrong("delta of whisper", "lie in (0, 1)", repr(settings.get("delta")));
    }
    const publicArms = given("public_arms", false);
    if (typeof publicArms !== "boolean") {
      throw wrong("public_arms of whisper", "be true or false", repr(publicArms));
    }
    const halfLife = settings.get("half_life") ?? undefined;
    const whole = isWhole(halfLife) || typeof halfLife === "bigint";
    if (halfLife !== undefined && !(whole && halfLife >= 1)) {
      throw wrong("half_life of whisper", "be a whole number of people, at least 1", repr(halfLife));
    }
    if (halfLife !== undefined && certified) {
      const rule = "learn for good where it is certified: a proof does not fade";
      throw wrong("whisper", rule, "a half_life too");
    }
    if (publicArms && certified) {
      throw wrong("whisper", "have private arms for its certified guarantee", "public_arms too");
    }
    return {
      name: "whisper",
      publicArms,
      certified,
      toTable: () =>
        table({ name: "whisper", guarantee, delta: real(delta), public_arms: publicArms, half_life: halfLife }),
      checkExperiment(experiment) {
        const questions = mostQuestions(experiment);
        if (questions > 2 ** 16) {
          const rule = "have fewer features, or fewer levels without order: ";
          throw wrong("the context", `${rule}reports number their questions in two bytes`, questions);
        }
        const count = experiment.arms.length;
        if (publicArms && count > 255) {
          throw wrong("arms", "be at most 255 where they are public: a report ranks them in bytes", count);
        }
        if (publicArms && experiment.caps.size) {
          const rule = "have no cap where arms are public: people get each live arm equally often";
          throw wrong("an added arm", rule, "one");
        }
      },
      checkRelease: (release) => checkRelease(release, publicArms),
      mostRewardShare: (auxiliary) => (auxiliary || halfLife ? SHARES : 0),
      levelsInSets: ({ axes }) => axes.map((axis) => (axis.ordered ? 0 : axis.levels)),
    };
  },
};

/** Refuse other chances, more than two arms where they are private, and wrong shares. */
function checkRelease({ experiment, bins, ask, thresholds, scaleShare: share }: Release, publicArms: boolean): void {
  const caps = capsOf(experiment);
  for (const policy of bins) {
    const { arms, path, live } = policy;
    let chances = arms.map(() => 1 / arms.length);
    if (arms.length === 2 && !publicArms) {
      const [first, second] = arms as [number, number];
      chances = [shareOf(caps, first, second), shareOf(caps, second, first)];
      const both = (caps[first] as number) < NO_CAP && (caps[second] as number) < NO_CAP;
      if (both && needsUncappedRival(live, caps, first)) {
        const rule = "not offer two capped arms while one without a cap is live";
        throw malformed(`bin ${repr(path)}`, rule, "two");
      }
    }
    const equal = chances.every((chance, i) => chance === policy.propensities[i]);
    if (!equal || (!publicArms && arms.length > 2) || (publicArms && policy.waiting.length)) {
      const rule = publicArms ? "offer all live arms" : "offer at most two arms";
      const cap = experiment.caps.size ? ", or as the cap of one says" : "";
      throw malformed(`bin ${repr(path)}`, `${rule}, with equal chances${cap}`, "something else");
    }
  }

  const d = experiment.axes.length;
  const sum = ask.reduce((total, each) => total + each, 0);
  const fair = ask.every((each) => each >= 0) && ask.slice(1).some((each) => each);
  if (ask.length !== 1 + d || sum !== ASK || !fair) {
    const rule = `share ${ASK} people between no axis and each of ${d} axes, not all to none`;
    throw malformed("a release's ask", rule, "something else");
  }

  const most = (axis: number) => (experiment.axes[axis]?.levels === 0 ? THRESHOLDS.length : 0);
  const fits = thresholds.every((each, axis) => each >= 0 && each <= most(axis));
  const long = thresholds.length === (share ? d : 0);
  if (!long || !fits || share < 0 || share > SHARES || thresholds.some((each) => each) !== share > 0) {
    const rule = `ask up to ${SHARES} people about thresholds of numbers, if about any`;
    throw malformed("a release's thresholds and scale_share", rule, "something else");
  }
}
