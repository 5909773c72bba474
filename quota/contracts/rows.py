"""The rows of flow reports and grants: what has a limit of its own, of which instance, and in what unit it counts.

A row is named by a text, its key: it is the member's name in the documents, and a master looks up 200,000 a second by it.

=================================  =====================================================================================
``ins-k3v9x2qa``                   the instance's bandwidth
``ins-k3v9x2qa/requests``          its request rate: what comes to any broker is divided as bandwidth is, as `produce`
``ins-k3v9x2qa/loop-time``         its broker time, likewise
``ins-k3v9x2qa/rule-8zk2m4x0``     a throttle rule within it
``ins-k3v9x2qa/rule-8zk2m4x0/ann`` one client of a rule for each: the names, percent-encoded
=================================  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote

REQUEST = 1_000
"""What a request counts in a row: in whole requests, a broker's share of a small limit would be nothing."""
LOOP_MS = 1_000
"""What a millisecond of broker time counts in a row."""


class Unit(StrEnum):
    """What a row counts. The values of those that are not bytes are the names of the instance's rows."""

    BYTES = "bytes"
    REQUESTS = "requests"  # in thousandths
    LOOP_TIME = "loop-time"  # in microseconds


@dataclass(frozen=True, slots=True)
class Row:
    """`resource` is what of the instance: "" for all of it, a throttle rule's id, behind it the names of one client."""

    instance: str
    resource: str = ""
    unit: Unit = Unit.BYTES

    @classmethod
    def parse(cls, key: str) -> Row:
        """The inverse of `key`."""
        instance, _, within = key.partition("/")
        return cls.within(instance, within or None)

    @classmethod
    def within(cls, instance: str, name: str | None) -> Row:
        """The inverse of `name`."""
        for unit in (Unit.REQUESTS, Unit.LOOP_TIME):
            if name == unit.value:
                return cls(instance, unit=unit)
        return cls(instance, name or "")

    @property
    def name(self) -> str | None:
        """Of the row within its instance; None: the instance's bandwidth."""
        return (self.resource or None) if self.unit is Unit.BYTES else self.unit.value

    @property
    def key(self) -> str:
        """In reports and grants."""
        return self.instance if self.name is None else f"{self.instance}/{self.name}"

    def of_client(self, names: Sequence[str]) -> Row:
        """Of one client of a rule for each; `names` are the user's and the client id, as far as the rule has them."""
        return Row(self.instance, "/".join((self.resource, *(quote(name, safe="") for name in names))))

    @property
    def rule(self) -> Row:
        """Of the rule as a whole that the row of one client belongs to."""
        return Row(self.instance, self.resource.partition("/")[0], self.unit)

    @property
    def client(self) -> tuple[str, ...]:
        """The names of `of_client`."""
        return tuple(map(unquote, self.resource.split("/")[1:]))
