"""The table of APIs: key, name, and the declarations of request and response, collected from `messages/`.

Which versions a listener *advertises* is decided in `dataplane.handlers`; this is what we can encode.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, fields
from enum import IntEnum

from dataplane.protocol import messages
from dataplane.protocol.schema import Versions, message_info


class ApiKey(IntEnum):
    """Kafka's API keys, as far as we have declarations, and our own (`OWN`)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    DESCRIBE_TOPIC_PARTITIONS = 75
    DESCRIBE_CONNECTIONS = 20_001
    DESCRIBE_BACKLOGS = 20_002


OWN = frozenset({ApiKey.DESCRIBE_CONNECTIONS, ApiKey.DESCRIBE_BACKLOGS})
"""Not Kafka's: far from its keys, and on the internal listener only."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its declarations and the versions that both of them have."""

    key: ApiKey
    request: type
    response: type
    versions: Versions
    flexible: Versions
    tells_wait: bool  # its response has a `throttle_time_ms`, at least in some version

    def request_header_version(self, version: int) -> int:
        """2 where the request is flexible, else 1 (0 for ControlledShutdown 0, which has no client id)."""
        if self.key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if version in self.flexible else 1

    def response_header_version(self, version: int) -> int:
        """1 where the response is flexible, except for ApiVersions, whose reader does not know our version yet."""
        return 1 if version in self.flexible and self.key != ApiKey.API_VERSIONS else 0


def _collect() -> dict[int, Api]:
    sides: dict[int, dict[str, type]] = {}
    for module in pkgutil.iter_modules(messages.__path__):
        for name, value in vars(importlib.import_module(f"{messages.__name__}.{module.name}")).items():
            if isinstance(value, type) and hasattr(value, "INFO"):
                key = message_info(value).api_key
                if key is not None:
                    sides.setdefault(key, {})["request" if name.endswith("Request") else "response"] = value
    table = {}
    for key, side in sorted(sides.items()):
        info = message_info(side["request"])
        table[key] = Api(
            ApiKey(key),
            side["request"],
            side["response"],
            info.versions,
            info.flexible,
            any(member.name == "throttle_time_ms" for member in fields(side["response"])),
        )
    return table


APIS: dict[int, Api] = _collect()
"""By key, in order of the keys."""
