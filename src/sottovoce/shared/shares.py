"""How many people of ``SHARES`` get each question of ``whisper``; public, and the same for all."""

SHARES = 160

# Of people who are served; the rest is asked to compare the arms on offer.
MASS_SHARE = 8
LEVEL_SHARE = 5
REWARD_SHARE = 24  # at least, where there are auxiliary populations; a release may ask for more

# Of logged rows; the rest is asked for outcomes.
COUNT_SHARE = 16
COUNT_SHARE_UNKNOWN = 80
TONE_SHARE = 32

# About one of the features, at a small ε; the rest is about whole bins.
FEATURE_SHARE = 48
LOGGED_FEATURE_SHARE = 88
