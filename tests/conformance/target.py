"""Our cluster as a suite finds it: one broker with id 0, or three with ids 1 to 3, and a door.

with OurCluster(folder, PROFILE_A, "internal") as target:
    target.bootstrap                 # "127.0.0.1:p[,…]"

The doors: "internal" is the brokers' own listener with its authentication switched off, so a client sees one plain Kafka
cluster; "tenant" is the listener of one instance that allows everything an instance may.
The profiles are those under which the suites' scores on Apache Kafka 3.9 were taken (its configuration in our names).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Self

from dataplane.config import Settings
from dataplane.protocol.messages.discovery import MetadataRequest
from tests.support.ports import free_port
from tests.support.processes import HOST, broker_process, secrets_file
from tests.support.specs import Specs
from tests.support.waiting import wait_for
from tests.support.wire import Wire
from tests.support.zookeeper import ZooKeeperServer, operator

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.specs import Tenant

DOORS = ("internal", "tenant")


@dataclass(frozen=True)
class Profile:
    """Broker ids, and settings beside our defaults."""

    brokers: tuple[int, ...]
    settings: Mapping[str, object] = field(default_factory=dict)

    def apache_settings(self) -> dict[str, object]:
        """The same for Apache Kafka, with the authorizer on that the suites want."""
        names = {name.replace("_", "."): value for name, value in self.settings.items()}
        booleans = {name: str(value).lower() for name, value in names.items() if isinstance(value, bool)}
        return {
            **names,
            **booleans,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "transaction.state.log.num.partitions": 10,
        }


_BOTH = {"auto_create_topics_enable": True, "num_partitions": 4, "offsets_topic_num_partitions": 10}
PROFILE_A = Profile(
    (0,),
    {
        **_BOTH,
        "default_replication_factor": 1,
        "offsets_topic_replication_factor": 1,
        "transaction_state_log_replication_factor": 1,
        "group_min_session_timeout_ms": 1_000,  # kafka-python's test_group asks for 3 s
    },
)
PROFILE_B = Profile((1, 2, 3), _BOTH)
_KNOWN = {f.name for f in fields(Settings)}


class OurCluster:
    """A context manager: started whole, stopped by pid."""

    tenant: Tenant  # behind the door "tenant"

    def __init__(self, folder: Path, profile: Profile, door: str, *, auto_create_topics: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.door, self._auto_create_topics = door, auto_create_topics
        self._ids = profile.brokers
        self._zookeeper = ZooKeeperServer(folder / "zookeeper", free_port())
        self._client = operator(self._zookeeper.hosts, timeout=10)
        self.specs = Specs(self._client)
        self._brokers = {
            broker: broker_process(
                folder,
                broker,
                zookeeper=self._zookeeper.hosts,
                secrets=secrets_file(folder),
                settings={name: value for name, value in profile.settings.items() if name in _KNOWN},
                internal_authentication="none",
                session_timeout_ms=18_000,  # as Kafka's: a busy machine is not a broker's death
            )
            for broker in self._ids
        }
        self.addresses: dict[int, tuple[str, int]] = {}

    @property
    def bootstrap(self) -> str:
        """Of all brokers, at the door."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses.values())

    def __enter__(self) -> Self:
        self._zookeeper.start()
        try:
            self._client.start(timeout=20)
            for broker in self._brokers.values():
                broker.start()
            wait_for(lambda: all(b.accepts() for b in self._brokers.values()), 30, "the brokers")
            wait_for(self._all_registered, 20, "the registrations")
            if self.door == "tenant":
                self.tenant = self.specs.create(self._ids, auto_create_topics=self._auto_create_topics)
                self.addresses = self.tenant.addresses
            else:
                self.addresses = {n: (HOST, broker.ports["internal"]) for n, broker in self._brokers.items()}
            wait_for(lambda: all(map(self._knows_all, self.addresses.values())), 20, "all brokers to know each other")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self._brokers.values():
            broker.kill()
        self._client.stop()
        self._client.close()
        self._zookeeper.stop()

    def crashed(self) -> list[str]:
        """Brokers that are gone, with the ends of their logs."""
        return [f"{b.name} is gone:\n{b.tail()}" for b in self._brokers.values() if not b.is_running]

    def keep_logs(self, folder: Path) -> None:
        """Copy the brokers' logs, which go with the cluster's folder otherwise."""
        for broker in self._brokers.values():
            shutil.copy(broker.log, folder)

    def complaints(self) -> int:
        """Tracebacks in the logs of the brokers: bugs, whatever the suites say."""
        return sum(b.log.read_text(errors="replace").count("Traceback (most recent") for b in self._brokers.values())

    def _knows_all(self, address: tuple[str, int]) -> bool:
        """Who registers is told of the others by the controller, a moment later; suites ask at once."""
        with Wire(address) as wire:
            return len(wire.call(MetadataRequest(topics=()), 5).brokers) == len(self._ids)

    def _all_registered(self) -> bool:
        found = sorted(int(name) for name in self._client.get_children("/brokers/ids"))
        return found == sorted(self._ids) and self._client.exists("/controller") is not None
