/** Raw features to a point of [0, 1]^d, by the public schema. */

import { ContextError, must } from "../shared/errors.js";
import type { Experiment } from "../shared/experiment.js";
import { repr, typeName } from "../shared/values.js";

/** The features of one person, by their names; null, undefined and NaN are missing values. */
export type Context = Readonly<Record<string, number | string | boolean | null | undefined>>;

/** Return each feature of the schema on its axes. */
export function encode({ context: features }: Experiment, context: Context): number[] {
  if (typeof context !== "object" || context === null || Array.isArray(context)) {
    throw new ContextError(must("a context", "map feature names to values", typeName(context)));
  }
  const names = new Set(features.map((each) => each.name));
  const given = new Map<string, unknown>(Object.entries(context));
  const lacking = features.filter((each) => !each.optional && !given.has(each.name)).map((each) => each.name);
  // The names of unknown features are not shown: they come from raw data.
  const unknown = [...given.keys()].filter((name) => !names.has(name)).length;
  if (lacking.length || unknown) {
    const named = (optional: boolean) =>
      repr(features.filter((each) => each.optional === optional).map((each) => each.name));
    const may = features.some((each) => each.optional) ? `, may have ${named(true)}` : "";
    throw new ContextError(
      `a context must have the features ${named(false)}${may} and no other; ` +
        `it lacks ${lacking.length ? repr(lacking) : "none"} and has ${unknown} unknown`,
    );
  }
  return features.flatMap((each) => each.positions(given.get(each.name)));
}
