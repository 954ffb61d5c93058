/** The ledger: exact, for a lifetime or a time, and closed when anything is wrong. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { BudgetSpent, Ledger, LedgerError, memoryStore } from "../dist/index.js";
import { Clock, Fragile } from "./support.js";

const FOR = { experiment: "ab".repeat(32), name: "walking", release: 3 };

test("ten tenths are more than one: every ε is added exactly", async () => {
  const ledger = new Ledger(memoryStore(), { budget: 1 });
  for (let i = 0; i < 9; i++) await ledger.spend(0.1, FOR);
  await assert.rejects(ledger.spend(0.1, FOR), /be at most 0\.09999999999999995, what is left; got 0\.1/);
  assert.equal((await ledger.entries()).length, 9);
});

test("a budget for a time comes back, to the second", async () => {
  const clock = new Clock();
  const ledger = new Ledger(memoryStore(), { budget: 2, per: "30 days", now: clock.read });
  await ledger.spend(1.5, FOR);
  clock.now += 30 * 86400;
  await assert.rejects(ledger.spend(1, FOR), BudgetSpent);
  clock.now += 1;
  await ledger.spend(1, FOR);
  clock.now -= 3600 * 24 * 365; // set back: what was spent later counts as well
  await assert.rejects(ledger.spend(0.75, FOR), BudgetSpent);
});

test("people who spend at once never spend more than there is", async () => {
  const store = memoryStore();
  const ledgers = Array.from({ length: 5 }, () => new Ledger(store, { budget: 10 }));
  const spent = await Promise.allSettled(
    Array.from({ length: 50 }, (_, i) => ledgers[i % 5].spend(1, FOR)),
  );
  assert.equal(spent.filter((each) => each.status === "fulfilled").length, 10);
  assert.equal(await ledgers[0].left(), 0);
});

test("another budget is refused, and can be changed to", async () => {
  const store = memoryStore();
  await new Ledger(store, { budget: 2 }).spend(1.5, FOR);
  await assert.rejects(new Ledger(store, { budget: 3 }).left(), /be ε = 2, as in memory has it; got ε = 3/);
  await assert.rejects(new Ledger(store, { budget: 2, per: "1 day" }).left(), LedgerError);
  const larger = await Ledger.change(store, { budget: 3 });
  assert.equal(await larger.left(), 1.5);
  await assert.rejects(new Ledger(store, { budget: 2 }).left(), LedgerError);
  const receipt = await larger.receipt();
  assert.match(receipt, /lifetime budget  ε = 3\n {2}spent {12}ε = 1\.5 in 1 reports\n {2}left {13}ε = 1\.5/);
  assert.match(receipt, /budget before {4}ε = 2, until 20/);
  assert.match(receipt, /walking \(abababababababab\)/);
  await assert.rejects(Ledger.change(memoryStore(), { budget: 3 }), LedgerError);
});

test("a ledger that is damaged, emptied or gone spends nothing", async () => {
  const entry = { moment: "2026-03-01T00:00:00+00:00", ...FOR, epsilon: 1 };
  const state = (spent) =>
    JSON.stringify({ sottovoce: "a privacy ledger", version: 1, budgets: [{ epsilon: 2, per: null, since: "" }], spent });
  for (const text of [
    "",
    "x",
    "{}",
    null,
    state([{ ...entry, epsilon: -1 }]),
    state([{ ...entry, epsilon: "1" }]),
    state([{ ...entry, epsilon: null }]),
    state([{ ...entry, moment: "yesterday" }]),
    state([entry]).replace('"version":1', '"version":2'),
    state([entry]).replace("privacy ledger", "outbox"),
    state([entry]).replace('"spent":', '"sent":'),
  ]) {
    const store = new Fragile();
    const ledger = new Ledger(store, { budget: 2 });
    await ledger.spend(0.5, FOR);
    store.text = text;
    await assert.rejects(ledger.spend(0.5, FOR), LedgerError, text ?? "gone");
    assert.equal(store.text, text);
  }
});

test("a budget that cannot be is refused at once", () => {
  for (const settings of [{ budget: 0 }, { budget: NaN }, { budget: 1, per: "soon" }, { budget: 1, per: "0 days" }]) {
    assert.throws(() => new Ledger(memoryStore(), settings));
  }
});
