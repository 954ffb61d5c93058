/**
 * The outbox: decisions, reports that wait to be sent, and the newest verified release.
 *
 * It holds the bytes that go over the network, and of each decision what its report will need. It
 * holds no context, no arm, no reward and nothing else about the person. Its size is limited: a full
 * outbox takes no further decision, and never drops old reports to make room.
 *
 * An outbox that was deleted, or replaced by an older copy, cannot be told from a new one.
 */

import { hex, unhex } from "../shared/bytes.js";
import { must, OutboxError } from "../shared/errors.js";
import { Document, type Store } from "./store.js";

/** The most decisions and reports that an outbox keeps. */
export const MOST_WAITING = 100_000;

/** More letters than a decision ever takes: they are held before any ε is spent. */
const ROOM = 64 * 1024;

/** A report that waits; due: when it may be sent, in seconds since 1970. */
interface Waiting {
  number: number;
  experiment: string;
  due: number;
  report: string;
}

/** A decision that waits for its outcome; bytes are hexadecimal. */
export interface KeptDecision {
  experiment: string;
  expires: number;
  /** Whether its report waits until the decision would have expired. */
  held: boolean;
  release: string;
  population: number;
  question: number;
  ranking: number[];
  kept: string;
}

/** The newest release that was followed: its place in the chain, and the signed document. */
export interface KeptRelease {
  version: number;
  link: string;
  document: string;
}

interface State {
  /** The number of the next report: no two ever have the same. */
  next: number;
  waiting: Waiting[];
  decisions: Record<string, KeptDecision>;
  releases: Record<string, KeptRelease>;
  /** The random keys by which a person keeps an arm. */
  sticky: Record<string, string>;
  reported: string[];
  departed: string[];
  room: string;
}

/** What may be done with the reports of a state, within one change. */
export type OutboxState = State;

export class Outbox {
  readonly #document: Document<State>;
  readonly name: string;

  constructor(
    store: Store,
    readonly experiment: string,
    readonly now: () => number,
    readonly most = MOST_WAITING,
  ) {
    this.name = store.name;
    this.#document = new Document<State>(store, {
      what: "an outbox",
      name: "outbox",
      error: OutboxError,
      fresh: () => ({
        next: 1,
        waiting: [],
        decisions: {},
        releases: {},
        sticky: {},
        reported: [],
        departed: [],
        room: "",
      }),
    });
  }

  change<T>(step: (state: State) => T): Promise<T> {
    return this.#document.change(step);
  }

  /** Hold as much room as a decision may take, or raise OutboxError: its ε would be lost. */
  async holdRoom(): Promise<void> {
    await this.change((state) => {
      const waiting = state.waiting.length + Object.keys(state.decisions).length;
      if (waiting >= this.most) {
        const rule = `hold at most ${this.most} decisions and reports: send some first`;
        throw new OutboxError(must("an outbox", rule, `${waiting} that wait`));
      }
      state.room = "0".repeat(ROOM);
    });
  }

  /** Return the reports that have waited longest, and may be sent. */
  oldest(limit: number): Promise<{ number: number; report: Uint8Array }[]> {
    return this.change(({ waiting }) =>
      waiting
        .filter((each) => this.#isDue(each))
        .slice(0, limit)
        .map(({ number, report }) => ({ number, report: unhex(report) })),
    );
  }

  /** Forget reports, and return how many of them were still here. */
  remove(numbers: number[]): Promise<number> {
    const gone = new Set(numbers);
    return this.change((state) => {
      const before = state.waiting.length;
      state.waiting = state.waiting.filter((each) => !gone.has(each.number));
      return before - state.waiting.length;
    });
  }

  /** Return how many reports wait, and how many of them may be sent now. */
  count(): Promise<{ waiting: number; due: number }> {
    return this.change(({ waiting }) => {
      const own = waiting.filter((each) => each.experiment === this.experiment);
      return { waiting: own.length, due: own.filter((each) => this.#isDue(each)).length };
    });
  }

  /** Forget all about the experiment but that the person has left it. */
  leave(): Promise<void> {
    const { experiment } = this;
    return this.change((state) => {
      state.waiting = state.waiting.filter((each) => each.experiment !== experiment);
      for (const [id, each] of Object.entries(state.decisions)) {
        if (each.experiment === experiment) delete state.decisions[id];
      }
      delete state.releases[experiment];
      delete state.sticky[experiment];
      if (!state.departed.includes(experiment)) state.departed.push(experiment);
    });
  }

  hasLeft(): Promise<boolean> {
    return this.change(({ departed }) => departed.includes(this.experiment));
  }

  /** Note that the person reports to the experiment; return whether it is the first time. */
  noteReport(experiment: string): Promise<boolean> {
    return this.change(({ reported }) => {
      const first = !reported.includes(experiment);
      if (first) reported.push(experiment);
      return first;
    });
  }

  /** Return the newest kept release. The caller verifies it again. */
  kept(): Promise<KeptRelease | undefined> {
    return this.change(({ releases }) => releases[this.experiment]);
  }

  /** Keep a release in the place of another one; return whether that was still there. */
  keep(release: KeptRelease, insteadOf: KeptRelease | undefined): Promise<boolean> {
    return this.change(({ releases }) => {
      if (releases[this.experiment]?.link !== insteadOf?.link) return false;
      releases[this.experiment] = release;
      return true;
    });
  }

  #isDue = ({ experiment, due }: Waiting): boolean => experiment === this.experiment && due <= this.now();
}

/** Keep a report, within a change. */
export function putReport(state: State, report: Uint8Array, experiment: string, due: number): void {
  state.waiting.push({ number: state.next++, experiment, due, report: hex(report) });
}
