"""The text of an API key: ``slc_<8 letters>_<40 letters>``.

The first part is stored as it is and finds the row; the whole is stored as SHA-256 only. No salt and no slow hash: the
40 letters are random (206 bits), so that there is nothing to guess, and a key is checked on every request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

from controlplane.core import ids

PREFIX_LETTERS = 8
SECRET_LETTERS = 40
_KEY = re.compile(rf"slc_([a-z0-9]{{{PREFIX_LETTERS}}})_[a-z0-9]{{{SECRET_LETTERS}}}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made: `text` is shown to its owner once, the rest is kept."""

    text: str
    prefix: str
    digest: str


def generate(source: ids.RandomSource, prefix: str | None = None) -> NewKey:
    """A key that nobody has had: what its owner is shown once, and never again. `prefix`: another secret of that key."""
    prefix = prefix or ids.letters(source, PREFIX_LETTERS)
    text = f"slc_{prefix}_{ids.letters(source, SECRET_LETTERS)}"
    return NewKey(text, prefix, digest(text))


def prefix_of(text: str) -> str | None:
    """The part that finds the row; None if this is no key at all."""
    match = _KEY.fullmatch(text)
    return match.group(1) if match else None


def digest(text: str) -> str:
    """What is stored of a key: it proves the key and does not give it away."""
    return hashlib.sha256(text.encode()).hexdigest()


def matches(text: str, stored_digest: str) -> bool:
    """Whether a presented key is the stored one, in a time that does not tell how much of it was right."""
    return hmac.compare_digest(digest(text), stored_digest)
