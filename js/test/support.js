/** A server in memory that signs releases and takes reports, and clocks that stand still. */

import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { Client, memoryStore } from "../dist/index.js";
import { canonical, fingerprint, hex, parse, releaseFromJson, unhex } from "../dist/device.js";

export const ADDRESS = "https://sottovoce.test/api";
const sha = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();

/** The text of a release: one numeric feature, two arms; what is given takes the place of the rest. */
export function releaseText({ version = 1, experiment = {}, ...rest } = {}) {
  const about = {
    arms: ["control", "coach"],
    auxiliary: [],
    context: [{ name: "age", numeric: [18.5, 90.5] }],
    epsilon: 1.5,
    horizon: 1000,
    method: { delta: 0.05, guarantee: "regret", name: "whisper", public_arms: false },
    name: "walking",
    release_every: 100,
    seed: 0,
    ...experiment,
  };
  const bins = [{ arms: [0, 1], bin: "", propensities: [0.5, 0.5] }];
  const table = { ask: [512, 512], bins, cuts: {}, kind: "release", sottovoce: 5, version, ...rest };
  return canonical(parse(JSON.stringify({ ...table, experiment: about })));
}

export class Key {
  #private;

  constructor(seed) {
    const prefix = Buffer.from("302e020100300506032b657004220420", "hex");
    this.#private = createPrivateKey({
      key: Buffer.concat([prefix, sha(seed)]),
      format: "der",
      type: "pkcs8",
    });
    this.public = createPublicKey(this.#private).export({ format: "der", type: "spki" }).subarray(-32);
  }

  /** A signed release; before: the link of the version before. */
  signed(text, before) {
    const message = Buffer.concat([Buffer.from("sottovoce release 2\n"), before, Buffer.from(text)]);
    return canonical(
      new Map([
        ["before", hex(before)],
        ["key", sha(this.public).toString("hex").slice(0, 16)],
        ["kind", "signed release"],
        ["release", text],
        ["signature", sign(null, message, this.#private).toString("hex")],
        ["sottovoce", 5],
      ]),
    );
  }
}

/** Answers as the service does. `instead`, if it is set, answers first. */
export class Server {
  texts = [];
  seen = [];
  reports = new Map();
  online = true;
  instead = () => undefined;

  constructor(first = releaseText(), seed = "key") {
    this.key = new Key(seed);
    this.experiment = fingerprint(releaseFromJson(first).experiment);
    this.publish(first);
  }

  publish(text) {
    this.texts.push(text);
  }

  link(version) {
    let link = sha("sottovoce chain 1\n", unhex(this.experiment));
    for (const text of this.texts.slice(0, version)) link = sha(link, sha(text));
    return link;
  }

  document(version = this.texts.length) {
    return this.key.signed(this.texts[version - 1], this.link(version - 1));
  }

  transport = async (request) => {
    this.seen.push(request);
    if (!this.online) throw new TypeError("fetch failed");
    return (await this.instead(request)) ?? this.answer(request);
  };

  answer({ method, url, body }) {
    const path = url.slice(ADDRESS.length);
    const about = `/experiments/${this.experiment}/`;
    if (method === "GET" && path === `${about}releases/current`) return answer(200, this.document());
    if (method === "GET" && path.startsWith(`${about}chain/`)) {
      const block = +path.slice(`${about}chain/`.length);
      const hashes = this.texts.slice(256 * block, 256 * block + 256).map((text) => sha(text).toString("hex"));
      return answer(200, canonical(parse(JSON.stringify({ hashes, kind: "chain", sottovoce: 5 }))));
    }
    if (method === "GET") return answer(404, { error: "…", reason: "no such experiment" });
    const bodies = path === "/reports" ? [body] : split(body);
    let stored = 0;
    for (const each of bodies) {
      const nonce = hex(each.slice(18, 34));
      const known = this.reports.get(nonce);
      if (known && known !== hex(each)) throw new Error("a report was made twice");
      if (!known) stored++;
      this.reports.set(nonce, hex(each));
    }
    return answer(200, { stored, repeated: bodies.length - stored, refused: [] });
  }
}

/** The reports of a batch. */
export function split(batch) {
  const view = new DataView(batch.buffer, batch.byteOffset);
  const count = view.getUint32(4, true);
  let at = 8 + 4 * count;
  return Array.from({ length: count }, (_, i) => {
    const length = view.getUint32(8 + 4 * i, true);
    at += length;
    return batch.slice(at - length, at);
  });
}

export const answer = (status, body, retryAfter = null) => ({
  status,
  retryAfter,
  body: new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body)),
});

/** A clock that moves only when somebody sleeps or says so. */
export class Clock {
  now = 1_700_000_000;
  read = () => this.now;
  sleep = async (seconds) => {
    this.now += seconds;
  };
}

/** A ledger without end, for tests that are not about the ledger. */
export const plenty = { spend() {} };

/** A client that trusts this server's key and can report without end. */
export function clientOf(server, { clock = new Clock(), ...settings } = {}) {
  return new Client(ADDRESS, {
    experiment: server.experiment,
    keys: [hex(server.key.public)],
    mostEpsilon: 100,
    ledger: plenty,
    outbox: memoryStore(),
    transport: server.transport,
    clock: clock.read,
    now: clock.read,
    sleep: clock.sleep,
    jitter: () => 0.5,
    ...settings,
  });
}

/** A store that fails when told to, before or after the text is kept. */
export class Fragile {
  name = "fragile";
  text = null;
  changes = 0;
  fail = () => "";

  async change(step) {
    const way = this.fail(++this.changes);
    if (way === "before") throw new Error("disk");
    const next = step(this.text);
    this.text = next;
    if (way === "after") throw new Error("disk");
  }
}
