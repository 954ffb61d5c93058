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

const here = fileURLToPath(new URL("..", import.meta.url));
const VECTORS = "vectors.test.js";

/** [what goes wrong, module, old, new, tests] */
const MUTANTS = [
  ["draws below a limit are biased", "device/randomness.ts", "while (drawn >= limit) drawn = bits(count);", "drawn %= limit;"],
  ["one bit is always 0", "device/randomness.ts", ">> BigInt(8 * length - count)", ">> BigInt(8 * length - count) << 1n >> 1n & ~1n"],
  ["the sign is that of the outcome, without a coin", "device/whisper/subset.ts", "[Number(roundedUp(value))]", "[Number(roundedUp(value) || value > 0)]"],
  ["the own cell is told too often", "device/whisper/subset.ts", "chance(truth, truth + rest)", "chance(truth * 2n, truth + rest)"],
  ["a cell that is not told is never turned", "device/whisper/subset.ts", "[0, -sign, sign, sign]", "[0, 0, sign, sign]"],
  ["who has no cell shows it", "device/whisper/subset.ts", "[wanted, here][Number(cell === undefined)]", "[wanted, 0][Number(cell === undefined)]"],
  ["the wrong cell makes room", "device/whisper/subset.ts", "[joiner, at, leaver]", "[leaver, at, joiner]"],
  ["the last cell is never picked", "device/whisper/subset.ts", "const left = BigInt(cells - place);", "const left = BigInt(cells - place - 1 || 1);"],
  ["all signs are alike", "device/whisper/subset.ts", "(signs >> BigInt(size - 1 - i)) & 1n", "signs & 1n"],
  ["half an outcome rounds up", "device/whisper/subset.ts", "onGrid(value) <<", "onGrid(Math.ceil(value)) <<"],
  ["A is rounded up", "shared/whisper/subset.ts", "return total >> GUARD_BITS;", "return (total >> GUARD_BITS) + 1n;", "primitives.test.js"],
  ["A is capped too late", "shared/whisper/subset.ts", "Math.min(epsilon, 64)", "Math.min(epsilon, 80)"],
  ["the set is one too large", "shared/whisper/subset.ts", "? below : below + 1n;", "? below : below + 2n;"],
  ["who has nothing to tell is left out", "device/whisper/answer.ts", "[Number(whole < 0 || outcome === null || silent)]", "[Number(whole < 0 || silent)]"],
  ["elsewhere is a cell of somebody", "device/whisper/answer.ts", "mechanism.cells - 1 : undefined", "mechanism.cells - 2 : undefined"],
  ["the second arm has the sign of the first", "device/whisper/answer.ts", "arm !== policy.arms[0];\n  let", "arm === policy.arms[0];\n  let"],
  ["the middle belongs to the lower half", "device/whisper/answer.ts", "Number(place >= middle)", "Number(place > middle)"],
  ["the rival of a capped arm tells always", "device/whisper/draw.ts", "[0, bounds.length - 1]", "[0, 0]"],
  ["the question is drawn by whether the bin is settled", "device/whisper/draw.ts", "if (!layout) return { kind };", "if (layout && release.bins.length > 3) return { kind };"],
  ["rows are asked as people are", "device/whisper/draw.ts", "logged && halves.parts !== 2", "false"],
  ["a ranking is not uniform", "device/whisper/draw.ts", "arms.splice(below(arms.length), 1)", "arms.splice(below(2) % arms.length, 1)"],
  ["the arm is drawn with 52 bits", "device/coins.ts", "export const BITS = 53", "export const BITS = 52"],
  ["the arm stays for all bins alike", "device/coins.ts", "`(${repr(path)}, ", "`("],
  ["ε is not spent", "device/whisper/index.ts", "await spend();", ""],
  ["ε is spent twice", "device/whisper/index.ts", "population, null, () => {});", "population, null, spend);"],
  ["the set for 0 is the set for 1", "device/whisper/index.ts", "mechanism && aboutOutcome", "mechanism && !aboutOutcome"],
  ["what comes later is drawn by what came", "device/whisper/index.ts", "const up = subset.roundedUp(2 * (outcome ?? 0.5) - 1);", "const up = outcome === 1 || (outcome !== 0 && subset.roundedUp(2 * (outcome ?? 0.5) - 1));"],
  ["rewards beyond the bounds are kept", "shared/reward.ts", "Math.min(Math.max(share, 0), 1)", "2 * share"],
  ["numbers out of bounds are kept", "shared/schema.ts", "(Math.min(Math.max(number, low), high) - low)", "(number - low)"],
  ["propensities that do not add up are taken", "shared/release.ts", "!fits || !isOne(exactSum(chances))", "!fits"],
  ["another text is taken", "shared/release.ts", "if (canonical(releaseTable(release)) !== text)", "if (!text)"],
  ["retired arms are on offer", "shared/release.ts", "named.some((arm) => retired.has(arm))", "!named"],
  ["amendments are not chained", "shared/amendments.ts", "amendment.before !== (last", "amendment.before === null && (last"],
  ["an amendment may be forgotten", "shared/amendments.ts", "before.amendments.every(", "before.amendments.some(", "vectors.test.js"],
  ["any key is trusted", "device/releases.ts", "if (!trusted) {", "if (!keyId) {"],
  ["any signature is good", "device/releases.ts", "if (!verify(trusted, signature, messageOf(signed))) {", "if (!verify) {"],
  ["small keys are keys", "device/signature.ts", "eight[0] === 0n && eight[1] === eight[2] ? undefined : point", "point", "primitives.test.js"],
  ["S may be L and more", "device/signature.ts", "|| scalar >= L", "", "primitives.test.js"],
  ["another history is followed", "device/releases.ts", "if (hex(hashes.reduce(nextLink, unhex(followed.link))) !== found.before) {", "if (!found) {", "server.test.js"],
  ["a second text is followed", "device/releases.ts", "if (found.link === followed.link) return found;", "return found;", "server.test.js"],
  ["ε is spent after the draw", "device/whisper/index.ts", "await spend();\n  return { ...coins, mechanism, payload: subset.whisper(mechanism, ...answer) };", "const payload = subset.whisper(mechanism, ...answer);\n  spend();\n  return { ...coins, mechanism, payload };", "client.test.js"],
  ["ε is added in doubles", "device/ledger.ts", "return total + onGrid(epsilon);", "return onGrid(Number(total) / 2 ** 1074 + epsilon);", "ledger.test.js"],
  ["what is left may be exceeded", "device/ledger.ts", "if (onGrid(cost) > left)", "if (left <= 0n)", "ledger.test.js"],
  ["a budget for a time is over a second early", "device/ledger.ts", "this.#now() - length - 1", "this.#now() - length", "ledger.test.js"],
  ["what has gone passes for new", "device/store.ts", "if (text === null && !this.#seen)", "if (text === null)", "ledger.test.js"],
  ["an emptied store passes for new", "device/store.ts", "if (text === null && !this.#seen)", "if (!text && !this.#seen)", "file.test.js"],
  ["no room is held", "device/client.ts", "await this.#outbox.holdRoom();", "", "client.test.js"],
  ["a decision stays after its report", "device/kept_decisions.ts", "delete state.decisions[id];", "", "client.test.js"],
  ["reports do not wait for the window", "device/kept_decisions.ts", "held ? expires : 0", "0", "client.test.js"],
  ["a report is dropped without an answer", "device/sending.ts", "if (!response || !table || response.status < 200 || response.status >= 300) return undefined;", "if (!table) return undefined;", "server.test.js"],
  ["a count that does not add up is a verdict", "device/sending.ts", "one + again + entries.length === count", "count > 0", "server.test.js"],
  ["an arm is shown with its decision", "device/kept_decisions.ts", "enumerable: false", "enumerable: true", "client.test.js"],
];

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
