/**
 * The coins of `whisper`. The public ones are the question and the ranking: the device draws them
 * without looking at the person. One is private: whether a person tells of an outcome, where an arm is
 * capped.
 */

import { roundEven } from "../../shared/exact.js";
import { once, type Release } from "../../shared/release.js";
import { patternsOf } from "../../shared/whisper/axes.js";
import { toldShareOfArm } from "../../shared/whisper/caps.js";
import { type CellLayout, cellLayout, halvesOf } from "../../shared/whisper/cells.js";
import { type Kind, type Menu, menuOf, type Question, questionOf } from "../../shared/whisper/questions.js";
import {
  ASK,
  LOGGED_FEATURE_SHARE,
  LOGGED_FEATURE_SHARE_APART,
  SHARES,
} from "../../shared/whisper/tuning.js";
import { BITS } from "../coins.js";
import type { Secret } from "../method.js";
import { below, chanceOfBits } from "../randomness.js";

/** Draw one of the questions that a person may be asked, by their public shares. */
export function drawQuestion(release: Release, population: number, logged: boolean): Question {
  const { experiment, thresholds } = release;
  const served = population === 0 && !logged;
  if (served && below(SHARES) < release.rewardShare) return { kind: kindAboutReward(release) };
  if (below(SHARES) < release.scaleShare) {
    const axes = thresholds.flatMap((threshold, axis) => (threshold ? [axis] : []));
    const axis = axes[below(axes.length)] as number;
    return { kind: logged ? "LOGGED_SCALE" : "SCALE", axis, row: (thresholds[axis] as number) - 1 };
  }
  const menu = once(release, `menu ${population} ${logged}`, () => menuOf(experiment, population, logged));
  const kind = askedKind(menu);
  const layout = cellLayout(release, population, questionOf(experiment, kind));
  if (!layout) return { kind };
  const axis = askedAxis(release.ask, axisCoin(release, layout, logged));
  if (axis < 0) return { kind };
  const patterns = patternsOf(experiment);
  const count = (patterns[axis + 1] as number) - (patterns[axis] as number);
  return { kind, axis, row: below(layout.mechanism(axis).parts > 1 ? 1 : count) };
}

/** Draw a kind: the first of the menu whose bound is above the coin. */
function askedKind({ kinds, bounds }: Menu): Kind {
  const coin = below(SHARES);
  return kinds[bounds.findIndex((bound) => coin < bound)] as Kind;
}

/** Draw what somebody is asked who is asked for their reward; where there is one bin, that. */
function kindAboutReward(release: Release): Kind {
  if (release.bins.length === 1) return "REWARD";
  return askedKind(once(release, "menu of audits", () => menuOf(release.experiment, 0, false, true)));
}

/** Return the axis that a coin asks about; -1, the first, for none. */
function askedAxis(ask: number[], coin: number): number {
  let left = coin;
  return ask.findIndex((share) => (left -= share) < 0) - 1;
}

/** Draw the coin that decides which axis is asked about; the lowest ones ask about none. */
function axisCoin(release: Release, layout: CellLayout, logged: boolean): number {
  const halves = halvesOf(layout, release.experiment);
  const none = release.ask[0] as number;
  let whole = halves.parts === 2 ? 0 : none;
  if (logged && halves.parts !== 2) {
    const least = halves.elsewhere ? LOGGED_FEATURE_SHARE_APART : LOGGED_FEATURE_SHARE;
    whole = Math.min(none, Math.floor(((ASK - none) * (SHARES - least)) / least));
  }
  return none - whole + below(ASK - (none - whole));
}

/**
 * Draw whether a person tells of an outcome: where an arm is capped, not all with its rival. In a
 * release without a cap nobody draws; in others everybody does, by as many bits.
 */
export function drawTelling(release: Release, { policy, arm }: Secret): boolean {
  if (!release.experiment.caps.size) return true;
  const bounds = once(release, "telling", () => tellingBounds(release)).get(policy.path) as number[];
  const place = [0, bounds.length - 1][Number(arm !== policy.arms[0])] as number;
  return chanceOfBits(BigInt(bounds[place] as number), BITS);
}

/** Return how many of 2^53 coins tell, for each arm of each bin. */
const tellingBounds = ({ bins }: Release): Map<string, number[]> =>
  new Map(
    bins.map(({ path, propensities }) => [
      path,
      propensities.map((share) => roundEven(2 ** BITS * toldShareOfArm(share))),
    ]),
  );

/** Draw a public order of the arms, each order with the same probability. */
export function drawRanking({ experiment }: Release): number[] {
  const arms = experiment.arms.map((_, arm) => arm);
  return experiment.arms.map(() => arms.splice(below(arms.length), 1)[0] as number);
}
