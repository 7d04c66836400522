# SPDX-License-Identifier: Apache-2.0
"""A sequence of random numbers that the seed decides, the same on every machine and in every
version of Python: splitmix64 (Steele, Lea, Flood, OOPSLA 2014) for the bits, 53 of them for a
fraction, and Box and Muller's formula for the normal distribution. Not for secrets.
"""

import math

MASK = (1 << 64) - 1


class SeededRandom:
    """The sequence of a seed."""

    def __init__(self, seed: int):
        self.state = seed & MASK

    def fraction(self) -> float:
        """A number from 0 to 1, 1 not included."""
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """An integer from 0 to bound - 1."""
        return int(self.fraction() * bound)

    def normal(self) -> float:
        """A number of the normal distribution with mean 0 and standard deviation 1."""
        radius = math.sqrt(-2 * math.log(1 - self.fraction()))
        return radius * math.cos(2 * math.pi * self.fraction())
