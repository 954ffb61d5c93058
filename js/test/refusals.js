/** Compares what this device refuses, and in which words, with what Python's device did. */

import {
  blockFromJson,
  Device,
  encode,
  hex,
  outcomeOf,
  realText,
  Releases,
  releaseFromJson,
  shortText,
} from "../dist/device.js";

/** Read a double as Python's `float.hex` writes it. */
export function fromHex(text) {
  const [, sign, whole, fraction = "", power] = /^(-?)0x(\d)\.?([0-9a-f]*)p([-+]\d+)$/.exec(text);
  const digits = parseInt(whole + fraction, 16);
  const scaled = digits * 2 ** (-4 * fraction.length);
  // In two steps: 2^-1074 alone is a double, and so is every product on the way.
  const half = Math.trunc(+power / 2);
  return (sign ? -1 : 1) * scaled * 2 ** half * 2 ** (+power - half);
}

const READERS = {
  release: ({ text }) => hex(releaseFromJson(text).id),
  follow({ text, before }) {
    const device = new Device(releaseFromJson(before), { ledger: { spend() {} }, publicArms: true });
    device.follow(releaseFromJson(text));
    return "followed";
  },
  "signed release": ({ text, experiment, keys }) =>
    new Releases("https://sottovoce.test", experiment, keys).verify(text).link,
  chain: ({ text }) => blockFromJson(text).length,
  context: ({ text, context }) => encode(releaseFromJson(text).experiment, context),
  reward: ({ text, reward }) => outcomeOf(releaseFromJson(text).experiment, reward) ?? 0,
};

export function judged(one) {
  try {
    return { takes: READERS[one.kind](one) };
  } catch (error) {
    return { error: error.name, reason: error.reason ?? null, message: error.message };
  }
}

const same = (gives, wanted) => {
  if (wanted.takes === undefined || gives.takes === undefined) return JSON.stringify(gives) === JSON.stringify(wanted);
  const [one, other] = [gives.takes, wanted.takes];
  if (typeof one === "number" && typeof other === "string") return Object.is(one, fromHex(other));
  if (Array.isArray(other)) return other.every((each, i) => Object.is(one[i], fromHex(each)));
  return one === other;
};

/** Return a line for each case that this device judges in another way. */
export function refusalDifferences({ refused, numbers }) {
  const found = [];
  for (const one of refused) {
    const gives = judged(one);
    if (!same(gives, one.gives)) {
      found.push(`${one.kind}: ${JSON.stringify(gives)}\n  not ${JSON.stringify(one.gives)}\n  for ${JSON.stringify(one).slice(0, 300)}`);
    }
  }
  for (const [digits, text, short] of numbers) {
    const number = fromHex(digits);
    if (realText(number) !== text) found.push(`${digits}: ${realText(number)}, not ${text}`);
    const brief = shortText(Math.abs(number));
    if (brief !== short) found.push(`${digits}: ${brief}, not ${short}`);
  }
  return found;
}

