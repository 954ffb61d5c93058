"""Published methods to compare with, playable by ``simulate``; for the lab alone.

``abse``    Perchet and Rigollet 2013: adaptive bins, not private
``linear``  Han, Liang, Wang and Zhang 2021: a logistic model per arm by private gradients
``nn``      the same with a network of one hidden layer per arm

The private ones send one ε-LDP report a user, drawn on a sphere (``sphere``). They are here to be
measured, not deployed: ordinary floating point, seeded randomness, no device, no server.
"""

from sottovoce.lab.baselines.abse import Abse
from sottovoce.lab.baselines.gradients import Linear, Neural

__all__ = ["Abse", "Linear", "Neural"]
