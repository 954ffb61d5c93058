/** Reads vectors from a file, `node test/run_vectors.js FILE`, and prints what differs. */

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { refusalDifferences } from "./refusals.js";
import { differences } from "./vectors.js";

const bytes = readFileSync(process.argv[2]);
const vectors = JSON.parse(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes);
const found = [...(await differences(vectors)), ...refusalDifferences(vectors)];
for (const line of found.slice(0, 20)) console.log(line);
const { cases, refused, numbers } = vectors;
console.log(`${cases.length} cases, ${refused.length} refusals, ${numbers.length} numbers; ${found.length} differences`);
process.exitCode = found.length ? 1 : 0;
