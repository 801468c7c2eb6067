# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of IDs and keys: integers (KeyFlow) or polynomials over GF(2) (PolKA). IDs are powers of prime
numbers or of irreducible polynomials."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache

from shunt_controller.plan import gf2


class Arithmetic(ABC):
    """A ring with remainders, whose elements are encoded as numbers."""

    name: str

    @abstractmethod
    def primes(self, labels: int, count: int) -> Sequence[int]:
        """Returns the smallest primes in ascending order, such that `count` of them have at least `labels`
        residues each."""

    @abstractmethod
    def power(self, prime: int, labels: int) -> int:
        """Returns the smallest power of a prime with at least `labels` residues."""

    @abstractmethod
    def factors(self, value: int) -> list[int]:
        """Returns the primes that divide an ID."""

    @abstractmethod
    def residues(self, value: int) -> int:
        """Returns the number of residues. Labels are less than this number."""

    @abstractmethod
    def size(self, value: int) -> float:
        """Returns the number of bits that an ID adds to a key."""

    @abstractmethod
    def plus(self, a: int, b: int) -> int:
        """Returns the sum of two elements."""

    @abstractmethod
    def times(self, a: int, b: int) -> int:
        """Returns the product of two elements."""

    @abstractmethod
    def are_coprime(self, product: int, value: int) -> bool:
        """Returns whether an ID has no factor in common with a product of other IDs."""

    @abstractmethod
    def bits(self, product: int) -> int:
        """Returns the length in bits of the largest key whose IDs have this product."""

    @abstractmethod
    def residue(self, key: int, modulus: int) -> int:
        """Returns the remainder of a key modulo an ID."""

    @abstractmethod
    def extend(self, key: int, product: int, modulus: int, label: int) -> int:
        """Returns the smallest key with two remainders: that of `key` modulo `product`, and `label` modulo
        `modulus`."""


class Integers(Arithmetic):
    """Arithmetic with integers."""

    name = "integer"

    def primes(self, labels: int, count: int) -> Sequence[int]:
        return primes(primes_from(max(2, labels), count)[-1] + 1)

    def power(self, prime: int, labels: int) -> int:
        value = prime
        while value < labels:
            value *= prime
        return value

    def factors(self, value: int) -> list[int]:
        found = []
        divisor = 2
        while divisor * divisor <= value:
            if value % divisor == 0:
                found.append(divisor)
                while value % divisor == 0:
                    value //= divisor
            divisor += 1
        return found + [value] * (value > 1)

    def residues(self, value: int) -> int:
        return value

    def size(self, value: int) -> float:
        return math.log2(value)

    def plus(self, a: int, b: int) -> int:
        return a + b

    def times(self, a: int, b: int) -> int:
        return a * b

    def are_coprime(self, product: int, value: int) -> bool:
        return math.gcd(product, value) == 1

    def bits(self, product: int) -> int:
        return (product - 1).bit_length()

    def residue(self, key: int, modulus: int) -> int:
        return key % modulus

    def extend(self, key: int, product: int, modulus: int, label: int) -> int:
        return key + product * ((label - key) * pow(product, -1, modulus) % modulus)


class Polynomials(Arithmetic):
    """Arithmetic with polynomials over GF(2), of any degree or of one fixed degree, as CRC hardware
    requires."""

    name = "polynomial"

    def __init__(self, fixed_degree: int = 0) -> None:
        self.fixed_degree = fixed_degree

    def primes(self, labels: int, count: int) -> Sequence[int]:
        if self.fixed_degree:
            return gf2.irreducibles(self.fixed_degree)
        found: list[int] = []
        degree, left = 0, count
        while left > 0:
            degree += 1
            found += gf2.irreducibles(degree)
            if 1 << degree >= labels:
                left -= len(gf2.irreducibles(degree))
        return found

    def power(self, prime: int, labels: int) -> int:
        value = prime
        while 1 << gf2.degree(value) < labels:
            value = gf2.times(value, prime)
        return value

    def factors(self, value: int) -> list[int]:
        return gf2.factors(value)

    def residues(self, value: int) -> int:
        return 1 << gf2.degree(value) if value else 0

    def size(self, value: int) -> float:
        return float(gf2.degree(value))

    def plus(self, a: int, b: int) -> int:
        return a ^ b

    def times(self, a: int, b: int) -> int:
        return gf2.times(a, b)

    def are_coprime(self, product: int, value: int) -> bool:
        return gf2.inverse(product, value) != 0

    def bits(self, product: int) -> int:
        return gf2.degree(product)

    def residue(self, key: int, modulus: int) -> int:
        return gf2.remainder(key, modulus)

    def extend(self, key: int, product: int, modulus: int, label: int) -> int:
        missing = label ^ gf2.remainder(key, modulus)
        return key ^ gf2.times(product, gf2.remainder(gf2.times(missing, gf2.inverse(product, modulus)), modulus))


INTEGERS = Integers()
POLYNOMIALS = Polynomials()


@cache
def primes(below: int) -> tuple[int, ...]:
    """Returns all prime numbers below a number."""
    sieve = bytearray([1]) * max(below, 2)
    sieve[:2] = b"\0\0"
    for number in range(2, math.isqrt(len(sieve)) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, len(sieve), number)))
    return tuple(number for number in range(below) if sieve[number])


def primes_from(first: int, count: int) -> list[int]:
    """Returns the first `count` prime numbers that are not below a number."""
    below = 64
    while True:
        found = [prime for prime in primes(below) if prime >= first]
        if len(found) >= count:
            return found[:count]
        below *= 2
