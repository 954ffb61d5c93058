/** `whisper` on the device: draw a question, answer it, and send a random set of cells. */

import { joined } from "../../shared/bytes.js";
import type { BinPolicy, Release } from "../../shared/release.js";
import { cellLayout, oneCellMechanism } from "../../shared/whisper/cells.js";
import { type Entry, numberOf, type Question, questionOf } from "../../shared/whisper/questions.js";
import type { SignedSubset } from "../../shared/whisper/subset.js";
import type { Coins } from "../coins.js";
import { drawArm, type Prepared, type RandomisedAnswer, type Secret, type Spend } from "../method.js";
import { type Answer, answerOfEverybody, trueAnswer } from "./answer.js";
import { drawQuestion, drawRanking, drawTelling } from "./draw.js";
import * as subset from "./subset.js";

/** Draw an arm on offer; where arms are public, take the first one of a public ranking. */
export function choose(release: Release, policy: BinPolicy, coins: Coins, ranking?: number[]): [number, number[]] {
  if (!release.experiment.settings.publicArms) return [drawArm(release, policy, coins), []];
  const order = ranking ?? drawRanking(release);
  return [order.filter((arm) => policy.arms.includes(arm))[0] as number, order];
}

interface Told extends RandomisedAnswer {
  payload: Uint8Array;
  mechanism?: SignedSubset;
  entry: Entry;
}

/** Return the packed set for one question. */
export async function privatise(
  release: Release,
  secret: Secret,
  population: number,
  outcome: number | null,
  spend: Spend,
): Promise<RandomisedAnswer> {
  const question = drawQuestion(release, population, secret.logged);
  return told(release, question, secret, population, outcome, spend);
}

/**
 * Return the packed sets for the outcomes 1 and 0, and for none at all.
 *
 * Nothing is kept that is not private already: where the question is about the outcome, the set for 0
 * is that for 1 with all signs turned, so that both tell no more than one. The third set does not
 * depend on the person.
 */
export async function prepare(
  release: Release,
  secret: Secret,
  population: number,
  spend: Spend,
): Promise<Prepared> {
  const asked = drawQuestion(release, population, secret.logged);
  const answer = await told(release, asked, secret, population, 1, spend);
  const none = await told(release, asked, secret, population, null, () => {});
  const { payload: good, mechanism, entry, question, ranking } = answer;
  const aboutOutcome = entry.value === "outcome" || entry.value === "signed outcome";
  const bad = mechanism && aboutOutcome ? subset.turned(mechanism, good) : good;
  return { kept: joined(good, bad, none.payload), question, ranking };
}

/** Return one of the three packed sets; an outcome y counts as 1 with probability y. */
export function finish(kept: Uint8Array, outcome: number | null): Uint8Array {
  const length = kept.length / 3;
  const up = subset.roundedUp(2 * (outcome ?? 0.5) - 1);
  const place = outcome === null ? 2 : up ? 0 : 1;
  return kept.slice(place * length, (place + 1) * length);
}

/** Answer a question. */
async function told(
  release: Release,
  question: Question,
  secret: Secret,
  population: number,
  outcome: number | null,
  spend: Spend,
): Promise<Told> {
  const { experiment } = release;
  const entry = questionOf(experiment, question.kind);
  const tells = drawTelling(release, secret);
  const coins = {
    entry,
    question: numberOf(question, experiment),
    ranking: entry.publicArms ? secret.ranking : [],
  };
  let mechanism: SignedSubset;
  let answer: Answer;
  if (entry.cells === "everybody") {
    mechanism = oneCellMechanism(experiment, population);
    answer = answerOfEverybody(question, secret, outcome);
  } else {
    const layout = cellLayout(release, population, entry);
    if (!layout) return { ...coins, payload: new Uint8Array() }; // no cell is contested
    mechanism = layout.mechanism(question.axis).mechanism;
    answer = trueAnswer(release, layout, entry, question, { secret, outcome, tells });
  }
  await spend();
  return { ...coins, mechanism, payload: subset.whisper(mechanism, ...answer) };
}
