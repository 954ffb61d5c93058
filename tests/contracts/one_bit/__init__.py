"""``one_bit``: a method that exists in the tests only, to show what a new method takes.

Every person tells one bit: "my arm was k, and it went well", for an arm k that a public coin says,
through randomised response. There is no context: one bin, in which the arms that lose are dropped.

    shared    settings, and the odds on which both sides agree
    device    the coin, the true bit, and the bit that is told
    estimate  counts of bits in, releases out
    lab       the same for many people at once, in plain Python
"""
