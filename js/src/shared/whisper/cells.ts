/** The cells that a question is about in one release, and the mechanism for so many cells. */

import type { Experiment } from "../experiment.js";
import { type BinPolicy, once, type Release } from "../release.js";
import type { Entry } from "./questions.js";
import { inside, noise, type SignedSubset, signedSubset } from "./subset.js";
import { HALVES_WORTH } from "./tuning.js";

/** The mechanism for some whole cells; parts: into how many cells each is divided. */
export interface CellMechanism {
  mechanism: SignedSubset;
  parts: number;
  elsewhere: boolean;
}

/** Return the mechanism for so many whole cells, divided into parts if that pays. */
function cellMechanism(epsilon: number, cells: number, parts: number): CellMechanism {
  const plain = signedSubset(epsilon, cells);
  // Up to a = 3 the best sets hold every cell; beyond, "elsewhere" pays for itself.
  if (plain.told <= 3n * plain.other) return { mechanism: plain, parts: 1, elsewhere: false };
  const whole = signedSubset(epsilon, cells + 1);
  const divided = signedSubset(epsilon, parts * cells + 1);
  const [far, own] = [noise(whole), noise(divided)];
  const usual = far + (inside(whole) - far) / cells;
  const worth =
    parts === 2 // the variance of the whole, or of one level
      ? 2 * own + (inside(divided) - own) / cells < HALVES_WORTH * usual
      : own + (inside(divided) - own) / (parts * cells) < usual;
  if (parts > 1 && worth) return { mechanism: divided, parts, elsewhere: true };
  return { mechanism: whole, parts: 1, elsewhere: true };
}

/** Return the mechanism for one cell in which everybody of a population is. */
export const oneCellMechanism = ({ populations }: Experiment, population: number): SignedSubset =>
  signedSubset(populations[population]?.epsilon as number, 1);

/** The cells of one group of questions in one release, in order. */
export interface CellLayout {
  byArm: boolean;
  /** The index of the whole cell of each bin, or of each bin and live arm. */
  indices: Map<string, number>;
  mechanism(axis?: number): CellMechanism;
}

export const cellKey = (path: string, arm?: number): string => (arm === undefined ? path : `${path} ${arm}`);

/** Lay out the cells for a population; undefined where everything is settled. */
export function cellLayout(
  release: Release,
  population: number,
  { cells }: Pick<Entry, "cells">,
): CellLayout | undefined {
  return once(release, `${cells} ${population}`, () => {
    const bins = cells === "all bins" ? release.bins : release.contested;
    const byArm = cells === "bin arms";
    const keys = bins.flatMap(({ path, live }: BinPolicy) =>
      byArm ? live.map((arm) => cellKey(path, arm)) : [cellKey(path)],
    );
    if (!keys.length) return undefined;
    const { experiment } = release;
    const epsilon = experiment.populations[population]?.epsilon as number;
    return {
      byArm,
      indices: new Map(keys.map((key, index) => [key, index])),
      mechanism(axis) {
        if (cells === "all bins") {
          return { mechanism: signedSubset(epsilon, keys.length), parts: 1, elsewhere: false };
        }
        // A certificate counts answers about whole bins only, and has no use for parts.
        const whole = axis === undefined || experiment.settings.certified;
        const parts = whole ? 1 : experiment.levels[axis] || 2;
        return once(release, `${cells} ${population} ${parts}`, () =>
          cellMechanism(epsilon, keys.length, parts),
        );
      },
    } satisfies CellLayout;
  });
}

/** Return the mechanism for axes with an order, or for no axis if there are none. */
export function halvesOf(layout: CellLayout, { levels }: Experiment): CellMechanism {
  const ordered = levels.indexOf(0);
  return layout.mechanism(ordered < 0 ? undefined : ordered);
}
