/** What is delivered: its weight, what it needs, and that nothing is left out of it. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const dist = (name) => readFileSync(new URL(`../dist/${name}`, import.meta.url), "utf8");

test("the file for pages weighs what the README says, at most", () => {
  const said = /([0-9.]+) kB in gzip/.exec(readFileSync(new URL("../README.md", import.meta.url), "utf8"));
  const bytes = gzipSync(dist("sottovoce.min.js"), { level: 9 }).length;
  assert.ok(bytes <= 1000 * said[1], `${bytes} bytes in gzip, and the README says ${said[1]} kB`);
});

test("the core needs no module of Node, and asks for no other file", () => {
  const page = dist("sottovoce.min.js");
  assert.ok(!/\bimport[ ({*"]|\brequire\(|\bnode:|\bprocess\.|\bBuffer\b/.test(page));
  assert.ok(!/node:/.test(dist("index.js")));
});
