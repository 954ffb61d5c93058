/** Every mistake of `mutations.js` can still be made: its text is there, once. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { MUTANTS } from "./mutations.js";

test("each mistake has its place", () => {
  for (const [what, file, old] of MUTANTS) {
    const text = readFileSync(new URL(`../src/${file}`, import.meta.url), "utf8");
    assert.equal(text.split(old).length, 2, what);
  }
});
