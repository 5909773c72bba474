"""The field of a model that holds a secret, sealed. What a row has in it is the sealed text; opening it is said where it is done.

A field that opened by itself would open for every page and every log line that has the row, and would fail there where a key is
missing. It takes nothing that is not sealed: forgetting to seal is a crash in the first test.

`owner` names the members of the row that a sealed text is bound to, with table and column: those that never change and are
known before the row is written. A reference is named as its column is, ``instance_id``.

`before` is what releases before have bound it to, with the names of `owner` in braces; they sealed with Django's secret key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models

from controlplane.sealing import installed
from controlplane.sealing.keyring import Unreadable, is_of_before, key_name
from quota.contracts.sealing import opened_by_any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.sealing.keyring import Keyring


class SealedField(models.BinaryField):  # type: ignore[type-arg]  # it takes none at run time
    """Bytes that a key of the installation has sealed; empty: there is no secret."""

    def __init__(self, *args: Any, owner: Sequence[str] = (), before: str = "", **options: Any) -> None:
        self.owner, self.before = tuple(owner), before
        super().__init__(*args, **options)

    def deconstruct(self) -> Any:
        """For migrations, which seal rows of before."""
        name, path, args, options = super().deconstruct()
        return name, path, args, {**options, "owner": self.owner, "before": self.before}

    def get_prep_value(self, value: Any) -> Any:
        """Raises ValueError: this is not sealed."""
        value = super().get_prep_value(value)
        if isinstance(value, bytes | bytearray | memoryview):
            data = bytes(value)
            if data and key_name(data) is None and not is_of_before(data):
                raise ValueError(f"{self.model.__name__}.{self.name} takes sealed text only")
        return value

    def sealed(self, text: bytes, owner: Mapping[str, object], ring: Keyring | None = None) -> bytes:
        """For the row of this owner. Raises KeysProblem."""
        return (ring or installed.keyring()).sealed(text, self._purpose(owner))

    def opened(self, row: models.Model, ring: Keyring | None = None) -> bytes:
        """What the row holds; empty: nothing. Raises Unreadable."""
        data = self.data_of(row)
        if not data:
            return b""
        if is_of_before(data):
            return self._opened_before(data, self.owner_of(row))
        return (ring or installed.keyring()).opened(data, self._purpose(self.owner_of(row)))

    def data_of(self, row: models.Model) -> bytes:
        """As it stands in the row."""
        return bytes(getattr(row, self.attname) or b"")

    def owner_of(self, row: models.Model) -> dict[str, object]:
        """What a sealed text of the row is bound to."""
        return {name: getattr(row, name) for name in self.owner}

    def _purpose(self, owner: Mapping[str, object]) -> str:
        if not owner or set(owner) != set(self.owner) or any(value in (None, "") for value in owner.values()):
            raise TypeError(f"{self.model.__name__}.{self.name} is sealed for one {', '.join(self.owner)}")
        table = self.model._meta.db_table  # noqa: SLF001  # Django's public API has this name
        return "sluice row " + json.dumps([table, self.column, *(str(owner[name]) for name in self.owner)])

    def _opened_before(self, data: bytes, owner: Mapping[str, object]) -> bytes:
        if not self.before:
            raise Unreadable("not sealed")
        keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
        try:
            return opened_by_any(data, secrets=keys, purpose=self.before.format(**owner))
        except ValueError:
            raise Unreadable("sealed with a Django secret key that is not known, for another row, or changed") from None


def field_of(model: type[models.Model], name: str) -> SealedField:
    """One of a model's fields, which is sealed."""
    found = model._meta.get_field(name)  # noqa: SLF001  # likewise
    if not isinstance(found, SealedField):
        raise TypeError(f"{model.__name__}.{name} is not sealed")
    return found
