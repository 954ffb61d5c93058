"""The real-data table of the paper's section 4.2: mean rewards relative to ``abse``.

cases (what is run) → sweep → comparison (means, ranks, tests) → tables and a picture. The paper's
own values stand beside ours where it has them (published). ``lab/comparison.py`` does the same for
a table of anybody's.
"""
