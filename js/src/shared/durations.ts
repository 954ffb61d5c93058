/** Durations in words, such as "7 days". */

import { type Given, wrong } from "./check.js";
import { isText, repr } from "./values.js";

const HOUR = 3600;
const UNITS: Record<string, number> = {
  s: 1,
  sec: 1,
  second: 1,
  min: 60,
  minute: 60,
  h: HOUR,
  hour: HOUR,
  d: 24 * HOUR,
  day: 24 * HOUR,
  w: 168 * HOUR,
  week: 168 * HOUR,
};
/** What Python counts as white space. */
const PATTERN = /^(?:(?!\ufeff)[\s\x1c-\x1f\x85])*([0-9]{1,9})(?:(?!\ufeff)[\s\x1c-\x1f\x85])*([a-z]+)(?:(?!\ufeff)[\s\x1c-\x1f\x85])*$/;

/** Read a duration, and return it in seconds. */
export function duration(value: Given, what: string): number {
  const [, count, word = ""] = (isText(value) && PATTERN.exec(value)) || [];
  const unit = [word, word.replace(/s$/, "")].find((each) => Object.hasOwn(UNITS, each));
  if (!count || unit === undefined) {
    const rule = 'be a whole number with a unit, such as "90 min", "12 hours" or "7 days"';
    throw wrong(what, rule, repr(value));
  }
  const length = +count * (UNITS[unit] as number);
  if (!(length > 0 && length <= 36_500 * 24 * HOUR)) {
    throw wrong(what, "be more than 0 and at most 100 years", repr(value));
  }
  return length;
}
