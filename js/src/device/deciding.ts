/**
 * The device of a client: it makes all of a report but the outcome when it draws the arm.
 *
 * So a decision can wait for its outcome for days, and nothing has to be kept of the person but what
 * is private already. Its ε is spent at once: the moment does not depend on what comes later.
 */

import { BudgetSpent, ContextError } from "../shared/errors.js";
import type { Release } from "../shared/release.js";
import type { Coins } from "./coins.js";
import { type Context, encode } from "./encode.js";
import { anybody, Following } from "./following.js";
import type { Prepared } from "./method.js";
import { prepare } from "./privatise.js";

/** An arm for a person, and the report on it but for the outcome. */
export interface Drawn {
  arm: string;
  release: Release;
  population: number;
  /** Undefined if nobody is asked, or if the person has no budget left. */
  prepared: Prepared | undefined;
  /** Why the context was refused. The arm is then for nobody, and the report says nothing. */
  trouble: ContextError | undefined;
}

export class DecidingDevice extends Following {
  /** Return an arm for this person, and all of its report but the outcome; spend its ε. */
  async draw(context: Context, coins: Coins): Promise<Drawn> {
    const { release, population } = this;
    const { experiment } = release;
    let point = anybody(experiment);
    let trouble: ContextError | undefined;
    try {
      point = encode(experiment, context);
    } catch (error) {
      // Whether a context fits is private: the report is made and paid for all the same.
      if (!(error instanceof ContextError)) throw error;
      trouble = error;
    }
    const secret = this.chosen(point, coins);
    let prepared: Prepared | undefined;
    if (experiment.state === "running") {
      try {
        prepared = await prepare(release, secret, population, this.ledger);
      } catch (error) {
        if (!(error instanceof BudgetSpent)) throw error;
      }
    }
    return { arm: experiment.arms[secret.arm] as string, release, population, prepared, trouble };
  }
}
