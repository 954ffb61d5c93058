"""Every tuned number of ``whisper``: what it is, what was tried, and what that showed.

How each figure was measured:

R     the regret as a share of the published one: the mean over both of the paper's models, ε of 1,
      2, 4 and 8 and several n, and the worst of these cells ("0.156 / 0.43").
      ``sottovoce bench regret --no-aux --reps 6 --published FILE.csv``
T     the mean reward on the real tables at n/4 and at n ("0.750/0.763").
      ``sottovoce reproduce table --data-dir DATA``
era   which version was measured. 1: before smoothing over the tree (R 0.193 / 0.39). 2: with it
      (R 0.156 / 0.43). 3: as it is now (R 0.138 / 0.55 over all n).

To try another value, edit it here and run the command. The figures are of a few runs each: their
last digit is chance. All numbers were chosen with these problems and tables in view. "A guess" is a
number without a figure. docs/research/whisper-what-was-tried.md has the whole story.
"""

# How many people or rows of SHARES are asked what. Public, and the same for everybody.

SHARES = 160
"""The unit of all shares below. Not tuned."""

MASS_SHARE = 8
"""Of people who are served, for MASS: who is in the bin. A guess."""

LEVEL_SHARE = 5
"""Of people who are served, for LEVEL: how good both arms are. A guess."""

REWARD_SHARE = 24
"""Of the target's people, for their reward, where there is auxiliary data, or more by a release.

Tried 24 and 32, and more of them everywhere, which cost 0.3 % of the reward where ε_m = 1 (T).
Chosen with seeds 0 to 99 of green-taxi-street in view.
"""

REWARD_SHARE_UNCHECKED = 96
"""The same, until promises of others were checked: settled bins have nothing else to tell.

A guess. In a prototype that also began anew for the sake of a few bins, 96 came to 0.075 of random
where rows are wrong in a quarter of the space, and 144 with more of them asked bin by bin to 0.067
(ε = 4, 40 runs).
"""

BIN_REWARD_SHARE = 77
"""Of those who are asked for their reward, for BIN_REWARD: their bin tells it, too. A guess.

With nobody asked for it, in a prototype, rows wrong in a quarter of the space cost 0.282/0.125 of
random at ε = 1 and 4 instead of 0.261/0.088 (40 runs).
"""

BIN_MASS_SHARE = 19
"""Of those, for BIN_MASS: who is in the bin, settled or not. A guess, as the last."""

COUNT_SHARE = 16
"""Of logged rows whose behaviour is known, for COUNT: which rows are in the bin. A guess."""

COUNT_SHARE_UNKNOWN = 80
"""The same, of rows whose behaviour is not known. A guess."""

LOGGED_LEVEL_SHARE = 32
"""Of logged rows with two arms, for LOGGED_LEVEL: how good both arms are.

A guess, made with seeds 0 to 99 of green-taxi-street in view.
"""

LOGGED_FEATURE_SHARE = 88
"""Of logged rows, about an axis, at a small ε; a release may ask for more.

Tried 30 % and 55 % (this). T at ε = ε_m = 1: adult 0.750/0.763 and 0.778/0.797, flights
0.435/0.440 and 0.440/0.443, green taxi 0.637/0.650 and 0.646/0.655.
"""

LOGGED_FEATURE_SHARE_APART = 40
"""The same, at an ε at which whoever has nothing to tell has a cell apart.

Tried 20 %, 25 % (this) and 33 % of the rows, 10 runs of the paper's cells with rows, exponential:
0.0441, 0.0409 and 0.0428.
"""

HALVES_WORTH = 1.3
"""Halves are cells if that multiplies the variance of a bin with 1/N of the people by less.

Halves at all: era 1, R 0.217 / 0.39 without, 0.193 / 0.39 with. The number itself is a guess.
"""

ASK = 1024
"""The unit of the shares of axes in a release. Not tuned."""

ASK_PER_EFFECT = 0.1
"""The share of people who are asked about an axis, for each unknown effect in question …

A number has one effect, and L levels without order L - 1. Tried 0.1, 0.12 and 0.15, R at ε = 1
and 2 (80 runs): 0.205 / 0.38, 0.209 / 0.39 and 0.208 / 0.46; and 0.215 / 0.48 with 0.15 for each
axis and one more. Linear in 2 of 20 features 0.494/0.185, -, 0.462/0.187 and 0.443/0.207 of random
at ε = 1 and 4 (60 runs). By effects instead of axes, at 0.15 (30 runs): 6 levels in turns
0.203/0.019 and 0.159/0.015, 30 levels 0.965/0.277 and 0.743/0.143.
``sottovoce bench regret --worlds --only levels``
"""

ASK_SHARPNESS = 1.5
"""The power of the variation along an axis, in proportion to which people are asked about it.

Tried 1, 1.5 and 2 (40, 30 and 30 runs): linear in 2 of 20 features 0.456/0.213, 0.444/0.181 and
0.473/0.178 of random at ε = 1 and 4, one of 40 features 0.335/0.071, 0.314/0.062 and 0.212/0.063,
one of 10 0.181/0.039, 0.203/0.034 and 0.213/0.040.
"""

ASK_MOST = 0.9
"""… and at most. Tried 0.8 and 0.95, with SPLIT_RELEVANT of 0.6 and 0.8; see there."""

FEW_MATTER = 2.0
"""How many axes are expected to matter.

Tried 2 and 3, the latter with three times the rest that no question shows: symmetric, ε = 1,
n = 20,000, 0.384 and 0.317 of random (30 runs); the worlds with many features were not run with 3.
"""

# Where people are along an axis of numbers (estimate/whisper/scale.py, estimate/whisper/shapes.py).
#
# Figures are shares of random at ε = 1 / 4 in the world "exponential, long tails" of
# ``sottovoce bench regret --worlds``, 24 to 30 runs; without scales 0.935/0.849.

SCALE_OFF = 0.25
"""An axis gets a scale of its own when a quarter of the people seems to lie so far off …

Tried 0.12 and this: with 0.12 a uniform feature of which 30 % are missing, and lie at 0, gets a
scale, and the world "a value missing at random" lost 0.411/0.193 instead of 0.323/0.082 without.
"""

SCALE_OFF_AGAIN = 0.12
"""… and another one when it is off by this. What was told of the halves of before is carried over.

Tried: one scale for good, once the shape is known to 0.08 (0.360/0.102); and this (0.248/0.045).
"""

SCALE_ERROR = 0.12
"""A shape is known when its quarters are, to this share of the people. Tried 0.07 to 0.13; see
UNIFORM_SHARE."""

SCALE_PER_AXIS = 0.15
"""The share of people who are asked where they are, for each axis in question and one more …

Tried 0.06, 0.1 and 0.15; see UNIFORM_SHARE.
"""

SCALE_MOST = 0.4
"""… and at most. A guess."""

UNIFORM_SHARE = 0.85
"""How likely people are to be uniform along an axis, before anybody has told.

Tried 0.6 to 0.9 with UNIFORM_LEAST of 0.5, 0.05 and 0.02, 30 runs, on uniform features and long
tails. 0.8, an error of 0.1 and 0.1 per axis: 0.215/0.044 and 0.266/0.054. 0.9, 0.07 and 0.1:
0.191/0.045 and 0.413/0.102. These: 0.211/0.032 and 0.224/0.044, all with SCALE_OFF of 0.12.
"""

UNIFORM_LEAST = 0.05
"""Uniform people are ruled out when they are less likely than this. See UNIFORM_SHARE."""

LEVEL_MASS_DEVIATION = 0.5
"""Prior standard deviation of the share of a level, relative to what was expected. A guess."""

# Before anything is known, and from parent to child (estimate/whisper/smoothing.py).

REWARD_DEVIATION = 0.25
"""Prior standard deviation of an arm's mean reward around 1/2, at the root. A guess."""

SLOPE_DEVIATION = 0.2
"""Prior standard deviation of a slope over an edge of length 1, at the root.

Tried 0.15 to 0.35. Era 1, R: 0.19 with 0.2, 0.21 with 0.25, 0.22 with 0.3, 0.24 with 0.35.
"""

SLOPE_KEPT = 0.75
"""The share of a parent's slope that its halves have; half of it along the feature of the split.

Tried with SLOPE_RENEWED. Era 2, R: 0.75 and 0.5 (these) 0.156 / 0.43; 0.9 and 0.2 0.173 / 0.68;
1 and 0.1 0.181 / 0.74; 0.7 and 0.25 0.175 / 0.65.
"""

SLOPE_RENEWED = 0.5
"""The share of a slope's expected square that is a half's own variance.

See SLOPE_KEPT. Era 3: 0.75 or 1 cost 0.5 % of the reward and more (T).
"""

SQUARE_ALONG_SPLIT = 0.5
"""The share of a slope's square that a half expects along the feature of the split. A guess."""

PRIOR_SHARE = 0.05
"""The share of a half's expected square that is the root's prior, whatever its parent says.

A guess. All of it ("slopes begin anew"): era 1, R 0.223 / 0.52 instead of 0.193 / 0.39.
"""

SMOOTH_AFTER_GROWTH = 0.05
"""Smooth again when reports have grown by this share …

A guess: it keeps the work for a report the same.
"""

SMOOTH_AFTER_PER_NODE = 20
"""… and by this many for each node of the tree. A guess, as the last."""

# Who is in a bin (estimate/whisper/measurement.py).

MASS_DEVIATION = 0.3
"""Prior standard deviation of a bin's share of the people, relative to what its parent expected.

A guess.
"""

HALF_DEVIATION = 0.2
"""Prior standard deviation of the share of a bin's people in its upper half around 1/2. A guess."""

MASS_LIMIT = 4.0
"""A bin's share of people stays within this factor of what was expected.

A guess: it keeps noise from making a share 0.
"""

LEAST_HALF = 0.01
"""The least share of a bin's people that a half is expected to have when it is made.

A guess: perhaps nobody was counted there, but someone may come.
"""

# Decisions and splits (estimate/whisper/decisions.py, split.py).

LOGGED_TRUST = 0.5
"""The share of its worth by which a logged row counts as people so far, when arms are dropped.

Tried 0 to 1. Era 3, 40 runs on four tables, n/4 and n: 0.5 brings +0.5 % and +0.7 % at ε_m = 1,
1 brings +0.9 % and +0.4 %, and misleads where the rows are of other people.
"""

SPLIT_BELOW = 0.3
"""Split a bin when the variance of each gap is below this share of the variation inside of it.

Tried 0.15, 0.3, 0.6. Era 2, R: 0.164 / 0.55, 0.156 / 0.43, 0.153 / 0.41, the last no better on T.
"""

SPLIT_GUESS = 2.0
"""How many times more the variation that no question shows counts for a split than for a decision.

Two axes may matter only together, and a split costs little. Tried 0, 2 and 5, 40 runs, R: 0.164 /
0.60, 0.161 / 0.51 and 0.161 / 0.54.
"""

SPLIT_KNOWN = 0.5
"""Split only if what is seen along one axis is so much of the doubt along all others.

Less where there are few axes, and nothing for two. Tried 0.5 and 1: linear in 2 of 20 features
0.449/0.154 and 0.462/0.205 of random at ε = 1 and 4, one of 40 features 0.274/0.064 and 0.315/0.080
(12 runs each).
"""

SPLIT_RELEVANT = 0.8
"""Split only along an axis of this relevance, where there are many.

Tried none and 0.6: linear in 2 of 20 features 0.570/0.270 and 0.445/0.202 of random at ε = 1 and 4
(8 and 12 runs). 0.6 and 0.8, the latter with ASK_MOST of 0.95 instead of 0.8: 0.492/0.218 and
0.510/0.177 there, and 0.232/0.052 and 0.208/0.051 where one of 20 features matters (24 runs).
"""

SLOPE_DOUBT = 0.3
"""The share of a slope's variance that counts when the feature of a split is chosen.

Tried 0.3 and 1. Era 1, worst cell with auxiliary data: 0.35 and 0.40.
"""

SPLIT_GAIN = 1.0
"""Split instead of dropping an arm if the split gains at least this much reward.

The rule: T at ε = 1, ε_m = 4, adult 0.824/0.826 without, 0.830/0.833 with. The number is a guess.
"""

TIE = 1e-9
"""Estimates that differ by less are equal, and the first is taken.

Not tuned: the learner and the compiled crowd must agree in spite of rounding.
"""

DEEPEST = 40
"""No bin is split more often. Not tuned: edges of 2^-40 hold nobody."""

# The audit of auxiliary data (estimate/whisper/audit.py, estimate/diagnosis.py).

AUDIT_ERRORS = 2.5
"""The audit is clear when delivery is so many standard errors away from half of the promised gain.

One look in 160 goes wrong where exactly half is delivered. Seen: no false alarm in 400 runs at
ε_m = 4, 12 in 400 at ε_m = 1.
"""

AUDIT_LEAST = 100
"""Fewer answers decide nothing. A guess."""

# What auxiliary data and the past are believed (estimate/whisper/trust.py, bias.py).
#
# Figures are shares of random at ε = 1 / 4 in the worlds "rows: …" and "… drift" of
# ``sottovoce bench regret --worlds``, 50 to 60 runs of seeds 0-59, on which they were chosen.

REWARD_SHARE_FADING = 8
"""Of people who are served, for their reward, where what was learned fades. A guess."""

RIGHT_SHORTFALL = (-0.05, 0.12)
"""Mean and standard deviation of what people get less what was promised, in shares of the gain.

Tried (-0.1, 0.2) and this: rows wrong in half of the space 0.282/0.238 and 0.202/0.044.
"""

WRONG_SHORTFALL = (-0.9, 0.4)
"""The same, where promises are wrong. Tried (-1.2, 0.5) and this, with little difference."""

WRONG_ODDS = 0.2
"""The odds of wrong to right promises before anybody has told. A guess."""

BEGIN_ANEW_ODDS = 30.0
"""Begin anew when wrong is so much more likely than right, where promises are of others.

Tried 3, 10, 30 and never, 100 runs at ε = 1: rows wrong in half of the space 0.214, 0.216, 0.221
and 0.705, in three quarters 0.214, 0.214, 0.207 and 0.379, right everywhere 0.013, 0.011, 0.011 and
0.011. At 3, one run in 60 to 100 began anew though the rows were right; at 1, one run in eight.
"""

CHANGED_ODDS = 20.0
"""The same, where the world may change: there are many looks. Tried 3, 10, 20."""

NEW_WINDOW_ODDS = 0.2
"""Begin a new window of answers when wrong has become so much less likely. A guess."""

CHECKED_ERROR = 0.12
"""Learn the bias of others bin by bin once the shortfall is known to this share of the gain.

Until then a small bias is assumed, so that promises that are wrong everywhere are soon seen to be.
Learned from the beginning, rows wrong in half of the space gave 0.386/0.117; from here on, see
docs/research/whisper-figures.md.
"""

BIASES = (0.03, 0.2, 0.5)
"""How far the rewards of others may lie from the target's: hardly, somewhat, or so far that they
say nothing.

Tried 0.12 for the second, with 1/50 of LOGGED_TRUST once promises were checked and bins opened only
where an arm was twice as far from being dropped: rows right everywhere 0.017/0.009, wrong in a
quarter of the space 0.281/0.144. These, with the same trust throughout: 0.019/0.008 and 0.261/0.088
(40 runs), and the paper's cells with rows (exponential, 6 runs) 0.030 instead of 0.044.
"""

BIAS_SHARES = (0.3, 0.35, 0.35)
"""How many bins are expected to have each. Tried 0.5, 0.3, 0.2, and 0.2, 0.4, 0.4; see BIASES."""

BIAS_BINS = 4.0
"""So many bins' worth of belief these shares are. A guess."""

# What an operator is told to expect (shared/whisper/outlook.py). Nothing is learned by these.
#
# ``python -m benchmarks.expect --fit`` fits the first five to docs/figures/results/expect.json, and
# prints how far they are off.

OUTLOOK_PEOPLE = 21.0
"""After so many people, with one arm, axis and level and no noise, half of random is lost."""

OUTLOOK_ARMS = 2.9
"""The power by which this number grows with the arms …"""

OUTLOOK_AXES = 1.7
"""… with the axes …"""

OUTLOOK_LEVELS = 1.6
"""… and with the levels without order, of all axes together."""

OUTLOOK_FALL = 0.68
"""The power by which the odds of losing fall as more people come."""

OUTLOOK_BINS = 4
"""How many bins are contested, for the mechanism's variance. Tried 1, 2, 4 and 8: the root mean
square of the error of a share was 0.129, 0.117, 0.111 and 0.111 (2 runs of each cell)."""

# What follows is in intervals alone: no decision reads it (``estimate/whisper/known.py``).

LEVEL_DEVIATION = 0.5
"""By how much all arms together may be better or worse than 1/2, on top of REWARD_DEVIATION.

Tried: 0 (what arms bring for everybody is pulled towards 1/2: intervals held it in 90 to 95 of 100
cases where contexts are crowded at ε = 4, in 40 runs), 0.5.
"""

COMMON_DEVIATION = 0.2
"""By how much all arms may rise together along a split, in means over all bins.

Tried, with how often intervals of what an arm brings for everybody held it, and the mean error of
the release's value, where contexts are crowded at ε = 4, in 150 runs: 0 (95.1 %, +0.05), 0.12
(97.3 %, +0.04), 0.2 (98.0 %, +0.02). ``python -m benchmarks.coverage`` shows what it is now.
"""
