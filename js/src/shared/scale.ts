/** Scales: public maps that stretch an axis where people are, so that midpoints divide them. */

import { malformed } from "./errors.js";
import { Real, repr, type Table, typeName, type Value } from "./values.js";

const STRETCHES = 32;

/** Return the position on the axis of a place in [0, 1] on its scale. */
export function positionAt(knots: readonly number[], place: number): number {
  const piece = Math.min(Math.trunc(place * STRETCHES), STRETCHES - 1);
  const start = knots[piece] as number;
  return start + (place * STRETCHES - piece) * ((knots[piece + 1] as number) - start);
}

/** Read the scales of a release, by axis. numbers: which axes are those of numbers. */
export function checkedScales(numbers: boolean[], table: Value): Map<number, number[]> {
  if (!(table instanceof Map)) throw malformed("scales", "map axes to knots", typeName(table));
  const found = new Map<number, number[]>();
  for (const [name, inner] of table as Table) {
    const axis = numbers.findIndex((number, each) => number && `${each}` === name);
    if (axis < 0) throw malformed("scales", "be of axes of numbers", repr(name));
    const fits = Array.isArray(inner) && inner.every((each) => each instanceof Real);
    if (!fits || inner.length !== STRETCHES - 1) {
      throw malformed(`the scale of axis ${axis}`, `be ${STRETCHES - 1} numbers`, "others");
    }
    const knots = [0, ...inner.map((each) => (each as Real).value), 1];
    if (!knots.every((knot, i) => !i || (knots[i - 1] as number) < knot)) {
      throw malformed(`the scale of axis ${axis}`, "rise from above 0 to below 1", "others");
    }
    found.set(axis, knots);
  }
  return found;
}
