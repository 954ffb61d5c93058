/**
 * A store in a file, for Node. Not part of the core, which has no built-in modules of Node.
 *
 * The text is written to a second file, which takes the place of the first one when it is on disk. A
 * third one is the lock between processes.
 */

import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { DeviceError } from "../shared/errors.js";
import type { Store } from "./store.js";

/** How many milliseconds to wait for another process. */
const PATIENCE = 10_000;
/** After so many milliseconds without a sign of life, a lock is of a process that has ended. */
const STALE = 60_000;

/** Return a store in a file; the first use makes it. */
export function fileStore(path: string): Store {
  let turn: Promise<unknown> = Promise.resolve();

  const change = async (step: (text: string | null) => string): Promise<void> => {
    const release = await locked(`${path}.lock`);
    try {
      const before = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return null;
        throw error;
      });
      const after = step(before);
      if (after !== before) await replace(path, after);
    } finally {
      await release();
    }
  };

  return {
    name: path,
    change(step) {
      const next = turn.then(() => change(step));
      turn = next.catch(() => {});
      return next;
    },
  };
}

/** Put a text in the place of a file, on disk: it is there as a whole or not at all. */
async function replace(path: string, text: string): Promise<void> {
  const half = `${path}.${randomBytes(8).toString("hex")}.part`;
  try {
    const file = await open(half, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(half, path);
  } catch (error) {
    await rm(half, { force: true });
    throw error;
  }
  // Without this a loss of power could undo the rename: ε would be spent again.
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Take a lock that all processes see, and return what gives it back. */
async function locked(path: string): Promise<() => Promise<void>> {
  const own = randomBytes(16).toString("hex");
  const begun = Date.now();
  for (;;) {
    try {
      await writeFile(path, own, { flag: "wx" });
      return async () => {
        if ((await readFile(path, "utf8").catch(() => "")) === own) await rm(path, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const made = await stat(path).catch(() => null);
    if (made && Date.now() - made.mtimeMs > STALE) {
      throw new DeviceError(`the lock ${path} must be fresh; it is of a process that has ended: remove it`);
    }
    if (Date.now() - begun > PATIENCE) {
      throw new DeviceError(`the lock ${path} must become free; another process holds it`);
    }
    await new Promise((done) => setTimeout(done, 5 + Math.random() * 20));
  }
}
