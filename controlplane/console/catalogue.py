"""The catalogue of a language: `.po` files beside what `extraction.py` finds. `manage.py words` brings both together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from controlplane.console.extraction import ROOT, Text, texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from babel.messages.catalog import Message

LOCALE = ROOT / "controlplane" / "locale"
PLACES = re.compile(r"%\(\w+\)s|\{\w+\}|</?[a-z][^>]*>")
"""What both sides of a translation have alike: values and markup."""
HEADER = """\
# The console in Simplified Chinese. `manage.py words` keeps it beside templates and code; see docs/subsystems/languages.md.
"""


def catalogues() -> list[Path]:
    """One for each language but English."""
    return sorted(LOCALE.glob("*/LC_MESSAGES/django.po"))


def read(path: Path) -> Catalog:
    """As it stands in the file."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parents[1].name, abort_invalid=True)


def renewed(known: Catalog) -> Catalog:
    """What is shown now, with the translations that are known; what is shown no more is left out."""
    made = Catalog(
        locale=known.locale,
        header_comment=HEADER,
        project="Sluice",
        version="1.0",
        msgid_bugs_address="",
        last_translator="",
        language_team="",
        charset="utf-8",
        fuzzy=False,
        creation_date=known.creation_date,
        revision_date=known.creation_date,  # the same texts make the same file
    )
    for text in texts():
        message = known.get(text.singular, text.context)
        there = [part for part in _forms(message) if part] if message is not None else []
        made.add(text.key, _translation(text.plural, there), locations=[(text.place, None)], context=text.context)
        _of(made, text).flags.clear()  # formats are checked by a test of ours, which knows both kinds of values
    return made


def _of(catalogue: Catalog, text: Text) -> Message:
    message = catalogue.get(text.singular, text.context)
    assert message is not None
    return message


def _translation(plural: str | None, there: list[str]) -> str | tuple[str, ...]:
    first = there[0] if there else ""
    return first if plural is None else (first,)


def write(path: Path, catalogue: Catalog) -> None:
    """In the order of its places, without line numbers: a change of a template changes the lines that it is about."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue, width=0, include_lineno=False)


def missing(catalogue: Catalog) -> list[str]:
    """What is shown and has no translation, or one that is to be looked at again."""
    return [text.singular for text in texts() if not _is_translated(catalogue.get(text.singular, text.context))]


def superfluous(catalogue: Catalog) -> list[str]:
    """What is translated and shown no more."""
    found = {(text.singular, text.context) for text in texts()}
    return [singular(each) for each in catalogue if each.id and (singular(each), each.context) not in found]


def unlike(catalogue: Catalog) -> list[str]:
    """Translations whose values or markup are not those of the text."""
    return [singular(message) for message in catalogue if message.id and not _is_alike(message)]


def singular(message: Message) -> str:
    """The text itself, of a plural its first form."""
    return str(message.id[0] if isinstance(message.id, tuple | list) else message.id)


def _is_alike(message: Message) -> bool:
    ids = message.id if isinstance(message.id, tuple | list) else (message.id,)
    wanted = {tuple(sorted(PLACES.findall(str(each)))) for each in ids}
    return all(tuple(sorted(PLACES.findall(part))) in wanted for part in _forms(message) if part)


def _forms(message: Message) -> Iterable[str]:
    return message.string if isinstance(message.string, tuple | list) else (message.string,)


def _is_translated(message: Message | None) -> bool:
    return message is not None and not message.fuzzy and all(_forms(message))
