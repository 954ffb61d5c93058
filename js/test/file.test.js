/** The store in a file: several processes, crashes, and locks that stay behind. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Ledger, LedgerError } from "../dist/index.js";
import { fileStore } from "../dist/node.js";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "sottovoce-"));
test.after(() => rmSync(folder, { recursive: true }));

const FOR = { experiment: "ab".repeat(32), name: "walking", release: 3 };

test("a text is kept, and nothing else stays", async () => {
  const path = join(folder, "kept");
  const store = fileStore(path);
  await store.change((text) => {
    assert.equal(text, null);
    return "one";
  });
  await Promise.all(Array.from({ length: 20 }, () => store.change((text) => `${text}.`)));
  await assert.rejects(
    store.change(() => {
      throw new Error("no");
    }),
    /no/,
  );
  assert.equal(readFileSync(path, "utf8"), `one${".".repeat(20)}`);
  assert.deepEqual(readdirSync(folder), ["kept"]);
});

const SPENDER = `
import { Ledger, BudgetSpent } from "INDEX";
import { fileStore } from "NODE";
const ledger = new Ledger(fileStore(process.argv[1]), { budget: 30 });
let spent = 0;
for (let i = 0; i < 15; i++) {
  try { await ledger.spend(1, { experiment: "x", name: "y", release: 1 }); spent++; }
  catch (error) { if (!(error instanceof BudgetSpent)) throw error; }
}
console.log(spent);
`
  .replace("INDEX", new URL("../dist/index.js", import.meta.url))
  .replace("NODE", new URL("../dist/node.js", import.meta.url));

test("several processes never spend more than there is", async () => {
  const path = join(folder, "ledger");
  const spend = () => run(process.execPath, ["--input-type=module", "-e", SPENDER, path]);
  const done = await Promise.all([spend(), spend(), spend()]);
  assert.equal(done.reduce((sum, { stdout }) => sum + +stdout, 0), 30);
});

test("a lock that stays behind, a folder that is not there and a damaged file are said in words", async () => {
  const path = join(folder, "stale");
  const ledger = new Ledger(fileStore(path), { budget: 2 });
  writeFileSync(`${path}.lock`, "of another");
  utimesSync(`${path}.lock`, 0, 0);
  await assert.rejects(ledger.spend(1, FOR), /of a process that has ended: remove it/);
  rmSync(`${path}.lock`);
  await ledger.spend(1, FOR);
  writeFileSync(path, "");
  await assert.rejects(ledger.spend(1, FOR), LedgerError);
  await assert.rejects(new Ledger(fileStore(path), { budget: 2 }).spend(1, FOR), LedgerError);
  const nowhere = new Ledger(fileStore(join(folder, "no", "where")), { budget: 2 });
  await assert.rejects(nowhere.spend(1, FOR), /must be readable and writable/);
});
