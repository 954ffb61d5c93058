/** Rewards as their owner counts them: from an outcome to a number in [0, 1]. */

import { finite, type Given, wrong } from "./check.js";
import { kindOf, must, RewardError } from "./errors.js";
import { repr } from "./values.js";

/** How the rewards of an experiment are counted; clamps: what is beyond the bounds counts as one. */
export interface RewardScale {
  low: number;
  high: number;
  clamps: boolean;
}

/** Read the setting `reward` of an experiment; without one, rewards are numbers in [0, 1]. */
export function rewardScale(setting: Given): RewardScale {
  if (setting == null || setting === "yes/no") return { low: 0, high: 1, clamps: false };
  const [low, high] = Array.isArray(setting) && setting.length === 2 ? setting.map(finite) : [];
  if (low === undefined || high === undefined || !(high - low > 0 && high - low < Infinity)) {
    throw wrong("reward", 'be two numbers, the lower one first, or "yes/no"', repr(setting));
  }
  return { low, high, clamps: true };
}

/** Return a reward as a number in [0, 1], or raise RewardError. */
export function outcome({ low, high, clamps }: RewardScale, reward: unknown): number {
  const asked = typeof reward === "boolean" && low === 0 && high === 1;
  const number = finite(asked ? Number(reward) : reward);
  if (number === undefined || !(clamps || (low <= number && number <= high))) {
    const rule = clamps ? "be a finite number" : "be a number in [0, 1]";
    throw new RewardError(must("a reward", rule, kindOf(reward)));
  }
  const share = (Math.min(Math.max(number, low), high) - low) / (high - low);
  return Math.min(Math.max(share, 0), 1);
}
