/** Compares this device with what Python's device gave: the vectors of tests/vectors. */

import {
  DecidingDevice,
  Device,
  finish,
  freshCoins,
  hex,
  releaseFromJson,
  reportToBytes,
  sha256,
  source,
  stickyCoins,
  unhex,
} from "../dist/device.js";

/** A ledger that only counts. */
class Purse {
  spent = [];
  spend(epsilon) {
    this.spent.push(epsilon);
  }
}

/** The bytes of SHA-256 of a seed and a counter, in the place of the operating system's. */
export function stream(seed) {
  let ready = [];
  let blocks = 0;
  const found = { taken: 0 };
  source.bytes = (count) => {
    while (ready.length < count) ready.push(...sha256(new TextEncoder().encode(`${seed} ${blocks++}`)));
    found.taken += count;
    const bytes = Uint8Array.from(ready.slice(0, count));
    ready = ready.slice(count);
    return bytes;
  };
  return found;
}

const known = new Map();
const released = (text) => {
  if (!known.has(text)) known.set(text, releaseFromJson(text));
  return known.get(text);
};

/** Return what this device gives in one case. */
export async function outcome(one, text) {
  const release = released(text);
  const purse = new Purse();
  const agreed = { population: one.population, publicArms: true };
  const taken = stream(one.seed);
  let arm = null;
  let report = null;
  try {
    if (one.kind === "decision") {
      const device = new DecidingDevice(release, purse, agreed);
      const drawn = await device.draw(one.context, one.key ? stickyCoins(unhex(one.key)) : freshCoins);
      if (drawn.trouble) throw drawn.trouble;
      arm = drawn.arm;
      if (drawn.prepared) {
        const { kept, ...coins } = drawn.prepared;
        const nonce = source.bytes(16);
        const payload = finish(release.experiment, kept, one.reward);
        report = { release: release.id, population: drawn.population, nonce, payload, ...coins };
      }
    } else {
      const device = new Device(release, { ...agreed, ledger: purse });
      if (one.kind === "report") {
        arm = device.choose(one.context);
        report = await device.report({ reward: one.reward });
      } else if (one.kind === "logged") {
        report = await device.reportLogged(one.context, { arm: one.arm, reward: one.reward });
      } else {
        report = await device.reportNothingLogged();
      }
    }
  } catch (error) {
    return { error: error.name, message: error.message, arm };
  }
  return {
    arm,
    question: report ? report.question : null,
    report: report ? hex(reportToBytes(report)) : null,
    bytes: taken.taken,
    spent: purse.spent,
  };
}

/** Compare all cases of some vectors; return a line for each that differs. */
export async function differences({ releases, cases }) {
  const found = [];
  for (const one of cases) {
    const gives = await outcome(one, releases[one.release]);
    const wanted = one.gives;
    const keys = new Set([...Object.keys(wanted), ...Object.keys(gives)]);
    // What OpenDP does is not in the vectors: there the kind of error is enough.
    if (wanted.error && !("message" in wanted)) keys.delete("message");
    for (const key of keys) {
      if (JSON.stringify(gives[key]) !== JSON.stringify(wanted[key])) {
        found.push(`${one.seed} (${one.kind}): ${key} is ${JSON.stringify(gives[key])}, not ${JSON.stringify(wanted[key])}`);
      }
    }
  }
  return found;
}
