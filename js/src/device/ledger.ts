/**
 * The privacy ledger: the ε that a person has spent, and the most that they will spend.
 *
 * Budgets add up. So the ledger adds every ε over all experiments, exactly, and refuses a report that
 * would exceed the budget: for a lifetime, or for any stretch of so many days. Spending is kept before
 * the device makes the report: a crash wastes budget, never privacy. If the ledger cannot be read,
 * understood or written, the device spends nothing and reports nothing.
 *
 * A budget for a time trusts the device's clock. Where the clock is set back, what was spent later
 * counts as well. Where it is set ahead, what was spent before is over too soon.
 */

import * as check from "../shared/check.js";
import { duration } from "../shared/durations.js";
import { BudgetSpent, LedgerError, must } from "../shared/errors.js";
import { GRID, onGrid, quotient } from "../shared/exact.js";
import { realText, shortText } from "../shared/values.js";
import { Document, type Store } from "./store.js";

/** What a report is for. */
export interface Purpose {
  /** The fingerprint of the experiment, and its name. */
  experiment: string;
  name: string;
  release: number;
}

/** What one report has cost; moment: when, in UTC. */
export interface LedgerEntry extends Purpose {
  moment: string;
  epsilon: number;
}

/** What a device needs of a ledger: `Ledger`, or one of your own. */
export interface AnyLedger {
  /** Record the cost of one report, or raise LedgerError and record nothing. */
  spend(epsilon: number, purpose: Purpose): Promise<void> | void;
}

/** The ledger of a device without one: it allows a single report. */
export class OneReport implements AnyLedger {
  #spent = false;

  spend(): void {
    if (this.#spent) {
      throw new BudgetSpent(
        "a device without a ledger must report at most once; got a second report: pass ledger=Ledger(path, " +
          "budget=…) for one person, or make a new Device for each person or logged row",
      );
    }
    this.#spent = true;
  }
}

interface Budget {
  epsilon: number;
  per: string | null;
  since: string;
}

interface State {
  budgets: Budget[];
  spent: LedgerEntry[];
}

/** What a budget is. */
export interface LedgerSettings {
  /** The most ε that may be spent, over all experiments. */
  budget: number;
  /** The budget is for any stretch of this length, such as "30 days"; without it, for a lifetime. */
  per?: string;
  /** Seconds since 1970; for tests. */
  now?: () => number;
}

const clock = (): number => Date.now() / 1000;
const momentOf = (seconds: number): string => `${new Date(seconds * 1000).toISOString().slice(0, 19)}+00:00`;
const lengthOf = (per: string | null): number | null =>
  per === null ? null : duration(per, "the time of a ledger's budget");
const inWords = ({ epsilon, per }: { epsilon: number; per: string | null }): string =>
  `ε = ${shortText(epsilon)}${per === null ? "" : ` in any ${per}`}`;
const asNumber = (total: bigint): number => (total > 0n ? quotient(total, 1n << GRID) : 0);

/** A ledger in a store. A store that holds another budget is refused: see `change`. */
export class Ledger implements AnyLedger {
  readonly #document: Document<State>;
  readonly #budget: { epsilon: number; per: string | null };
  readonly #now: () => number;

  constructor(store: Store, { budget, per, now = clock }: LedgerSettings) {
    this.#budget = { epsilon: check.epsilon(budget, "the ledger's budget"), per: per ?? null };
    lengthOf(this.#budget.per);
    this.#now = now;
    this.#document = documentIn(store);
  }

  /** Record the cost of one report, or raise LedgerError and record nothing. */
  async spend(epsilon: number, { experiment, name, release }: Purpose): Promise<void> {
    const cost = check.epsilon(epsilon);
    await this.#change(({ spent }) => {
      const left = this.#left(spent);
      if (onGrid(cost) > left) {
        const rule = `be at most ${realText(asNumber(left))}, what is left`;
        throw new BudgetSpent(must("what a report spends", rule, realText(cost)));
      }
      spent.push({ moment: momentOf(this.#now()), experiment, name, release, epsilon: cost });
    });
  }

  /** Return the cost of every report so far, oldest first. */
  entries(): Promise<LedgerEntry[]> {
    return this.#change(({ spent }) => spent.map((each) => ({ ...each })));
  }

  /** Return the ε that may be spent now. */
  left(): Promise<number> {
    return this.#change(({ spent }) => asNumber(this.#left(spent)));
  }

  /** Return a text for the person whose budget this is: what was spent, when and on what. */
  receipt(): Promise<string> {
    return this.#change(({ spent, budgets }) => {
      const pad = (text: string, to: number) => text.padEnd(to);
      return [
        "Privacy receipt",
        `  ${this.#budget.per === null ? "lifetime budget " : "budget          "} ${inWords(this.#budget)}`,
        `  spent            ε = ${shortText(asNumber(totalOf(spent)))} in ${spent.length} reports`,
        `  left             ε = ${shortText(asNumber(this.#left(spent)))}`,
        ...budgets
          .slice(1)
          .map(({ since }, i) => `  budget before    ${inWords(budgets[i] as Budget)}, until ${since}`),
        "",
        `  ${pad("when (UTC)", 26)}${pad("experiment", 40)}${"release".padStart(8)}${"ε".padStart(10)}`,
        ...spent.map(
          ({ moment, name, experiment, release, epsilon }) =>
            `  ${pad(moment, 26)}${pad(`${name} (${experiment.slice(0, 16)})`, 40)}` +
            `${`${release}`.padStart(8)}${shortText(epsilon).padStart(10)}`,
        ),
      ].join("\n");
    });
  }

  /**
   * Give an existing ledger another budget; what was spent stays counted.
   *
   * A larger budget, or one for a shorter time, gives away more of the person: ask them.
   */
  static async change(store: Store, settings: LedgerSettings): Promise<Ledger> {
    const ledger = new Ledger(store, settings);
    await ledger.#document.change(({ budgets }) => {
      if (!budgets.length) throw new LedgerError(must("a ledger", "be there before it is changed", "none"));
      budgets.push({ ...ledger.#budget, since: momentOf(ledger.#now()) });
    });
    return ledger;
  }

  /** Change the ledger in one transaction, and refuse it if it is not this one. */
  #change<T>(step: (state: State) => T): Promise<T> {
    return this.#document.change((state) => {
      const { store } = this.#document;
      if (!state.budgets.length && !state.spent.length) {
        state.budgets.push({ ...this.#budget, since: momentOf(this.#now()) });
      }
      const newest = state.budgets[state.budgets.length - 1];
      const same =
        newest?.epsilon === this.#budget.epsilon && lengthOf(newest.per) === lengthOf(this.#budget.per);
      if (!same) {
        const rule = `be ${newest ? inWords(newest) : "stated"}, as ${store.name} has it`;
        const hint = "to give it another one, call Ledger.change";
        throw new LedgerError(must("the ledger's budget", rule, inWords(this.#budget), hint));
      }
      return step(state);
    });
  }

  /** Return what is left of the budget, on the grid; less than 0 if it was made smaller. */
  #left(spent: LedgerEntry[]): bigint {
    const length = lengthOf(this.#budget.per);
    // A moment was rounded down: its entry counts for a second more.
    const begin = length === null ? -Infinity : this.#now() - length - 1;
    const counts = spent.filter(({ moment }) => {
      const seconds = Date.parse(moment) / 1000;
      if (!/\+00:00$/.test(moment) || Number.isNaN(seconds)) {
        throw new LedgerError("a ledger must say when each report was made; it is damaged");
      }
      return seconds > begin;
    });
    return onGrid(this.#budget.epsilon) - totalOf(counts);
  }
}

const documentIn = (store: Store): Document<State> =>
  new Document(store, {
    what: "a privacy ledger",
    name: "ledger",
    error: LedgerError,
    fresh: () => ({ budgets: [], spent: [] }),
  });

function totalOf(entries: LedgerEntry[]): bigint {
  return entries.reduce((total, { epsilon }) => {
    if (!(typeof epsilon === "number" && epsilon > 0 && epsilon < Infinity)) {
      throw new LedgerError("what a ledger says was spent must be finite and > 0; it is damaged");
    }
    return total + onGrid(epsilon);
  }, 0n);
}
