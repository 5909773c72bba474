"""Sizes as sentences tell them."""

from __future__ import annotations

from quota.contracts.instance import GIB, MIB


def size_text(size: int) -> str:
    """In the unit in which it is not nothing, to the hundredth: an instance may be smaller than a GiB."""
    value, unit = (size / GIB, "GiB") if size >= GIB else (size / MIB, "MiB")
    return f"{value:.2f}".removesuffix("0").removesuffix(".0") + f" {unit}"
