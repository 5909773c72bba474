"""What an assignor is given, and what it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.groups.consumer.model import Assignment


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One member: the topics it subscribes to, all of which exist, and what was its target before."""

    topics: frozenset[UUID]
    had: Assignment


Subscribers = Mapping[str, Subscriber]
"""By member id, in order of ids: so a successor decides as the coordinator before it did."""
Sizes = Mapping["UUID", int]
"""Numbers of partitions of all topics that somebody subscribes to, in order of the topics' names."""
Assign = Callable[[Subscribers, Sizes], dict[str, "Assignment"]]
"""Every member gets an entry; every partition of a topic with subscribers goes to one of them."""


def as_assignment(partitions: Mapping[UUID, list[int]]) -> Assignment:
    """Sorted, without empty topics."""
    return {topic: tuple(sorted(some)) for topic, some in partitions.items() if some}
