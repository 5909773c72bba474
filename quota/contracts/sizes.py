"""Sizes as sentences tell them."""

from __future__ import annotations

from quota.contracts.instance import GIB, MIB


def size_text(size: int) -> str:
    """In the unit in which it is not nothing: an instance may be smaller than a GiB."""
    return f"{size / GIB:.4g} GiB" if size >= GIB else f"{size / MIB:.4g} MiB"
