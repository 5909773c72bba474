"""Money and quantities: Decimal all the way, rounded once, at the end of a line.

An *amount* has the currency's two decimals and is rounded half up, as invoices are; everything before it (quantities,
unit prices, products of the two) is exact. A total is a sum of amounts, so that anyone can add a bill up. Decimals
leave the program as plain text ("1248.39", never "1.24839E+3"), without a float anywhere on the way. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction

CENT = Decimal("0.01")
_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
"""60 digits: bytes of a month to the last one, times a price, with room to spare."""


def amount_of(quantity: Decimal, unit_price: Decimal) -> Decimal:
    """What a line costs: the exact product, rounded once."""
    return _EXACT.quantize(product_of(quantity, unit_price), CENT)


def product_of(quantity: Decimal, unit_price: Decimal) -> Decimal:
    """The exact product, for those who want it before it is rounded."""
    return _EXACT.multiply(quantity, unit_price)


def difference_of(after: Decimal, before: Decimal) -> Decimal:
    """By how much the one is more than the other, exactly."""
    return _EXACT.subtract(after, before)


def total_of(amounts: Iterable[Decimal]) -> Decimal:
    """The sum of amounts that are rounded already."""
    with localcontext(_EXACT):
        return sum(amounts, Decimal("0.00"))


def in_units(count: int, unit: int) -> Decimal:
    """`count` in units of `unit` (bytes in GB): exact where the decimals end, else to nine of them."""
    share = Fraction(count, unit)
    with localcontext(_EXACT):
        return (Decimal(share.numerator) / share.denominator).quantize(Decimal("1e-9"))


def part_of(quantity: Decimal, part: int, whole: int) -> Decimal:
    """So much of a quantity: all of it exactly, else to nine decimals."""
    if part == whole:
        return quantity
    share = Fraction(quantity) * part / whole
    with localcontext(_EXACT):
        return (Decimal(share.numerator) / share.denominator).quantize(Decimal("1e-9"))


def text_of(value: Decimal) -> str:
    """Plain digits. Two decimals stay, as an amount has them; of longer ones, those that say nothing go."""
    text = f"{value:f}"
    return text if "." not in text or value.as_tuple().exponent == -2 else text.rstrip("0").rstrip(".")
