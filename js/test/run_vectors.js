/** Reads vectors from a file, `node run_vectors.js FILE`, and prints what differs. */

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { differences } from "./vectors.js";

const bytes = readFileSync(process.argv[2]);
const vectors = JSON.parse(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes);
const found = await differences(vectors);
for (const line of found.slice(0, 20)) console.log(line);
console.log(`${vectors.cases.length} cases, ${found.length} differences`);
process.exitCode = found.length ? 1 : 0;
