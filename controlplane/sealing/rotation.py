"""Every sealed text of the database: sealed anew with the first key, or looked at.

==================  ====================================================================================================
in portions         rows are read by their key, so many at a time; none are held between
one by one          a row is written on its own, if it still holds what was read: whoever changes it meanwhile keeps their change
stopped, begun anew what the first key has sealed already is passed over, without opening it
not opened          left as it is, and counted: a key that is found again opens it
==================  ====================================================================================================

Models are found by their fields, so that a new one needs no line here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from django.apps import apps

from controlplane.sealing.fields import SealedField
from controlplane.sealing.keyring import Unreadable, key_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from django.db.models import Model

    from controlplane.sealing.keyring import Keyring

PORTION = 500
TRIES = 5
"""So often a row is looked at that others change at the same time."""
MOST_NAMED = 20
OF_BEFORE = "Django's secret key"
"""In place of a key's name."""


class _Done(Enum):
    SEALED = "sealed"
    KEPT = "kept"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Column:
    """One field of one model; `model` may be a migration's."""

    model: type[Model]
    field: SealedField

    @property
    def label(self) -> str:
        """Such as ``accounts.SecondFactor.secret``."""
        return f"{self.model._meta.label}.{self.field.name}"  # noqa: SLF001  # Django's public API has this name

    def rows(self, using: str) -> Any:
        """Of all tenants: Django's own manager knows no scope."""
        needed = {"pk", self.field.attname, *self.field.owner}
        return self.model._base_manager.using(using).only(*needed)  # noqa: SLF001  # likewise

    def portions(self, using: str, size: int = PORTION) -> Iterator[list[Any]]:
        """Rows with something in the field, by their key."""
        rows = self.rows(using).exclude(**{self.field.name: b""}).order_by("pk")
        portion = list(rows[:size])
        while portion:
            yield portion
            portion = list(rows.filter(pk__gt=portion[-1].pk)[:size])


@dataclass(slots=True)
class Rotated:
    """How far one column is."""

    label: str
    seen: int = 0
    sealed: int = 0
    lost: int = 0  # rows that no key opens


@dataclass(slots=True)
class Found:
    """What one column holds."""

    label: str
    keys: Counter[str] = field(default_factory=Counter)  # rows, by the name of the key that opens them
    lost: list[str] = field(default_factory=list)  # keys of rows that none opens, and why; the first of them
    lost_count: int = 0


def columns(models: Iterable[type[Model]] | None = None) -> list[Column]:
    """Of these models, or of all."""
    found = [
        Column(model, each)
        for model in (apps.get_models() if models is None else models)
        for each in model._meta.concrete_fields  # noqa: SLF001  # Django's public API has this name
        if isinstance(each, SealedField)
    ]
    return sorted(found, key=lambda column: column.label)


def rotate(
    column: Column,
    ring: Keyring,
    *,
    using: str = "default",
    size: int = PORTION,
    tell: Callable[[Rotated], None] = lambda _: None,
) -> Rotated:
    """Seal with the first key what another one has sealed. `tell` hears how far it is after each portion."""
    progress = Rotated(column.label)
    for portion in column.portions(using, size):
        for row in portion:
            done = _rotated(column, ring, row, using)
            progress.seen += 1
            progress.sealed += done is _Done.SEALED
            progress.lost += done is _Done.LOST
        tell(progress)
    return progress


def _rotated(column: Column, ring: Keyring, row: Any, using: str) -> _Done:
    for _ in range(TRIES):
        before = column.field.data_of(row)
        if not before or ring.is_newest(before):
            return _Done.KEPT
        try:
            text = column.field.opened(row, ring)
        except Unreadable:
            return _Done.LOST
        after = column.field.sealed(text, column.field.owner_of(row), ring)
        if column.rows(using).filter(pk=row.pk, **{column.field.name: before}).update(**{column.field.name: after}):
            return _Done.SEALED
        row = column.rows(using).filter(pk=row.pk).first()
        if row is None:
            return _Done.KEPT
    return _Done.KEPT  # who writes it so often seals it with the first key as well


def look(column: Column, ring: Keyring, *, using: str = "default", size: int = PORTION) -> Found:
    """Open everything, and say which keys it took."""
    found = Found(column.label)
    for portion in column.portions(using, size):
        for row in portion:
            try:
                column.field.opened(row, ring)
            except Unreadable as problem:
                found.lost_count += 1
                if len(found.lost) < MOST_NAMED:
                    found.lost.append(f"{row.pk}: {problem}")
            else:
                name = key_name(column.field.data_of(row))
                found.keys[name.hex() if name else OF_BEFORE] += 1
    return found
