/** The committed vectors: the same arms, questions, report bytes and refusals as in Python. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { refusalDifferences } from "./refusals.js";
import { differences } from "./vectors.js";

const path = new URL("../../tests/vectors/vectors.json.gz", import.meta.url);
const vectors = JSON.parse(gunzipSync(readFileSync(path)));

test("the vectors have the same arms, questions and report bytes", async () => {
  assert.ok(vectors.cases.length >= 400);
  assert.deepEqual(await differences(vectors), []);
});

test("what is refused is refused in the same words, and numbers have the same text", () => {
  assert.ok(vectors.refused.length >= 200);
  assert.deepEqual(refusalDifferences(vectors), []);
});

test("a vector that is not right is found", async () => {
  const [first] = vectors.cases.filter((each) => each.gives.report);
  const wrong = { ...first, gives: { ...first.gives, report: `${first.gives.report.slice(0, -1)}x` } };
  assert.equal((await differences({ ...vectors, cases: [wrong] })).length, 1);
});
