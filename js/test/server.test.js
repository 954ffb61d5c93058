/** The client and its server: releases, reports, refusals, and no answer at all. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BudgetSpent,
  Client,
  ForkError,
  LedgerError,
  memoryStore,
  NoSuchExperiment,
  SignatureError,
  TransportError,
} from "../dist/index.js";
import { hex } from "../dist/device.js";
import { ADDRESS, answer, Clock, clientOf, Key, releaseText, Server, split } from "./support.js";

const WHO = { age: 40 };

test("the next release is followed, over a chain of several blocks", async () => {
  const server = new Server();
  const client = clientOf(server);
  await client.choose(WHO);
  for (let version = 2; version <= 600; version++) server.publish(releaseText({ version }));
  assert.ok(await client.refresh());
  assert.equal(client.release.version, 600);
  assert.ok(!(await client.refresh()));
  server.texts.length = 500;
  assert.ok(!(await client.refresh()));
  assert.equal(client.release.version, 600);
});

test("another history, a second text and another key are refused; the last good release is kept", async () => {
  const outbox = memoryStore();
  const server = new Server();
  server.publish(releaseText({ version: 2 }));
  const client = clientOf(server, { outbox });
  await client.choose(WHO);
  const followed = client.document;

  const other = new Server();
  other.publish(releaseText({ version: 2, ask: [500, 524] }));
  server.instead = ({ url }) => (url.endsWith("current") ? answer(200, other.document()) : undefined);
  await assert.rejects(client.refresh(), ForkError);
  other.publish(releaseText({ version: 3 }));
  server.publish(releaseText({ version: 3 }));
  await assert.rejects(client.refresh(), ForkError);
  const stranger = new Key("stranger");
  server.instead = () => answer(200, stranger.signed(server.texts[2], server.link(2)));
  await assert.rejects(client.refresh(), SignatureError);
  const good = server.document();
  const bad = good.replace(/"signature":"(.)/, (_, digit) => `"signature":"${digit === "0" ? "1" : "0"}`);
  server.instead = () => answer(200, bad);
  await assert.rejects(client.refresh(), SignatureError);

  assert.equal(client.document, followed);
  assert.ok((await client.choose(WHO)).arm);
  server.instead = () => undefined;
  const again = clientOf(server, { outbox });
  assert.ok(await again.refresh());
  assert.equal(again.release.version, 3);
});

test("a release that asks for more than was agreed is refused in words", async () => {
  const server = new Server();
  await assert.rejects(
    clientOf(server, { mostEpsilon: 1 }).choose(WHO),
    /ask for at most epsilon = 1 a report; got 1.5/,
  );
  const method = { delta: 0.05, guarantee: "regret", name: "whisper", public_arms: true };
  const open = new Server(releaseText({ experiment: { method } }));
  await assert.rejects(clientOf(open).choose(WHO), /unless the device agrees to public_arms/);
  assert.ok((await clientOf(open, { publicArms: true }).choose(WHO)).asked);
});

test("offline, with an error, a proxy's page or another server, a person is told or served", async () => {
  for (const [instead, kind] of [
    [() => Promise.reject(new TypeError()), TransportError],
    [() => answer(500, "oops"), TransportError],
    [() => answer(200, "<html>log in</html>"), TransportError],
    [() => answer(302, ""), TransportError],
    [() => answer(404, "no such page"), TransportError],
    [() => answer(404, { reason: "no such experiment" }), NoSuchExperiment],
  ]) {
    const server = new Server();
    server.instead = instead;
    await assert.rejects(clientOf(server).choose(WHO), kind);
    const decision = await clientOf(server, { default: "control" }).choose(WHO);
    assert.deepEqual([decision.arm, decision.asked], ["control", false]);
  }
  const newer = new Server();
  newer.instead = () => answer(200, newer.document().replace(/"sottovoce":5}$/, '"sottovoce":6}'));
  await assert.rejects(clientOf(newer).choose(WHO), /upgrade sottovoce/);
});

test("a release that came with the app serves people until a server is reached", async () => {
  const server = new Server();
  const shipped = server.document();
  server.online = false;
  const client = clientOf(server, { shipped });
  const decision = await client.choose(WHO);
  assert.ok(decision.asked);
  await client.report(decision, { reward: 1 });
  assert.ok(!(await client.flush(5)));
  server.online = true;
  assert.ok(await client.flush(10_000));
  assert.equal(server.reports.size, 1);
  await assert.rejects(clientOf(server, { shipped: "x" }).choose(WHO), TransportError);
});

test("reports stay until the server has answered for them", async () => {
  for (const [instead, left] of [
    [() => answer(500, "x"), 3],
    [() => answer(200, "<html>"), 3],
    [() => answer(500, { stored: 3, repeated: 0, refused: [] }), 3],
    [() => answer(302, { stored: 3, repeated: 0, refused: [] }), 3],
    [() => answer(200, { stored: 1, repeated: 0, refused: [] }), 3],
    [() => answer(200, { stored: 3 }), 3],
    [() => answer(404, { error: "no such page" }), 3],
    [() => answer(429, { reason: "malformed" }), 3],
    [() => answer(200, { stored: 2, repeated: 0, refused: [{ index: 1, reason: "archived" }] }), 0],
    [() => answer(200, { stored: 0, repeated: 3, refused: [] }), 0],
  ]) {
    const [server, clock] = [new Server(), new Clock()];
    const client = clientOf(server, { clock });
    for (let i = 0; i < 3; i++) await client.report(await client.choose(WHO), { reward: 1 });
    server.instead = ({ method }) => (method === "POST" ? instead() : undefined);
    await client.send();
    assert.equal(await client.waiting(), left);
  }
});

test("a report that is refused for good is dropped and counted; others of its request are sent", async () => {
  const server = new Server();
  const client = clientOf(server);
  for (let i = 0; i < 5; i++) await client.report(await client.choose(WHO), { reward: 1 });
  let first;
  server.instead = ({ method, url, body }) => {
    if (method !== "POST") return undefined;
    first ??= hex(split(body)[0]);
    if (url.endsWith("/batch")) {
      return split(body).some((each) => hex(each) === first) ? answer(413, { error: "too large" }) : undefined;
    }
    return hex(body) === first ? answer(422, { error: "…", reason: "made up" }) : undefined;
  };
  assert.ok(await client.flush());
  assert.equal(server.reports.size, 4);
  assert.deepEqual(client.refused, { other: 1 });
});

test("after a failure it waits, longer each time, and as long as it is told", async () => {
  const [server, clock] = [new Server(), new Clock()];
  const client = clientOf(server, { clock });
  await client.report(await client.choose(WHO), { reward: 1 });
  let wait = "";
  server.instead = ({ method }) => (method === "POST" ? answer(503, "", wait) : undefined);
  const times = [];
  const pause = clock.sleep;
  const seconds = async (limit) => {
    const begun = clock.now;
    await client.flush(limit);
    times.push(clock.now - begun);
  };
  await seconds(1000);
  wait = "500";
  await seconds(5000);
  assert.equal(pause, clock.sleep);
  assert.ok(times[0] > 400 && times[0] <= 1000, `${times}`);
  assert.ok(server.seen.filter((each) => each.method === "POST").length < 25);
});

test("settings that cannot be are refused at once", () => {
  const server = new Server();
  const settings = { experiment: server.experiment, keys: hex(server.key.public), mostEpsilon: 1 };
  const make = (changes, address = ADDRESS) => () => new Client(address, { ...settings, ...changes });
  assert.doesNotThrow(make({}));
  assert.throws(make({}, "ftp://x"), TransportError);
  assert.throws(make({ experiment: "abc" }), /64 hexadecimal digits/);
  assert.throws(make({ keys: [] }), SignatureError);
  assert.throws(make({ keys: ["00".repeat(32)] }), SignatureError);
  assert.throws(make({ mostEpsilon: 0 }), /most_epsilon must be finite and > 0/);
  assert.ok(new BudgetSpent("x") instanceof LedgerError);
});
