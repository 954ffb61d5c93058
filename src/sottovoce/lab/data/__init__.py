"""Classification data turned into bandits: each class is an arm, and the right one brings 1.

    from sottovoce.lab import Table, play, reward_at

    data = Table("students.csv", label="grade", group="school", target="north").load()
    result = play(data, method="whisper", epsilon=1, epsilon_aux=4, seed=0)
    print(reward_at(result, len(data.target)))

``catalogue`` has data sets by name. A ``Deck`` is the people of one population, for ``simulate``.

The way of a table: file → columns → rows of each population → three numbers in [0, 1] for each
person → data set. What turns columns into those numbers (a reduction) is fitted on auxiliary or
public rows only: the server publishes it before the first target user comes.
"""
