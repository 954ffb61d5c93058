"""How much people lose: a method against published means, other methods, and arms at random.

``benches`` says where to measure (the paper's cells, the tuning problems), ``cells`` runs them all
and sums them up. ``worlds`` has the worlds beyond the paper's, with their limits.
"""
