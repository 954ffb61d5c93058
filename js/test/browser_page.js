/** What runs in a page: the vectors, and several tabs' worth of stores in IndexedDB. */

import { browserStore, Client, Ledger, memoryStore } from "/dist/index.js";
import { refusalDifferences } from "./refusals.js";
import { differences } from "./vectors.js";

const FOR = { experiment: "x", name: "y", release: 1 };
const check = (found, wanted, what) => {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)}`);
};

const TESTS = {
  async "the vectors have the same arms, questions, report bytes and refusals"() {
    const vectors = await (await fetch("/vectors.json")).json();
    check(await differences(vectors), [], "cases");
    check(refusalDifferences(vectors), [], "refusals");
  },

  async "several ledgers on one store, two of them in frames, never spend more than there is"() {
    const frames = await Promise.all([frame(), frame()]);
    const makers = [{ Ledger, browserStore }, ...frames];
    const ledgers = makers.map((each) => new each.Ledger(each.browserStore("ledger"), { budget: 10 }));
    const spent = await Promise.allSettled(
      Array.from({ length: 45 }, (_, i) => ledgers[i % ledgers.length].spend(1, FOR)),
    );
    check(spent.filter((each) => each.status === "fulfilled").length, 10, "spent");
    check(spent.find((each) => each.status === "rejected").reason.name, "BudgetSpent", "the rest");
    check(await ledgers[1].left(), 0, "left");
  },

  async "a ledger whose storage is cleared while the page is open spends nothing"() {
    const ledger = new Ledger(browserStore("cleared"), { budget: 10 });
    await ledger.spend(1, FOR);
    await new Promise((done, fail) => {
      const request = indexedDB.deleteDatabase("sottovoce cleared");
      request.onsuccess = done;
      request.onerror = request.onblocked = fail;
    });
    const error = await ledger.spend(1, FOR).catch((each) => each);
    check(error?.name, "LedgerError", "after the storage was cleared");
  },

  async "a step that throws, and a page that is left, change nothing"() {
    const store = browserStore("steps");
    await store.change(() => "one");
    const error = await store.change(() => {
      throw new RangeError("no");
    }).catch((each) => each);
    check(error.name, "RangeError", "thrown");
    await frame(`import { browserStore } from "/dist/index.js";
      browserStore("steps").change((text) => { frameElement.remove(); return text + " two"; });`, false);
    let text;
    await store.change((kept) => (text = kept));
    if (text !== "one" && text !== "one two") throw new Error(`half a change: ${text}`);
  },

  async "without IndexedDB a person is told, and nothing is spent"() {
    const real = Object.getOwnPropertyDescriptor(globalThis, "indexedDB");
    Object.defineProperty(globalThis, "indexedDB", { value: undefined, configurable: true });
    try {
      const error = await new Ledger(browserStore("none"), { budget: 1 }).spend(1, FOR).catch((each) => each);
      check(error.message, "a page must have IndexedDB to keep a store in", "the error");
    } finally {
      Object.defineProperty(globalThis, "indexedDB", real);
    }
  },

  async "a request has no cookie, no ETag, no address of the page"() {
    document.cookie = "who=Ada";
    await fetch("/seen/experiments/x/releases/current");
    const client = new Client(`${location.origin}/seen`, {
      experiment: "0".repeat(64),
      keys: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
      mostEpsilon: 1,
      outbox: memoryStore(),
      default: "control",
    });
    check((await client.choose({ age: 40 })).arm, "control", "the arm");
    const headers = await (await fetch("/headers")).json();
    for (const name of ["cookie", "if-none-match", "if-modified-since", "referer"]) {
      check(headers[name] ?? null, null, name);
    }
  },
};

/** Load the modules once more, in a frame of the same origin: what another tab would have. */
function frame(code, waits = true) {
  return new Promise((done) => {
    const element = document.createElement("iframe");
    const run =
      code ?? `import * as all from "/dist/index.js"; parent.postMessage("loaded", "*"); window.all = all;`;
    element.srcdoc = `<script type="module">${run}</script>`;
    if (waits) {
      const listen = ({ source }) => {
        if (source !== element.contentWindow) return;
        removeEventListener("message", listen);
        setTimeout(() => done(element.contentWindow.all));
      };
      addEventListener("message", listen);
    } else {
      setTimeout(done, 500);
    }
    document.body.append(element);
  });
}

const results = [];
for (const [name, run] of Object.entries(TESTS)) {
  const error = await run().then(
    () => null,
    (each) => `${each?.stack ?? each}`,
  );
  results.push({ name, error });
}
await fetch("/done", { method: "POST", body: JSON.stringify(results) });
