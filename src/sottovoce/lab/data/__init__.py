"""Classification data turned into bandits: each class is an arm, and the right one brings 1.

    from sottovoce.lab.data.catalogue import load   # the data sets by name
    from sottovoce.lab.data.table import Table      # any table of your own
    from sottovoce.lab.data.deck import Deck        # the people of one population, for simulate

The way of a table: file → columns → rows of each population → three numbers in [0, 1] for each
person → data set. What turns columns into those numbers (a reduction) is fitted on auxiliary or
public rows only: the server publishes it before the first target user comes.
"""
