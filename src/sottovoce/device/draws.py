"""The randomness of a device: exact draws from the operating system."""

import secrets


class OperatingSystem:
    """The operating system's randomness. No seed can be set.

    A test puts something else in its place, to follow every possible draw.
    """

    def chance(self, numerator: int, denominator: int) -> bool:
        """Return true with probability numerator/denominator."""
        return secrets.randbelow(denominator) < numerator

    def chance_of_bits(self, numerator: int, count: int) -> bool:
        """Return true with probability numerator/2^count, always by a draw of that many bits."""
        return self.bits(count) < numerator

    def below(self, limit: int) -> int:
        """Return each of 0, …, limit − 1 with the same probability."""
        return secrets.randbelow(limit)

    def bits(self, count: int) -> int:
        """Return each of 0, …, 2^count − 1 with the same probability."""
        return secrets.randbits(count)


OPERATING_SYSTEM = OperatingSystem()
