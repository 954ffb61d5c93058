"""What an experiment can give, before the first person: simulated from its own file.

worlds.py draws plausible worlds, runs.py plays one of them, plan.py puts the runs together,
gain.py says when the gain shows, check.py refuses what no plan can be made of.
"""
