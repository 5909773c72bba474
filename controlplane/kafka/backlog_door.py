"""The door to how many bytes are left to read: every registered broker is asked, on a connection of its own, and leaders answer.

A page asks while somebody waits for it, so a broker has BROKER_S, and all together have ROUND_S. No tenant pays for what a broker
does for it, so a page asks about MOST_SIZED offsets at most; AT_ONCE are in a request, and what is answered in time counts. What
nobody has answered by then, or a broker of an earlier release, which does not know the question, is not known.

Nor is it where the leader's high watermark is before the end that the asker knows, as for a moment after a change of leaders: it
counts up to its high watermark, which would be too little.
"""

from __future__ import annotations

import struct
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from controlplane.clusters.identification import to_brokers
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.portions import portions
from controlplane.kafka import backlog_bytes as wire
from controlplane.kafka import leaving, running
from controlplane.kafka.topics import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.identification import Identification
    from controlplane.kafka.flexible import Place

BROKER_S, ROUND_S = 1.0, 3.0
MOST_SIZED = 2_000
"""For a page. Each is 60 us of a broker at most."""
AT_ONCE = 500

Stretch = tuple[str, int, int, int]
"""A topic, a partition's number, an offset where a group would read on, and the partition's end."""


class BacklogDoor(Protocol):
    """What this service asks about bytes. The call may raise ClusterUnavailable."""

    def backlogs(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """Bytes of each, up to its end or a little more; absent: not known. Names are physical."""
        ...


class KafkaBacklogs:
    """The real one."""

    def __init__(self, cluster: ClusterAddress, who: Identification) -> None:
        self._cluster, self._who = cluster, who

    def backlogs(self, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
        """See BacklogDoor."""
        left = dict.fromkeys(stretches)
        found: dict[Stretch, int] = {}
        until = time.monotonic() + ROUND_S
        for address in self._brokers() if left else ():
            left_s = min(BROKER_S, until - time.monotonic())
            if not left or left_s <= 0:
                break
            parts = list(portions(list(left), AT_ONCE))
            with suppress(ClusterUnavailable, struct.error, IndexError):  # the others may lead something
                requests = [wire.request(_offsets(part)) for part in parts]
                for part, answer in zip(parts, self._answers(address, requests, left_s), strict=False):
                    for stretch, size in _sizes(part, wire.answer(answer)):
                        del left[stretch]
                        if size is not None:
                            found[stretch] = size
        return found

    def _brokers(self) -> list[tuple[str, int]]:
        return [(broker.host, broker.port) for broker in running.brokers(self._cluster)]

    def _answers(self, address: tuple[str, int], requests: Sequence[bytes], timeout_s: float) -> Iterator[bytes]:
        """As many as come in time. Raises ClusterUnavailable."""
        until = time.monotonic() + timeout_s
        with leaving.signed_in(address, self._who, timeout_s=timeout_s) as connection:
            for request in requests:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    return
                connection.settimeout(left_s)
                yield leaving.ask(connection, wire.DESCRIBE_BACKLOGS, 0, request, flexible=True)


def _by_place(part: Sequence[Stretch]) -> dict[Place, list[Stretch]]:
    found: dict[Place, list[Stretch]] = {}
    for stretch in part:
        found.setdefault(stretch[:2], []).append(stretch)
    return found


def _offsets(part: Sequence[Stretch]) -> dict[Place, list[int]]:
    return {place: [offset for _, _, offset, _ in some] for place, some in _by_place(part).items()}


def _sizes(part: Sequence[Stretch], told: dict[Place, wire.Told]) -> Iterator[tuple[Stretch, int | None]]:
    """Of those of the part that the broker leads; None: its high watermark is before their end."""
    for place, some in _by_place(part).items():
        if place in told and len(told[place].sizes) == len(some):
            for stretch, size in zip(some, told[place].sizes, strict=True):
                yield stretch, size if told[place].high_watermark >= stretch[3] else None


def door(cluster: ClusterAddress) -> BacklogDoor:
    """With the proof that this process has now. Raises ClusterUnavailable."""
    return KafkaBacklogs(cluster, to_brokers())


def read(cluster: ClusterAddress, instance_id: str, stretches: Iterable[Stretch]) -> dict[Stretch, int]:
    """The same by the tenant's own names, of the first MOST_SIZED. Raises ClusterUnavailable."""
    names = names_of(instance_id)
    some = islice(dict.fromkeys(stretches), MOST_SIZED)
    asked = {(names.topic_in(stretch[0]), *stretch[1:]): stretch for stretch in some}
    found = door(cluster).backlogs(list(asked)) if asked else {}
    return {asked[stretch]: size for stretch, size in found.items() if stretch in asked}
