"""Which version of an API a request is sent in: the highest that both sides have. Pure.

A broker says what it has (ApiVersions). One from before Kafka 0.10 does not know the question and ends the connection;
to such a one everything is sent in version 0, which all of them have.

Ours end where a later version would say nothing new to these clients: topics are asked for by name, not by id (which Metadata
tells from version 10 on); no fetch sessions.
"""

from __future__ import annotations

from collections.abc import Mapping

from dataplane.clients.errors import UnsupportedError
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import ApiVersionsResponse

Range = tuple[int, int]
"""The lowest and the highest, both included."""

OURS: Mapping[ApiKey, Range] = {
    ApiKey.PRODUCE: (0, 9),
    ApiKey.FETCH: (0, 11),
    ApiKey.LIST_OFFSETS: (0, 5),
    ApiKey.METADATA: (0, 12),
    ApiKey.OFFSET_COMMIT: (2, 7),
    ApiKey.OFFSET_FETCH: (1, 5),
    ApiKey.FIND_COORDINATOR: (0, 3),
    ApiKey.LIST_GROUPS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (
        3,
        4,
    ),  # from 3 on a producer that was interrupted goes on, unless another has begun (KIP-360)
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
    ApiKey.END_TXN: (0, 3),
    ApiKey.SASL_HANDSHAKE: (1, 1),
    ApiKey.SASL_AUTHENTICATE: (0, 1),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.CREATE_TOPICS: (0, 4),
    ApiKey.CREATE_PARTITIONS: (0, 1),
    ApiKey.DESCRIBE_CONFIGS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 0),
}

BEFORE_API_VERSIONS: Mapping[int, Range] = dict.fromkeys(
    (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA), (0, 0)
)
"""What Kafka 0.8 is asked."""


def theirs(answer: ApiVersionsResponse) -> dict[int, Range]:
    """What a broker has, by key of the API."""
    return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}


def chosen(key: ApiKey, broker: Mapping[int, Range], *, at_most: int | None = None) -> int:
    """The version to use. Raises UnsupportedError where there is none, or none up to `at_most`."""
    low, high = OURS[key]
    if key not in broker:
        raise UnsupportedError(f"the broker does not know {key.name}")
    lowest, highest = max(low, broker[key][0]), min(high, broker[key][1])
    if at_most is not None:
        highest = min(highest, at_most)
    if highest < lowest:
        raise UnsupportedError(
            f"of {key.name} the broker has versions {broker[key][0]} to {broker[key][1]}, "
            f"here {low} to {high if at_most is None else min(high, at_most)} would do"
        )
    return highest
