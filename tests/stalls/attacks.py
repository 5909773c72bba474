"""What is sent in each row: every API and version on each door, made from the declarations; then what was thought of by hand.

A row's name says it: ``tenant METADATA v12 wide alone``. The forms are

    alone       one connection, one request after the other
    pipelined   one connection, fifty requests under way
    crowd       a thousand connections, one request of each under way; ten of what only brokers tell each other
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dataplane.handlers.table import Handler, served
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import encode_request
from dataplane.protocol.schema import message_info
from dataplane.requests.dispatch import OF_ANY_LENGTH
from tests.stalls.largest import Shape, largest, shapes_of
from tests.stalls.world import INTERNAL, TENANT, World

CLIENT_ID = "stalls"
FORMS = {"alone": (1, 1), "pipelined": (1, 50), "crowd": (1_000, 1)}
BROKERS = 10
"""Connections of a crowd that sends what brokers tell each other, of any length: a cluster has no more of them."""
"""Connections, and requests of each under way."""
_CHANGES_LAST = (
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_DELETE, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS),
    *(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DELETE_RECORDS, ApiKey.CREATE_PARTITIONS, ApiKey.CREATE_TOPICS),
    *(ApiKey.DELETE_TOPICS, ApiKey.DELETE_GROUPS, ApiKey.PRODUCE),
)
"""What leaves something behind comes after what does not."""


def nothing(world: World) -> None:
    """No preparation."""


@dataclass(frozen=True)
class Attack:
    """A row: what is sent, through which door, by how many."""

    door: str
    api: str
    version: int
    form: str
    frames: Callable[[World], Sequence[bytes]]
    connections: int = 1
    depth: int = 1
    reads: bool = True
    resets: bool = True
    before: Callable[[World], Any] = nothing
    after: Callable[[World], Any] = nothing
    seconds: float = 1.0  # times as long as other rows
    on_apache: bool = True

    @property
    def name(self) -> str:
        return f"{self.door} {self.api} v{self.version} {self.form}"


def framed(request: Any, version: int) -> bytes:
    """A request as it is sent."""
    api = APIS[message_info(type(request)).api_key or 0]
    return encode_request(api, version, 1, CLIENT_ID, request)


def generated() -> list[Attack]:
    """From the table of handlers: all versions alone, the newest in every form and shape."""
    found = [
        attack for door in (TENANT, INTERNAL) for row in served(tenant=door == TENANT) for attack in _of(door, row)
    ]
    places = {key.name: place for place, key in enumerate(_CHANGES_LAST, 1)}
    return sorted(found, key=lambda attack: places.get(attack.api, 0))


def _of(door: str, row: Handler) -> Iterator[Attack]:
    for version in range(row.low, row.high + 1):
        shapes = shapes_of(row.api.request, version)
        newest = version == row.high
        for shape in shapes if newest else shapes[:1]:
            frames = _frames(door, row, version, shape)
            for form in FORMS if newest and shape is shapes[0] else ("alone",):
                connections, depth = FORMS[form]
                if door == INTERNAL and row.api.key in OF_ANY_LENGTH:
                    connections = min(connections, BROKERS)
                name, on_apache = f"{shape} {form}", door == TENANT
                yield Attack(door, row.api.key.name, version, name, frames, connections, depth, on_apache=on_apache)


def _frames(door: str, row: Handler, version: int, shape: Shape) -> Callable[[World], Sequence[bytes]]:
    """The request of these rows. It takes up to a second to make: forms, and attempts, one after the other share it."""

    def frames(world: World) -> list[bytes]:
        if _made[:2] != [frames, world]:
            bounds = world.bounds(door, row.api.key)
            request = largest(row.api.request, version, shape, world.known[door], bounds)
            _made[:] = [frames, world, [framed(request, version)]]
        found: list[bytes] = _made[2]
        return found

    return frames


_made: list[Any] = []
"""What was made last: by which function, for which world, and the frames. Of all of them there would be a GiB."""
