/** The client of one person: choose, report, and all that may go wrong between. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ContextError,
  DeviceError,
  Ledger,
  LedgerError,
  memoryStore,
  OutboxError,
  RewardError,
} from "../dist/index.js";
import { Clock, clientOf, Fragile, releaseText, Server } from "./support.js";

const WHO = { age: 40 };

test("a person gets an arm, reports, and the report arrives", async () => {
  const server = new Server();
  const client = clientOf(server);
  const decision = await client.choose(WHO);
  assert.ok(["control", "coach"].includes(decision.arm));
  assert.equal(`${decision}`, decision.arm);
  assert.ok(decision.asked);
  assert.equal(await client.open(), 1);
  await client.report(decision, { reward: 1 });
  assert.deepEqual([await client.open(), await client.waiting()], [0, 1]);
  assert.ok(await client.flush());
  assert.deepEqual([await client.waiting(), server.reports.size], [0, 1]);
  assert.equal(client.release.version, 1);
});

test("a decision does not show its arm", async () => {
  const decision = await clientOf(new Server()).choose(WHO);
  assert.ok(!JSON.stringify(decision).includes(decision.arm));
  assert.ok(!Object.keys(decision).includes("arm"));
});

test("a report goes by its id after a restart, and is made once", async () => {
  const server = new Server();
  const [outbox, clock] = [memoryStore(), new Clock()];
  const { id } = await clientOf(server, { outbox, clock }).choose(WHO);
  const again = clientOf(server, { outbox, clock });
  await again.report(id, { reward: 0.25 });
  await assert.rejects(again.report(id, { reward: 0.25 }), DeviceError);
  await assert.rejects(again.report("never", { reward: 1 }), /never made here/);
  assert.ok(await again.flush());
  assert.equal(server.reports.size, 1);
});

test("no request carries anything about the person, and none is made by a report", async () => {
  const server = new Server();
  const client = clientOf(server);
  const decision = await client.choose({ age: 41.625 });
  const before = server.seen.length;
  await client.report(decision, { reward: 1 });
  assert.equal(server.seen.length, before);
  await client.flush();
  for (const { url, headers, body } of server.seen) {
    const all = `${url} ${JSON.stringify(headers)} ${Buffer.from(body ?? []).toString("latin1")}`;
    assert.ok(!/41\.625|coach|control/.test(all));
    assert.deepEqual(Object.keys(headers).filter((name) => !/^(Accept|Content-Type)$/.test(name)), []);
  }
});

test("what is kept in the outbox holds no context, arm or reward", async () => {
  const store = new Fragile();
  const client = clientOf(new Server(), { outbox: store });
  const decision = await client.choose({ age: 41.625 });
  const { releases, ...kept } = JSON.parse(store.text);
  assert.ok(Object.keys(releases).length);
  assert.ok(!/41\.625|41,625|coach|control/.test(JSON.stringify(kept)));
  await client.report(decision, { reward: 0.875 });
  assert.ok(!/0\.875/.test(store.text));
});

test("a refused context is paid for, reported on as nothing, and raises", async () => {
  const [server, clock] = [new Server(), new Clock()];
  const client = clientOf(server, { clock });
  for (const context of [{ age: "old" }, {}, { age: 40, name: "Ada" }, { age: NaN }, { age: Infinity }, null, []]) {
    await assert.rejects(client.choose(context), ContextError);
  }
  assert.equal(await client.open(), 7);
  clock.now += 24 * 3600;
  assert.deepEqual([await client.waiting(), await client.open()], [7, 0]);
});

test("an outcome that cannot be used leaves the decision open", async () => {
  const client = clientOf(new Server());
  const decision = await client.choose(WHO);
  for (const reward of [2, -0.1, NaN, "1", Infinity]) {
    await assert.rejects(client.report(decision, { reward }), RewardError);
  }
  await client.report(decision, { reward: null });
  assert.equal(await client.waiting(), 1);
});

test("a report waits until its decision would have expired, where there is a window", async () => {
  const server = new Server(releaseText({ experiment: { reward_window: "2 days" } }));
  const clock = new Clock();
  const client = clientOf(server, { clock });
  const decision = await client.choose(WHO);
  await client.choose(WHO);
  clock.now += 3600;
  await client.report(decision, { reward: 1 });
  assert.ok(await client.flush());
  assert.equal(server.reports.size, 0);
  clock.now += 47 * 3600;
  assert.ok(await client.flush());
  assert.equal(server.reports.size, 2);
});

test("a clock that was ahead and is set back holds nothing for longer than a window", async () => {
  const server = new Server(releaseText({ experiment: { reward_window: "2 days" } }));
  const wall = new Clock();
  wall.now += 10 * 365 * 86400;
  const client = clientOf(server, { now: wall.read });
  await client.report(await client.choose(WHO), { reward: 1 });
  await client.choose(WHO);
  wall.now -= 10 * 365 * 86400;
  await client.waiting();
  wall.now += 2 * 86400 + 1;
  assert.ok(await client.flush());
  assert.equal(server.reports.size, 2);
});

test("an outcome that comes too late is ignored, and the report says nothing", async () => {
  const clock = new Clock();
  const client = clientOf(new Server(), { clock });
  const decision = await client.choose(WHO);
  clock.now += 24 * 3600;
  await assert.rejects(client.report(decision, { reward: 1 }), /has expired/);
  assert.equal(await client.waiting(), 1);
});

test("the same person keeps the same arm, across restarts, and others do not", async () => {
  const server = new Server();
  const outbox = memoryStore();
  const arms = new Set();
  for (let i = 0; i < 20; i++) arms.add((await clientOf(server, { outbox }).choose(WHO)).arm);
  assert.equal(arms.size, 1);
  const fresh = new Set();
  const client = clientOf(server, { sticky: false });
  // All alike with a probability of 2^-59.
  for (let i = 0; i < 60; i++) fresh.add((await client.choose(WHO)).arm);
  assert.equal(fresh.size, 2);
});

test("without a ledger a client reports once, also after a restart", async () => {
  const [server, outbox] = [new Server(), memoryStore()];
  assert.ok((await clientOf(server, { outbox, ledger: undefined }).choose(WHO)).asked);
  const again = clientOf(server, { outbox, ledger: undefined });
  const decision = await again.choose(WHO);
  assert.ok(!decision.asked);
  await again.report(decision, { reward: 1 });
  assert.equal(await again.waiting(), 0);
});

test("whoever has no budget left is served and not asked", async () => {
  const server = new Server();
  const ledger = new Ledger(memoryStore(), { budget: 3.5 });
  const client = clientOf(server, { ledger });
  const asked = [];
  for (let i = 0; i < 4; i++) asked.push((await client.choose(WHO)).asked);
  assert.deepEqual(asked, [true, true, false, false]);
  assert.equal(await ledger.left(), 0.5);
});

test("a ledger that cannot be written lets nobody report", async () => {
  const store = new Fragile();
  const ledger = new Ledger(store, { budget: 100 });
  const client = clientOf(new Server(), { ledger });
  await client.choose(WHO);
  store.fail = () => "before";
  await assert.rejects(client.choose(WHO), LedgerError);
  assert.equal(await client.open(), 1);
});

test("wherever the stores fail, no ε is overspent and no report is lost or doubled", async () => {
  for (let when = 1; when < 60; when++) {
    for (const way of ["before", "after"]) {
      const [server, clock] = [new Server(), new Clock()];
      const stores = [new Fragile(), new Fragile()];
      let count = 0;
      for (const store of stores) store.fail = () => (++count === when ? way : "");
      const open = () =>
        clientOf(server, { clock, outbox: stores[0], ledger: new Ledger(stores[1], { budget: 3 }) });
      let client = open();
      for (let person = 0; person < 3; person++) {
        try {
          const decision = await client.choose(WHO);
          if (decision.asked) await client.report(decision, { reward: 1 });
        } catch (error) {
          assert.ok(error instanceof OutboxError || error instanceof LedgerError, `${error.stack}`);
          client = open();
        }
      }
      clock.now += 2 * 86400;
      await client.flush().catch(() => {});
      count = when;
      assert.ok(await client.flush());
      const spent = await new Ledger(stores[1], { budget: 3 }).entries();
      assert.ok(spent.length <= 2);
      assert.ok(server.reports.size <= spent.length, `${when} ${way}: more reports than were paid for`);
      assert.ok(server.reports.size >= spent.length - 1, `${when} ${way}: a report was lost`);
    }
  }
});

test("two clients that share stores follow one history and make each report once", async () => {
  const [server, clock] = [new Server(), new Clock()];
  const [outbox, kept] = [memoryStore(), memoryStore()];
  const open = () => clientOf(server, { clock, outbox, ledger: new Ledger(kept, { budget: 30 }) });
  const clients = [open(), open(), open()];
  const decisions = await Promise.all(
    Array.from({ length: 30 }, (_, i) => clients[i % 3].choose(WHO)),
  );
  const asked = decisions.filter((each) => each.asked);
  assert.equal(asked.length, 20);
  const told = await Promise.allSettled(
    asked.flatMap((each) => clients.map((client) => client.report(each, { reward: 1 }))),
  );
  assert.equal(told.filter((each) => each.status === "fulfilled").length, 20);
  await Promise.all(clients.map((client) => client.flush()));
  assert.equal(server.reports.size, 20);
});

test("a full outbox takes no decision, and nothing is spent", async () => {
  const store = new Fragile();
  const ledger = new Ledger(memoryStore(), { budget: 100 });
  const client = clientOf(new Server(), { outbox: store, ledger });
  await client.choose(WHO);
  const spent = (await ledger.entries()).length;
  const state = JSON.parse(store.text);
  state.waiting = Array.from({ length: 100_000 }, () => ({
    number: 1,
    experiment: "another",
    due: 0,
    report: "",
  }));
  store.text = JSON.stringify(state);
  await assert.rejects(client.choose(WHO), /hold at most 100000 decisions and reports/);
  assert.equal((await ledger.entries()).length, spent);
});

test("an outbox that is damaged, of another kind, or has gone is refused", async () => {
  for (const text of ["", "{}", "[]", "null", "x", '{"sottovoce":"an outbox","version":2}', null]) {
    const store = new Fragile();
    const client = clientOf(new Server(), { outbox: store });
    await client.choose(WHO);
    store.text = text;
    await assert.rejects(client.choose(WHO), OutboxError);
  }
});

test("whoever leaves is forgotten, and sends nothing more", async () => {
  const [server, outbox] = [new Server(), memoryStore()];
  const client = clientOf(server, { outbox });
  await client.report(await client.choose(WHO), { reward: 1 });
  await client.leave();
  const before = server.seen.length;
  await assert.rejects(client.choose(WHO), /has left the experiment/);
  await client.flush();
  assert.ok(!(await client.refresh()));
  assert.equal(server.seen.length, before);
  const again = clientOf(server, { outbox, default: "control" });
  assert.equal((await again.choose(WHO)).arm, "control");
});

test("without a source of randomness nothing is drawn and nothing is spent", async () => {
  const ledger = new Ledger(memoryStore(), { budget: 10 });
  const client = clientOf(new Server(), { ledger });
  await client.choose(WHO);
  const real = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true });
  try {
    await assert.rejects(client.choose(WHO), /must have crypto\.getRandomValues/);
  } finally {
    Object.defineProperty(globalThis, "crypto", real);
  }
  assert.equal((await ledger.entries()).length, 1);
});

test("people of a paused experiment get arms, and are not asked", async () => {
  const server = new Server();
  const made = "2026-03-01T09:30:00Z";
  const pause = { before: server.experiment, by: "Ada", kind: "pause", made };
  server.publish(releaseText({ version: 2, amendments: [pause] }));
  assert.ok(!(await clientOf(server).choose(WHO)).asked);
});

