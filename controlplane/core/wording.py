"""What Python says, in the language of the reader: `worded` finds the translation of a finished English sentence.

Services, rules, forms and views speak English: REST answers so, logs and the database keep it so, and brokers say it so.
`worded` is applied where a page shows it, `said_in` where a mail is written to somebody whose language is known. A text without
figures or names is looked up as it is. Of one that was made by an f-string the catalogue has the pattern, with a name in braces
for each value (`topic {name} is ready`): the pattern that fits gives the values, and these go into its translation. What a
tenant has named is a value, and is never translated; of the few values that are sentences themselves the names say so
(`SENTENCES`).

The alternative, gettext around each text in each service, would make REST's language depend on a header, or give every text
two forms. Texts of templates are marked in the templates. `console/extraction.py` finds both (docs/decisions/0031).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext, override
from django.utils.translation.trans_real import translation

from controlplane.core import sums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLACE = re.compile(r"\{(\w+)\}")
SENTENCES = frozenset(
    "allowed because detail direction done error have in_force kind metering_problem one operation operation_title problem "
    "reason role said sentence so state subject them title used verb waited what who whom why words".split()
) | {"becomes", "not_you"}
"""Values with these names are texts of ours."""
LISTS = frozenset({"sizes"})
"""Values with these names are texts of ours, one behind the other with commas between."""
LEAST_LETTERS = 5
"""Of a pattern outside of its values: a shorter one would fit anything."""


def worded(value: Any) -> Any:
    """`value` in the language of the page; itself in English, where no translation is known, and where it is no text.

    Whoever is for some instances alone, or sees no costs, reads no sums of the organisation in it (core/sums.py).
    """
    if isinstance(value, list):
        return [worded(each) for each in value]
    if isinstance(value, str) and not isinstance(value, SafeString) and not sums.are_told():
        value = sums.without(value)
    if not isinstance(value, str | Promise) or isinstance(value, SafeString) or is_english():
        return value
    return _worded(str(value), get_language() or settings.LANGUAGE_CODE)


def filled(pattern: str, **values: object) -> str:
    """The translation of `pattern`, with `values` for the names in its braces."""
    return _with(gettext(pattern), values)


def _with(pattern: str, values: Mapping[str, object]) -> str:
    return PLACE.sub(lambda place: str(values.get(place[1], place[0])), pattern)


def is_english() -> bool:
    """Whether the page is."""
    return (get_language() or "en").partition("-")[0] == "en"


def joined(*sentences: str) -> str:
    """One behind the other: Chinese has no space between them."""
    between = " " if is_english() else ""
    return between.join(sentence for sentence in sentences if sentence)


def said_in(language: str, text: str) -> str:
    """`text` of a mail in the language of who gets it, line by line; a line that is not known stays English, and whole.

    The language is not the page's, and nothing is left out of it for whoever asks. Mails hold links that nobody else may see:
    no memory keeps them here.
    """
    with override(language):
        if is_english():
            return text
        return "\n".join(_line_said(line, language) for line in text.split("\n"))


def _line_said(line: str, language: str) -> str:
    said = line.lstrip(" ")
    return line[: len(line) - len(said)] + _found(said, language)


def known(language: str | None) -> str:
    """One of the service's languages: `language`, or English where it is none of them."""
    return language if language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


def of_page() -> str:
    """The language that the page has which is being answered."""
    return known(get_language())


@lru_cache(maxsize=2048)
def _worded(text: str, language: str) -> str:
    return _found(text, language)


def _found(text: str, language: str) -> str:
    found = gettext(text) if text else text
    if found != text:
        return found
    for parts, target in _patterns(language):
        values = fitting(parts, text)
        if values is not None:
            return _with(target, {name: _value(name, value, language) for name, value in values.items()})
    return text


def _value(name: str, value: str, language: str) -> str:
    bare = name.rstrip("0123456789")
    if bare in LISTS:
        return gettext(", ").join(_found(part, language) for part in value.split(", "))
    return _found(value, language) if bare in SENTENCES else value


@lru_cache(maxsize=8)
def _patterns(language: str) -> list[tuple[list[str], str]]:
    """Of the catalogue, those that say most first: each in parts, as `fitting` takes it, with its translation."""
    texts = {
        text: target
        for text, target in translation(language)._catalog.items()  # type: ignore[attr-defined]  # noqa: SLF001
        if isinstance(text, str) and isinstance(target, str) and target and is_pattern(text)
    }
    by_length = sorted(texts, key=lambda text: -len(PLACE.sub("", text)))
    return [(PLACE.split(text), texts[text]) for text in by_length]


def is_pattern(text: str) -> bool:
    """Whether a text of the catalogue has values, and enough beside them to be known by."""
    return bool(PLACE.search(text)) and sum(map(str.isalpha, PLACE.sub("", text))) >= LEAST_LETTERS


def fitting(parts: Sequence[str], text: str) -> dict[str, str] | None:
    """The values with which a pattern makes `text`; None: it does not. `parts` are by turns what stands there, and a name.

    Each value is as short as it can be, and found in one pass: a regular expression would try all ways to divide a long text.
    """
    if not text.startswith(parts[0]):
        return None
    at = len(parts[0])
    values: dict[str, str] = {}
    for number in range(1, len(parts), 2):
        name, behind = parts[number], parts[number + 1]
        is_last = number + 2 == len(parts)
        end = text.find(behind, at) if not is_last else len(text) - len(behind) if text.endswith(behind) else -1
        if end < at or values.setdefault(name, text[at:end]) != text[at:end]:
            return None
        at = end + len(behind)
    return values
