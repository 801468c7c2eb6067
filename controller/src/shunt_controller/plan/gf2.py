# SPDX-License-Identifier: Apache-2.0
"""Polynomials over GF(2), encoded as numbers whose bits are the coefficients: 0b1011 is x^3 + x + 1."""

from functools import cache


def degree(a: int) -> int:
    """Returns the degree of a polynomial, or -1 for 0."""
    return a.bit_length() - 1


def times(a: int, b: int) -> int:
    """Returns the product of two polynomials."""
    found = 0
    while b:
        low = b & -b
        found ^= a << low.bit_length() - 1
        b ^= low
    return found


def divided(a: int, b: int) -> tuple[int, int]:
    """Returns the quotient and the remainder."""
    quotient, length = 0, b.bit_length()
    while (shift := a.bit_length() - length) >= 0:
        quotient |= 1 << shift
        a ^= b << shift
    return quotient, a


def remainder(a: int, b: int) -> int:
    """Returns the remainder of a division."""
    length = b.bit_length()
    while (shift := a.bit_length() - length) >= 0:
        a ^= b << shift
    return a


def inverse(a: int, modulus: int) -> int:
    """Returns the inverse of `a`, or 0 if `a` and the modulus have a common factor."""
    before, now = modulus, remainder(a, modulus)
    was, found = 0, 1
    while now:
        quotient, rest = divided(before, now)
        before, now = now, rest
        was, found = found, was ^ times(quotient, found)
    return remainder(was, modulus) if before == 1 else 0


@cache
def irreducibles(of_degree: int) -> tuple[int, ...]:
    """Returns all irreducible polynomials of a degree."""
    return tuple(value for value in range(1 << of_degree, 2 << of_degree) if is_irreducible(value))


def is_irreducible(value: int) -> bool:
    """Returns whether a polynomial is irreducible: only 1 and the polynomial itself divide it."""
    half = degree(value) // 2
    return degree(value) >= 1 and all(
        remainder(value, smaller) for lower in range(1, half + 1) for smaller in irreducibles(lower)
    )


def factors(value: int) -> list[int]:
    """Returns the irreducible factors of a polynomial."""
    found, lower = [], 1
    while 2 * lower <= degree(value):
        for smaller in irreducibles(lower):
            if degree(value) >= lower and not remainder(value, smaller):
                found.append(smaller)
                while not remainder(value, smaller):
                    value = divided(value, smaller)[0]
        lower += 1
    return found + [value] * (degree(value) >= 1)
