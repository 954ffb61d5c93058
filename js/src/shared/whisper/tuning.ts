/** The numbers on which devices and learners must agree; docs/reference/wire-format.md has them. */

/** The unit of all shares of people. */
export const SHARES = 160;
/** The unit of the shares of axes in a release. */
export const ASK = 1024;

/** How many of SHARES are asked what. */
export const MASS_SHARE = 8;
export const LEVEL_SHARE = 5;
export const BIN_REWARD_SHARE = 77;
export const BIN_MASS_SHARE = 19;
export const COUNT_SHARE = 16;
export const COUNT_SHARE_UNKNOWN = 80;
export const LOGGED_LEVEL_SHARE = 32;

/** Of logged rows, about an axis: at a small ε, and where whoever has nothing to tell has a cell apart. */
export const LOGGED_FEATURE_SHARE = 88;
export const LOGGED_FEATURE_SHARE_APART = 40;

/** Halves are cells if that multiplies the variance of a bin by less. */
export const HALVES_WORTH = 1.3;

const LOW = [1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768].map((each) => each / 2048);

/** The public positions of an axis of numbers that people are asked about. */
export const THRESHOLDS: readonly number[] = [...LOW, 0.5, ...LOW.map((each) => 1 - each).reverse()];
