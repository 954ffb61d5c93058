/** `ldpmab`, the paper's method: its settings. This device chooses for it, and cannot report. */

import { finite, wrong } from "./check.js";
import { malformed } from "./errors.js";
import type { MethodSettings } from "./methods.js";
import { real, repr, table, type Table } from "./values.js";

export const ldpmab = {
  keys: ["preset", "c"],
  read(settings: Table): MethodSettings {
    const preset = settings.has("preset") ? settings.get("preset") : "authors";
    if (preset !== "authors" && preset !== "paper") {
      throw wrong("the preset of ldpmab", "be 'authors' or 'paper'", repr(preset));
    }
    const c = finite(settings.get("c"));
    if (settings.get("c") != null && !(c !== undefined && c > 0)) {
      throw wrong("c of ldpmab", "be finite and > 0", repr(settings.get("c")));
    }
    return {
      name: "ldpmab",
      publicArms: false,
      certified: false,
      toTable: () => table({ name: "ldpmab", preset, c: c === undefined ? c : real(c) }),
      checkExperiment(experiment) {
        if (experiment.caps.size) {
          const rule = "have no cap with ldpmab, which gives live arms chances of its own";
          throw wrong("an added arm", rule, "one");
        }
      },
      checkRelease({ ask, thresholds, scaleShare, partition }) {
        if (ask.length || thresholds.length || scaleShare || partition.scales.size) {
          const what = "a release's ask, scales, thresholds and scale_share";
          throw malformed(what, "be left out for this method", "some");
        }
      },
      mostRewardShare: () => 0,
      levelsInSets: ({ axes }) => axes.map(() => 0),
    };
  },
};
