"""What holds for all tests."""

from hypothesis import settings

# A busy machine is no fault: how fast things are is measured in benchmarks/.
settings.register_profile("sottovoce", deadline=None)
settings.load_profile("sottovoce")
