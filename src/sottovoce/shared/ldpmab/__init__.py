"""``ldpmab``, the paper's method: its settings, and the constants of the Laplace mechanism."""

from sottovoce.shared.ldpmab.settings import Ldpmab

SETTINGS = Ldpmab
