/** A person's own cell and value. The work is the same for whoever has nothing to tell. */

import type { Release } from "../../shared/release.js";
import { middleOfLeaf } from "../../shared/walk.js";
import { patternSign } from "../../shared/whisper/axes.js";
import { cellKey, type CellLayout } from "../../shared/whisper/cells.js";
import { type Entry, isThinned, type Question } from "../../shared/whisper/questions.js";
import { THRESHOLDS } from "../../shared/whisper/tuning.js";
import type { Secret } from "../method.js";

/** A cell, or none, and a value in [−1, 1]. */
export type Answer = [cell: number | undefined, value: number];

/** Return the answer to a question whose one cell holds everybody. */
export function answerOfEverybody(question: Question, secret: Secret, outcome: number | null): Answer {
  let value = 2 * (outcome ?? 0.5) - 1;
  if (question.axis !== undefined) {
    const threshold = THRESHOLDS[question.row as number] as number;
    value = 2 * Number((secret.point[question.axis] as number) >= threshold) - 1;
  }
  return ([[0, value], [undefined, 0]] as Answer[])[Number(outcome === null)] as Answer;
}

/** Return a person's part of the bin along an axis, and the sign of that part. */
function partAndSign(place: number, middle: number, levels: number, row: number): [number, number] {
  if (levels) {
    const level = Math.min(Math.trunc(place * levels), levels - 1);
    return [level, patternSign(row, level)];
  }
  const half = Number(place >= middle);
  return [half, 2 * half - 1];
}

/** Return the answer of one person; tells: whether they tell of an outcome, where an arm is capped. */
export function trueAnswer(
  release: Release,
  layout: CellLayout,
  entry: Entry,
  { axis, row = 0 }: Question,
  { secret, outcome, tells }: { secret: Secret; outcome: number | null; tells: boolean },
): Answer {
  const { policy, point, arm } = secret;
  const { mechanism, parts, elsewhere } = layout.mechanism(axis);
  const whole = layout.indices.get(cellKey(policy.path, layout.byArm ? arm : undefined)) ?? -1;
  const reward = 2 * (outcome ?? 0.5) - 1;
  const second = arm !== policy.arms[0];
  let value = entry.value === "one" ? 1 : reward;
  if (entry.value === "signed outcome") value = [value, -value][Number(second)] as number;
  let cell = whole;
  if (axis !== undefined) {
    const middle = middleOfLeaf(release, point, axis);
    const levels = release.experiment.levels[axis] as number;
    const [part, sign] = partAndSign(point[axis] as number, middle, levels, row);
    cell = parts > 1 ? parts * whole + part : whole;
    value = parts > 1 ? value : sign * value;
  }
  // Somebody without a cell, or with nothing to tell. "Elsewhere" is the last cell.
  const nobody: Answer = [elsewhere ? mechanism.cells - 1 : undefined, 0];
  const silent = isThinned(entry) && !tells;
  return ([[cell, value], nobody] as Answer[])[Number(whole < 0 || outcome === null || silent)] as Answer;
}
