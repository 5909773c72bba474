"""What a change would do, found out by making it and taking it back.

A dry run goes the way of the change itself, so that it is refused as the change would be. It ends by taking back all that was
written; what waits for the commit (the wake-up of a worker) never happens. Outside of the database that is true of the cluster's
tree alone (`clusters.zookeeper.tree`): a service that changes something elsewhere, such as topics of Kafka, is not called in one.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Of what is changed; None: it is not there before, or afterwards."""

    per_month_before: Decimal | None
    per_month_after: Decimal | None
    currency: str
    at_once: Decimal | None = None  # charged in advance by the change, or paid back (negative); None: nothing is


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a change would do. Members have the names that the API gives them, those within others dotted paths."""

    changes: Mapping[str, tuple[object, object]]  # member -> (before, after); None: it is not there
    price: PriceChange | None = None  # None: it has no price
    problems: tuple[
        str, ...
    ] = ()  # sentences about what would be lost or refused later; the change is carried out all the same


_scratch: ContextVar[dict[object, Any] | None] = ContextVar("scratch", default=None)


@contextmanager
def taken_back() -> Iterator[None]:
    """A transaction whose writes are taken back at its end."""
    before = _scratch.set({})
    try:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)
    finally:
        _scratch.reset(before)


def scratch() -> dict[object, Any] | None:
    """Where doors to other stores keep what is written until it is taken back; None: what is written stays."""
    return _scratch.get()


def flat(document: Mapping[str, object]) -> dict[str, object]:
    """Members of members under dotted names; an empty one stays as it is."""
    found: dict[str, object] = {}
    for name, value in document.items():
        if isinstance(value, dict) and value:
            found |= {f"{name}.{inner}": each for inner, each in flat(value).items()}
        else:
            found[name] = value
    return found


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Members that are not the same in both, in the order of `after`; one that is missing is None."""
    names = dict.fromkeys([*after, *before])
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}
