/**
 * The TypeScript device as a mechanism for `sottovoce audit`:
 *
 *     sottovoce audit --command "node js/audit.js"
 *
 * Reads a request in each line, and writes the bytes of a report in each: docs/reference/audit.md. With
 * the word `decisions`, it reports as a client does: all but the outcome is drawn before the outcome is
 * known. Every request is answered by a new device.
 */

import { createInterface } from "node:readline";
import {
  DecidingDevice,
  Device,
  finish,
  freshCoins,
  hex,
  OneReport,
  releaseFromJson,
  reportToBytes,
  source,
} from "./dist/device.js";

const decisions = process.argv[2] === "decisions";
const releases = new Map();

function released(text) {
  if (!releases.has(text)) releases.set(text, releaseFromJson(text));
  return releases.get(text);
}

async function decided(release, agreed, { context, reward }) {
  const device = new DecidingDevice(release, new OneReport(), agreed);
  const { prepared, population } = await device.draw(context, freshCoins);
  const { kept, ...coins } = prepared;
  const payload = finish(release.experiment, kept, reward);
  return { release: release.id, population, nonce: source.bytes(16), payload, ...coins };
}

async function reported({ release: text, population, context, arm, reward, logged }) {
  const release = released(text);
  const agreed = { population: release.experiment.populations[population].name, publicArms: true };
  if (!logged && decisions) return decided(release, agreed, { context, reward });
  const device = new Device(release, agreed);
  if (!logged) {
    device.choose(context);
    return device.report({ reward });
  }
  if (context === null || arm === null || reward === null) return device.reportNothingLogged();
  return device.reportLogged(context, { arm, reward });
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${hex(reportToBytes(await reported(JSON.parse(line))))}\n`);
}
