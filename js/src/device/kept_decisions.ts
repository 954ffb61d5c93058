/**
 * Decisions that wait for their outcome, kept in the outbox.
 *
 * Each decision ends in exactly one report, in one change that removes the one and adds the other. If
 * no outcome comes until the decision expires, the report says nothing. Where an experiment has a
 * `reward_window`, a report waits until its decision would have expired: so the moment of a report
 * does not tell whether there was an outcome, or when.
 */

import { hex, unhex } from "../shared/bytes.js";
import { DeviceError } from "../shared/errors.js";
import type { Experiment } from "../shared/experiment.js";
import { reportToBytes } from "../shared/wire.js";
import { KEY_BYTES } from "./coins.js";
import type { Drawn } from "./deciding.js";
import { type Outbox, type OutboxState, putReport } from "./outbox.js";
import { finish, outcomeOf, type Reward } from "./privatise.js";
import { randomBytes } from "./randomness.js";

/** How many seconds a decision stays open where the experiment has no `reward_window`. */
const OPEN_FOR = 24 * 3600;
/** When a decision expires on which nobody will report. */
export const LAST = new Date("9999-12-31T00:00:00Z");
export const NOT_ASKED = "not asked";

/** What `Client.choose` returns. */
export class Decision {
  /** What the person gets. It is private, and not shown with the decision. */
  declare readonly arm: string;

  constructor(
    /** By which the outcome may be reported, also after a restart. It stays on the device. */
    readonly id: string,
    arm: string,
    /** The outcome may be reported until then. */
    readonly expires: Date,
    /** Whether there will be a report; the outcome of any other decision is ignored. */
    readonly asked = true,
  ) {
    Object.defineProperty(this, "arm", { value: arm, enumerable: false });
  }

  toString(): string {
    return this.arm;
  }
}

/** The open decisions of one experiment. */
export class KeptDecisions {
  constructor(readonly outbox: Outbox) {}

  /** Return when a decision of now expires. */
  #expires({ window }: Experiment): Date {
    const expires = new Date((this.outbox.now() + (window ?? OPEN_FOR)) * 1000);
    return expires < LAST ? expires : LAST; // a clock that is wrong by millennia
  }

  /** Keep a decision: it is in the outbox when this resolves. */
  async open({ prepared, arm, release, population }: Drawn): Promise<Decision> {
    const { experiment } = release;
    const expires = this.#expires(experiment);
    const id = prepared ? hex(randomBytes(16)) : NOT_ASKED;
    await this.outbox.change((state) => {
      state.room = "";
      if (!prepared) return;
      state.decisions[id] = {
        experiment: this.outbox.experiment,
        expires: Math.floor(+expires / 1000),
        held: experiment.window !== undefined,
        release: hex(release.id),
        population,
        question: prepared.question,
        ranking: prepared.ranking,
        kept: hex(prepared.kept),
      };
    });
    return new Decision(id, arm, expires, !!prepared);
  }

  /** Finish a decision: its report is in the outbox when this resolves. */
  async report(id: string, experiment: Experiment, reward: Reward): Promise<void> {
    outcomeOf(experiment, reward); // an outcome that cannot be used leaves the decision open
    const found = await this.outbox.change((state) => {
      const decision = Object.hasOwn(state.decisions, id) ? state.decisions[id] : undefined;
      if (decision?.experiment !== this.outbox.experiment) return "nowhere";
      if (decision.expires <= this.outbox.now()) return "expired";
      this.#finish(state, id, experiment, reward);
      return "reported";
    });
    if (found === "nowhere") {
      throw new DeviceError(
        "a decision must be open to be reported on; this one was reported on before, has expired, or was never" +
          " made here",
      );
    }
    if (found === "expired") {
      await this.expire(experiment);
      throw new DeviceError(
        "a decision must be reported on before it expires; this one has expired, and its report says nothing",
      );
    }
  }

  /** Turn decisions that have expired into reports that say nothing. */
  expire(experiment: Experiment): Promise<void> {
    return this.outbox.change((state) => {
      // Nothing waits for longer than a window: the clock was ahead, and was set back.
      const latest = Math.floor(+this.#expires(experiment) / 1000);
      for (const each of this.#own(state)) {
        const decision = state.decisions[each] as OutboxState["decisions"][string];
        decision.expires = Math.min(decision.expires, latest);
        if (decision.expires <= this.outbox.now()) this.#finish(state, each, experiment, null);
      }
      for (const each of state.waiting) {
        if (each.experiment === this.outbox.experiment) each.due = Math.min(each.due, latest);
      }
    });
  }

  /** Return how many decisions are open. */
  count(): Promise<number> {
    return this.outbox.change((state) => this.#own(state).length);
  }

  /** Return the random key of this device by which a person keeps an arm; draw it once. */
  async key(): Promise<Uint8Array> {
    const fresh = hex(randomBytes(KEY_BYTES));
    const { experiment } = this.outbox;
    return unhex(await this.outbox.change(({ sticky }) => (sticky[experiment] ??= fresh)));
  }

  #own = ({ decisions }: OutboxState): string[] =>
    Object.keys(decisions)
      .filter((id) => decisions[id]?.experiment === this.outbox.experiment)
      .sort();

  /** Put the report of a decision in the place of the decision. */
  #finish(state: OutboxState, id: string, form: Experiment, reward: Reward): void {
    const decision = state.decisions[id] as OutboxState["decisions"][string];
    delete state.decisions[id];
    const { experiment, release, population, question, ranking, kept, held, expires } = decision;
    const report = reportToBytes({
      release: unhex(release),
      population,
      nonce: randomBytes(16),
      payload: finish(form, unhex(kept), reward),
      question,
      ranking,
    });
    putReport(state, report, experiment, held ? expires : 0);
  }
}
