"""What a password may be, and one that we make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core import ids
from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    import random

LEAST_CHARACTERS = 12
MOST_CHARACTERS = 256
GENERATED_CHARACTERS = 32
"""Of 36 letters and digits: 165 bits."""


def password_checked(password: str) -> str:
    """The same. Raises Invalid, whose text does not repeat it."""
    if not LEAST_CHARACTERS <= len(password) <= MOST_CHARACTERS:
        raise Invalid.field("password", f"must have {LEAST_CHARACTERS} to {MOST_CHARACTERS} characters")
    if not password.isprintable():
        raise Invalid.field("password", "must hold printable characters only")
    return password


def password_generated(source: random.Random) -> str:
    """One that nobody guesses, easy to copy and to type."""
    return ids.letters(source, GENERATED_CHARACTERS)
