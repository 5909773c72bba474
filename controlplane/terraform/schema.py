"""Attributes of resources: what Terraform is told of them, and what this provider itself has to know. Pure."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from controlplane.terraform.protocol.messages import tf
from controlplane.terraform.values import UNKNOWN, is_known

if TYPE_CHECKING:
    from collections.abc import Callable

Cty = str | tuple[str, str]
STRING, NUMBER, BOOL = "string", "number", "bool"
STRINGS: Cty = ("set", "string")
SETTINGS: Cty = ("map", "string")
_NEAR = Decimal("1e-6")
"""Of itself: a rate is kept in bytes, so 5.1 MiB/s may come back as 5.09999943. It is what was asked for."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute. Neither required, optional nor computed: optional."""

    name: str
    type: Cty
    about: str
    required: bool = False
    computed: bool = False  # the service says it; with `settable`, where the configuration does not
    settable: bool = True
    sensitive: bool = False
    write_only: bool = False
    replaces: bool = False  # another value is another thing
    choices: tuple[str, ...] = ()
    nested: tuple[Attribute, ...] = ()  # members; `type` is not looked at then
    empty_is_null: bool = False  # nothing written and nothing there are the same
    canonical: Callable[[Any], Any] | None = None  # of what can be spelt in several ways

    def message(self) -> Any:
        """As the protocol has it."""
        shape: dict[str, Any]
        if self.nested:
            members = [each.message() for each in self.nested]
            shape = {"nested_type": tf.Schema.Object(attributes=members, nesting=tf.Schema.Object.SINGLE)}
        else:
            shape = {"type": json.dumps(self.type).encode()}
        return tf.Schema.Attribute(
            name=self.name,
            description=self.about,
            required=self.required,
            optional=self.settable and not self.required,
            computed=self.computed,
            sensitive=self.sensitive,
            write_only=self.write_only,
            **shape,
        )

    def same(self, one: Any, other: Any) -> bool:
        """Whether both mean the same."""
        return bool(self._meant(one) == self._meant(other)) or _is_near(one, other)

    def _meant(self, value: Any) -> Any:
        if self.nested and isinstance(value, dict):
            meant = {each.name: each._meant(value.get(each.name)) for each in self.nested}  # noqa: SLF001  # of its kind
            value = {name: member for name, member in meant.items() if member is not None}
        elif self.canonical is not None and value is not None and is_known(value):
            value = self.canonical(value)
        is_empty = self.empty_is_null and value is not None and value is not UNKNOWN and not value
        return None if is_empty else value


def schema(attributes: tuple[Attribute, ...], about: str = "") -> Any:
    """A resource's schema as a message."""
    block = tf.Schema.Block(attributes=[each.message() for each in attributes], description=about)
    return tf.Schema(version=0, block=block)


def networks(entries: frozenset[str]) -> frozenset[str]:
    """Entries of a whitelist in the one spelling that the service keeps; what is none stays, to be refused by the service."""

    def one(entry: str) -> str:
        try:
            return str(ipaddress.ip_network(entry))
        except ValueError:
            return entry

    return frozenset(map(one, entries))


def _is_near(one: Any, other: Any) -> bool:
    if not all(isinstance(each, int | Decimal) and not isinstance(each, bool) for each in (one, other)):
        return False
    if isinstance(one, int) and isinstance(other, int):
        return False
    return bool(abs(Decimal(one) - Decimal(other)) <= _NEAR * abs(Decimal(one)))
