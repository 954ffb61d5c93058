/**
 * Where a device keeps what must survive a restart: one text, which is read and changed as a whole.
 *
 * A store fails closed. `change` resolves when the new text is kept so that a crash does not undo it;
 * until then nobody else changes the text: no other tab, and no other process.
 */

import { DeviceError, SottovoceError } from "../shared/errors.js";

export interface Store {
  /** How messages call it. */
  readonly name: string;
  /**
   * Read the text (null: there has never been one), let `step` make the next text from it, and keep
   * that. `step` does not wait for anything. If it throws, or returns the text that it got, nothing is
   * written.
   */
  change(step: (text: string | null) => string): Promise<void>;
}

/** A store in memory: all is lost when the page or the process ends. */
export function memoryStore(name = "in memory"): Store {
  let kept: string | null = null;
  return {
    name,
    async change(step) {
      kept = step(kept);
    },
  };
}

interface Kind<State> {
  /** How to call it, such as "a privacy ledger" and "ledger". */
  what: string;
  name: string;
  error: new (message: string) => SottovoceError;
  fresh(): State;
}

/** A document in a store: what it is, its version, and its state. */
export class Document<State extends object> {
  /** Whether it was there before: what has gone does not pass for something new. */
  #seen = false;

  constructor(
    readonly store: Store,
    readonly kind: Kind<State>,
  ) {}

  /** Change the state in one transaction; if `step` throws, nothing is written. */
  async change<T>(step: (state: State) => T): Promise<T> {
    const { store, kind } = this;
    let result: { value: T } | undefined;
    try {
      await store.change((text) => {
        const state = this.#read(text);
        result = { value: step(state) };
        return JSON.stringify({ sottovoce: kind.what, version: 1, ...state });
      });
    } catch (error) {
      if (error instanceof SottovoceError) throw error;
      const trouble = error instanceof Error ? error.name : "an error";
      throw new kind.error(
        `the ${kind.name} ${store.name} must be readable and writable; ${trouble}; nothing was written`,
      );
    }
    this.#seen = true;
    if (!result) throw new DeviceError("a store must call the step of a change");
    return result.value;
  }

  #read(text: string | null): State {
    const { store, kind } = this;
    if (text === null && !this.#seen) return kind.fresh();
    let found: { sottovoce?: unknown; version?: unknown } | null = null;
    try {
      found = JSON.parse(text ?? "");
    } catch {
      // Reported below, without the text.
    }
    const { sottovoce, version, ...state } = found ?? {};
    const fresh = kind.fresh() as Record<string, unknown>;
    const fits = Object.keys(fresh).every(
      (key) => typeof (state as typeof fresh)[key] === typeof fresh[key] &&
        Array.isArray((state as typeof fresh)[key]) === Array.isArray(fresh[key]),
    );
    if (sottovoce !== kind.what || version !== 1 || !fits) {
      const came = text === null ? "nothing: it has gone" : "something else";
      throw new kind.error(`${store.name} must be ${kind.what} of version 1; got ${came}`);
    }
    return state as State;
  }
}
