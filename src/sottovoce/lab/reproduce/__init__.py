"""The synthetic experiments of the paper's section 4.1, reproduced and corrected.

cases (what is run) → sweep → table (means, confidence, published values) → figures.
"""
