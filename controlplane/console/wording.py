"""What Python says, in the language of the page: `worded` finds the translation of a finished English sentence.

Services, rules, forms and views speak English: REST answers so, logs and the database keep it so, and brokers say it so.
`worded` is applied where a page shows it. A text without figures or names is looked up as it is. Of one that was made by an
f-string the catalogue has the pattern, with a name in braces for each value (`topic {name} is ready`): the pattern that fits
gives the values, and these go into its translation. What a tenant has named is a value, and is never translated; of the few
values that are sentences themselves the names say so (`SENTENCES`).

The alternative, gettext around each text in each service, would make REST's language depend on a header, or give every text
two forms. Texts of templates are marked in the templates. `extraction.py` finds both (docs/decisions/0031).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation.trans_real import translation

from controlplane.core import sums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLACE = re.compile(r"\{(\w+)\}")
SENTENCES = frozenset(
    "allowed because detail direction done error have in_force kind metering_problem one operation operation_title problem "
    "reason role said sentence so state subject them title used verb waited what who whom why words".split()
)
"""Values with these names are texts of ours."""
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


@lru_cache(maxsize=2048)
def _worded(text: str, language: str) -> str:
    found = gettext(text) if text else text
    if found != text:
        return found
    for parts, target in _patterns(language):
        values = fitting(parts, text)
        if values is not None:
            return _with(target, {name: _value(name, value) for name, value in values.items()})
    return text


def _value(name: str, value: str) -> str:
    return worded(value) if name.rstrip("0123456789") in SENTENCES else value


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
    at, values = len(parts[0]), {}
    for number in range(1, len(parts), 2):
        name, behind = parts[number], parts[number + 1]
        is_last = number + 2 == len(parts)
        end = text.find(behind, at) if not is_last else len(text) - len(behind) if text.endswith(behind) else -1
        if end < at or values.setdefault(name, text[at:end]) != text[at:end]:
            return None
        at = end + len(behind)
    return values


NAMES = (
    # States and kinds as models keep them, with and without a capital where pages show both.
    *"creating running failed deleting deleted removed closed succeeded pending waiting done planning proposed paused".split(),
    *"isolated restoring begun refused critical OK".split(),
    *"cancelling cancelled expired asked moving skipped sent stopped healthy degraded unhealthy unknown starting behind".split(),
    *"queued over silent active late owner member viewer Owner Member Viewer Planning Proposed Running Paused Cancelling".split(),
    *"operator billing Operator Billing".split(),
    *"Cancelled Failed Done Succeeded Expired Waiting Asked Moving Skipped Sent Email Webhook email webhook alarm test".split(),
    *"Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    *"confirm issued brought none kept missed reported auto light dark".split(),
    # What is measured, and in what.
    *"produce consume storage bandwidth partitions connections requests errors limit allocated average maximum".split(),
    *"hour hours GB-hours months minute minutes second seconds days day h min s".split(),
    *"leader leaders above below empty . Is As Do it them".split(),
    "E-mail",
    "{number} records",
    *("there", "not there", "at least", "at most", "Another browser", "a member", "{number} members"),
    *("{leaders} leader", "{leaders} leaders"),
    *("{number} partition has no leader", "{number} partitions have no leader"),
    *("{number} partition is under-replicated", "{number} partitions are under-replicated"),
    # What brokers and the pipeline say, and the kept sentences of operators' help.
    "no whitelist holds the address",
    "User:ANONYMOUS is whoever has not logged in.",
    "The meter gives no sign of life",
    "No batch has ended for {number} minutes",
    "metering has come to {read} UTC; it must come to {wanted}",
    "records {first} to {last} of partition {partition} of __usage expired before they were read",
    "records {first} to {last} of partition {partition} of __usage expired before they were read; an operator has to judge it",
    "{host} has no public address",
    "ask the operators of this service",
    "write to {contact}",
    "To have a cap raised, {whom}: name your organisation ({id}), the cap, how much you need, and what for.",
    # Bounds of topics' configurations, as brokers say them; and words of topics' pages.
    "In this service {least} at least and {most} at most.",
    "In this service {least} at least.",
    "In this service {most} at most.",
    "For those who run the brokers.",
    *("sizes", "offsets", "configurations", "Changed"),
    # What runs of loads say: as the runner keeps it, and the programs, with names of the page for their options.
    "the program that ran this load is gone, and did not say why",
    "the program ended with status {status}, and did not say why",
    "the program cannot be started",
    "the runner could not look after this run",
    "the operators of this service allow no such place for loads any more",
    "the instance is {state}, not running",
    "stopped: the instance is {state}, not running",
    "stopped before it began",
    "stopped; what was committed by then stays, and the next run goes on there",
    "stopped after {hours} hours; the next run goes on where the table is",
    "commit {number} of {commits}: reading {offsets} offsets: {seconds} s",
    "commit {number} of {commits}: reading {offsets} offsets: {seconds} s, {ready} of {all} tasks",
    "commit {number} of {commits}: writing {rows} rows: {seconds} s",
    "commit {number} of {commits}: writing {rows} rows: {seconds} s, {ready} of {all} tasks",
    "looking at table and topic: {seconds} s",
    "looking at table and topic: {seconds} s, {ready} of {all} tasks",
    "inferring the schema: {seconds} s",
    "inferring the schema: {seconds} s, {ready} of {all} tasks",
    "{offsets} offsets of {partitions} partitions, {commits} commits",
    "nothing to load: the table has all that the topic has",
    "{rows} rows, {bytes} bytes of keys and values, 1 commit, {seconds} s; topic id {id}",
    "{rows} rows, {bytes} bytes of keys and values, {commits} commits, {seconds} s; topic id {id}",
    (
        "names with types of BIGINT, INT, SMALLINT, TINYINT, DOUBLE, FLOAT, DECIMAL(p,s), BOOLEAN, STRING, BINARY, DATE, "
        "TIMESTAMP, ARRAY<…>, MAP<STRING,…> and STRUCT<…>, such as id BIGINT, customer STRING; or the same in Spark's JSON"
    ),
    "nothing to load: the table has all that the topic has; {said}",
    "{rows} rows, {bytes} bytes of keys and values, 1 commit, {seconds} s; topic id {id}; {said}",
    "{rows} rows, {bytes} bytes of keys and values, {commits} commits, {seconds} s; topic id {id}; {said}",
    "{said}; loaded by runs before",
    "looking whether the bucket takes the table",
    "version {version} of {newest}: 1 file",
    "version {version} of {newest}: {files} files",
    "version {version} of {newest}: {ready} of {files} files",
    "version {version} of {newest} copied",
    "copied up to version {version}: 1 file, {bytes} bytes",
    "copied up to version {version}: {files} files, {bytes} bytes",
    "nothing to copy after version {version}",
    "loaded, not all copied by this run",
    "offsets {first} to {last} of partition {partition}",
    "offsets {first} to {last} of partition {partition}; {what}",
    "Spark does not run: {why}",
    "the topic {before} was deleted and made again, as {after}, while it was read",
    "expired while they were read: {what}. Nothing was written.",
    "the table was loaded from the topic {before}, not {after}",
    "the table was loaded by a newer release (manifest {number}); this one knows {known}",
    (
        "{table} is a table whose log does not say what was loaded into it: name what to load with “These offsets again”, which "
        "takes the place of what the table has of it"
    ),
    "the schema cannot be read: {why}",
    (
        "none of the {number} values looked at is a JSON object with members: “None: keys and values as they are” loads them"
    ),
    "the table has the schema {schema} ({known}), and another one is asked for: leave schema out, or load into another table",
    "{merged} of {rows} rows are staged: another run of the report removed them",
    (
        "the table was loaded from the topic with the id {before}, and the topic of this name has the id {after}: it was deleted "
        "and made again. “New topic” goes on with the new one, from its beginning; the rows of the old one stay, under its id."
    ),
    (
        "no longer in the topic: {what}. They expired, or were deleted. “Skip what has expired” goes on behind them, and notes "
        "in the table what is missing."
    ),
    (
        "no longer in the topic: {what}. They expired, or were deleted. “Skip what has expired” loads the rest of the range; "
        "rows that the table has of them stay."
    ),
    (
        "partition {partition} ends at offset {end}, and the table has it up to {most}: the topic has lost its end (an unclean "
        "leader election?). Load into another table; this one keeps what it has."
    ),
    "partition {partition}: the table has {has}, and {span} would leave a hole between the two",
    "partition {partition}: {span} is no range of offsets up to {end}",
    "the topic has no partition {partition}",
)
"""Short words that pages show and that no rule of the extraction would find."""
