"""What the console says in a language, found by its English: stories are written once and told in both languages.

A text that the catalogue does not have fails the story in either language, so that a story never looks for what no page says.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

CATALOGUE = Path(__file__).resolve().parents[2] / "controlplane" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
VALUE = re.compile(r"%\(\w+\)[sd]|\{\w+\}|%[sd]")
TAG = re.compile(r"<[^>]*>")
ENGLISH, CHINESE = "en", "zh-hans"


@cache
def _translations() -> dict[str, tuple[str, ...]]:
    """By English text without its tags, singular and plural: what it is in Chinese, once for each context."""
    found: dict[str, tuple[str, ...]] = {}
    with CATALOGUE.open("rb") as file:
        for message in read_po(file, locale="zh_Hans"):
            if not message.id:
                continue
            ids = message.id if isinstance(message.id, (tuple, list)) else (message.id,)
            strings = message.string if isinstance(message.string, (tuple, list)) else (message.string,)
            for each in map(_plain, ids):
                found[each] = (*found.get(each, ()), *map(_plain, strings))
    return found


def _plain(text: str) -> str:
    return " ".join(TAG.sub("", text).split())


def _with_values(text: str) -> str:
    return ".*?".join(re.escape(each) for each in VALUE.split(text)).replace("%%", "%")


class Words:
    """The words of one language."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, text: str, **values: object) -> str:
        """A whole text: a label, a button, a link. `values` stand in its places. Raises KeyError."""
        (said, *others) = dict.fromkeys(_translations()[text])
        assert not others, f"{text!r} depends on where it stands: {(said, *others)}"
        return _filled(text if self.language == ENGLISH else said, values)

    def says(self, part: str) -> re.Pattern[str]:
        """The sentences that have this part, between two of their values, in English. Raises KeyError where none has."""
        found = {english: said for english, said in _translations().items() if part in english}
        if not found:
            raise KeyError(part)
        if self.language == ENGLISH:
            return re.compile(_with_values(part))
        return re.compile("|".join({_with_values(each) for said in found.values() for each in said}), re.DOTALL)


def _filled(text: str, values: dict[str, object]) -> str:
    for name, value in values.items():
        text = text.replace(f"%({name})s", str(value)).replace(f"{{{name}}}", str(value))
    assert not VALUE.search(text), f"{text!r} has places for values"
    return text
