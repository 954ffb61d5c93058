/**
 * A store in IndexedDB, for browsers. A transaction of IndexedDB is the lock: tabs and workers that
 * would change the same text wait for each other, and what is not complete is undone.
 */

import { DeviceError } from "../shared/errors.js";
import type { Store } from "./store.js";

/** The one object store in each database, and the one key in it. */
const TABLE = "kept";
const KEY = "text";

/** Return a store in IndexedDB of this name; give the outbox and the ledger a store each. */
export function browserStore(name: string): Store {
  let opened: Promise<IDBDatabase> | undefined;

  const database = (): Promise<IDBDatabase> => {
    opened ??= new Promise<IDBDatabase>((done, fail) => {
      if (typeof indexedDB === "undefined") throw new DeviceError("a page must have IndexedDB to keep a store in");
      const request = indexedDB.open(`sottovoce ${name}`, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onerror = () => fail(request.error);
      request.onblocked = () => fail(new DOMException("", "InvalidStateError"));
      request.onsuccess = () => {
        // Whoever clears the storage, or upgrades it, must not have to wait for this page.
        request.result.onversionchange = () => close(request.result);
        request.result.onclose = () => close(request.result);
        done(request.result);
      };
    });
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };

  const close = (which: IDBDatabase): void => {
    which.close();
    opened = undefined;
  };

  return {
    name,
    async change(step) {
      const found = await database();
      let thrown: unknown;
      await new Promise<void>((done, fail) => {
        // Strict: a loss of power must not undo what was spent.
        const transaction = found.transaction(TABLE, "readwrite", { durability: "strict" });
        transaction.oncomplete = () => done();
        transaction.onabort = transaction.onerror = () =>
          fail(thrown ?? transaction.error ?? new DOMException("", "AbortError"));
        const kept = transaction.objectStore(TABLE);
        const request: IDBRequest<string | undefined> = kept.get(KEY);
        request.onsuccess = () => {
          try {
            const before = request.result ?? null;
            const after = step(before);
            if (after !== before) kept.put(after, KEY);
          } catch (error) {
            thrown = error;
            transaction.abort();
          }
        };
      });
    },
  };
}
