/**
 * Makes mistakes on purpose, one at a time, and sees that the tests find each: `npm run mutants`.
 *
 * A mistake is a piece of a module's text and what replaces it. It is found if the vectors differ, or if
 * the tests that are named fail.
 */

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { MUTANTS } from "./mutations.js";

const here = fileURLToPath(new URL("..", import.meta.url));
const VECTORS = "vectors.test.js";

function tests(folder, names) {
  const run = ["--test", ...names.map((name) => join(folder, "js/test", name))];
  return spawnSync(process.execPath, run, { encoding: "utf8", timeout: 120_000 });
}

/** Return whether the tests find a mistake; throw if it cannot be made. */
async function found([what, file, old, changed, ...names]) {
  const folder = mkdtempSync(join(tmpdir(), "sottovoce-mutant-"));
  try {
    for (const name of ["src", "test"]) cpSync(join(here, name), join(folder, "js", name), { recursive: true });
    cpSync(join(here, "README.md"), join(folder, "js/README.md"));
    symlinkSync(join(here, "../tests"), join(folder, "tests"));
    const path = join(folder, "js/src", file);
    const text = readFileSync(path, "utf8");
    if (text.split(old).length !== 2) throw new Error(`${what}: its text is not there once`);
    writeFileSync(path, text.replace(old, () => changed));
    const entryPoints = ["index", "node", "device"].map((name) => join(folder, `js/src/${name}.ts`));
    const outdir = join(folder, "js/dist");
    await build({ entryPoints, outdir, bundle: true, splitting: true, format: "esm", external: ["node:*"] });
    return tests(folder, names.length ? names : [VECTORS]).status !== 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (tests(join(here, ".."), [VECTORS]).status !== 0) throw new Error("the tests fail without a mistake");
const only = process.argv[2];
const missed = [];
const chosen = MUTANTS.filter(([what]) => !only || what.includes(only));
for (const mutant of chosen) if (!(await found(mutant))) missed.push(mutant[0]);
for (const what of missed) console.log(`not found: ${what}`);
console.log(`${chosen.length - missed.length} of ${chosen.length} mistakes were found`);
process.exitCode = missed.length ? 1 : 0;
