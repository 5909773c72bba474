"""The outside world of the control plane, in memory: ZooKeeper, brokers that follow it, and their admin protocol.

`FakeTree` keeps ZooKeeper's rules (parents first, versions, all or nothing, counters); tests/controlplane/test_tree.py
runs the same suite on it and on a real server. `FakeBrokers` apply what stands in the tree as real ones do.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from controlplane.clusters.topic_names import TOPICS_PATH
from controlplane.clusters.zookeeper import Check, Create, Delete, Put, VersionMismatch, Write
from controlplane.core.errors import AlreadyExists, ClusterUnavailable, Conflict, Invalid, NotFound
from controlplane.kafka.client import ClusterChanging, Layout, Partition, Setting
from controlplane.kafka.config_bytes import IN_FILE, KAFKAS, OF_TOPIC, ConfigRow, Origin
from controlplane.kafka.connection_bytes import NOTHING as NO_CONNECTIONS
from controlplane.kafka.connection_bytes import Answer as ConnectionAnswer
from controlplane.kafka.group_door import NOTHING_LEFT, DescribedGroup, Known, ListedGroup, Listing, Member, Span
from controlplane.kafka.group_marks import GroupMark
from controlplane.kafka.message_door import Message, Taken
from controlplane.kafka.placement_door import Placed
from controlplane.kafka.placing import Disk, Ongoing
from controlplane.kafka.transaction_bytes import OpenProducer, Transaction
from controlplane.kafka.transaction_door import Coordinated
from quota.contracts.apart import joined, rules_path, spec_path, whitelists_path
from quota.contracts.applied import Applied, AppliedInstance
from quota.contracts.instance import APPLIED_PATH, INSTANCES_PATH, InstanceSpec, InstanceState, Route
from quota.contracts.zookeeper import DIRECTORIES, Party, Right, row_to_make

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from controlplane.core.errors import SluiceError
    from controlplane.kafka.group_door import Place
    from controlplane.kafka.message_door import Room, Stretch
    from controlplane.kafka.placing import Refusal


DEFAULT_SETTINGS = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}
LARGEST_REQUEST = 1_048_575  # bytes: ZooKeeper's jute.maxbuffer


class ManualClock:
    """Time that passes only where it is told to."""

    def __init__(self) -> None:
        self.time = datetime(2025, 3, 1, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def _right_for(item: Write) -> tuple[str, Right]:
    """What ZooKeeper asks for a write, and of which node."""
    parent = item.path.rpartition("/")[0]
    if isinstance(item, Create):
        return parent, Right.CREATE
    if isinstance(item, Delete):
        return parent, Right.DELETE
    return item.path, Right.WRITE if isinstance(item, Put) else Right.READ


class FakeTree:
    """ZooKeeper, as brokers have left it. What the table of ACLs does not let `party` do fails the test."""

    def __init__(self, party: Party | None = Party.CONTROL_PLANE) -> None:
        self.party = party
        self.nodes: dict[str, tuple[bytes, int]] = {"": (b"", 0)}
        for directory in DIRECTORIES if party else ():
            self._make(directory)
        self._counters: dict[str, int] = {}
        self.away = False
        self.asked = 0  # questions that had to be waited for, however many nodes each was about
        self.listed: dict[str, CountedDict] = {}  # directories whose names others keep
        self.after_write: Callable[[], None] = lambda: None
        self.before_write: Callable[[], None] = lambda: None

    def _check(self) -> None:
        self.asked += 1
        if self.away:
            raise ClusterUnavailable("the cluster's coordination service (ZooKeeper) does not answer")

    def _may(self, path: str, right: Right) -> None:
        if self.party is not None and path in self.nodes:
            assert row_to_make(path).allows(self.party, right), f"{self.party} may not {right.name} {path}"

    def get(self, path: str) -> tuple[bytes, int] | None:
        self._check()
        self._may(path, Right.READ)
        return self.nodes.get(path)

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        self._check()
        for path in paths:
            self._may(path, Right.READ)
        return [self.nodes.get(path) for path in paths]

    def children(self, path: str) -> list[str]:
        self._check()
        self._may(path, Right.READ)
        if path in self.listed:
            return sorted(self.listed[path])
        return sorted(node.rpartition("/")[2] for node in self.nodes if node and node.rpartition("/")[0] == path)

    def children_mark(self, path: str) -> Hashable:
        self._check()
        return self.listed[path].changes if path in self.listed else tuple(self.children(path))

    def ensure(self, path: str) -> None:
        self._check()
        if path not in self.nodes:
            self._may(path.rpartition("/")[0], Right.CREATE)
        self._make(path)

    def _make(self, path: str) -> None:
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            self.nodes.setdefault("/" + "/".join(parts[:count]), (b"", 0))

    def write(self, writes: Sequence[Write]) -> None:
        self._check()
        if sum(len(item.data) for item in writes if isinstance(item, Create | Put)) > LARGEST_REQUEST:
            raise ClusterUnavailable("the connection to ZooKeeper is closed")  # which is all that a client learns
        self.before_write()
        nodes, counters = dict(self.nodes), dict(self._counters)
        try:
            for item in writes:
                self._apply(item)
        except VersionMismatch:
            self.nodes, self._counters = nodes, counters
            raise
        self.after_write()

    def _apply(self, item: Write) -> None:
        parent = item.path.rpartition("/")[0]
        path, right = _right_for(item)
        self._may(path, right)
        if isinstance(item, Create):
            if self.party is not None:
                row_to_make(item.path)
            if parent not in self.nodes:
                raise VersionMismatch("no parent")
            path = item.path
            assert not path.endswith("/")
            if item.sequence:
                count = self._counters.get(parent, 0)
                self._counters[parent] = count + 1
                path += f"{count:010d}"
            if path in self.nodes:
                raise VersionMismatch("exists")
            self.nodes[path] = (item.data, 0)
        elif isinstance(item, Put):
            node = self.nodes.get(item.path)
            if node is None or node[1] != item.version:
                raise VersionMismatch("version")
            self.nodes[item.path] = (item.data, node[1] + 1)
        elif isinstance(item, Check):
            node = self.nodes.get(item.path)
            if node is None or node[1] != item.version:
                raise VersionMismatch("version")
        elif isinstance(item, Delete):
            node = self.nodes.get(item.path)
            if node is None or item.version not in (-1, node[1]):
                raise VersionMismatch("version")
            if any(path.startswith(f"{item.path}/") for path in self.nodes):
                raise VersionMismatch("not empty")
            del self.nodes[item.path]

    def spec(self, instance_id: str) -> InstanceSpec:
        """As a broker reads it."""
        paths = (spec_path(instance_id), whitelists_path(instance_id), rules_path(instance_id))
        spec, *beside = (self.nodes[path][0] if path in self.nodes else None for path in paths)
        return joined(InstanceSpec.from_json(spec), *beside)

    def put(self, path: str, data: bytes) -> None:
        """Another program's write."""
        self._check()
        self._make(path)
        self.nodes[path] = (data, self.nodes[path][1] + 1)


class FakeBrokers:
    """Brokers 1..n on 127.0.0.1 that apply every spec at once, unless they are `paused` or down."""

    def __init__(self, tree: FakeTree, count: int = 3) -> None:
        self.tree = tree
        self.taken_ports: set[int] = set()
        self.paused: set[int] = set()
        self.unserved: set[str] = set()  # securities
        self.served: dict[int, dict[str, AppliedInstance]] = {}
        tree.after_write = self.apply
        for broker in range(1, count + 1):
            self.start(broker)

    def start(self, broker: int) -> None:
        self.served[broker] = {}
        registration = {"host": "127.0.0.1", "port": 19000 + broker, "endpoints": [], "version": 5}
        self.tree.put(f"/brokers/ids/{broker}", json.dumps(registration).encode())
        self.apply()

    def kill(self, broker: int) -> None:
        del self.served[broker]
        del self.tree.nodes[f"/brokers/ids/{broker}"]
        self.tree.nodes.pop(f"{APPLIED_PATH}/{broker}", None)

    def apply(self) -> None:
        for broker in sorted(set(self.served) - self.paused):
            for name in self.tree.children(INSTANCES_PATH):
                data, _ = self.tree.nodes[f"{INSTANCES_PATH}/{name}"]
                if data:
                    spec = self.tree.spec(name)
                    self.served[broker][name] = AppliedInstance(spec.generation, self._problem(broker, spec))
            document = Applied(boot=f"boot-{broker}", instances=self.served[broker])
            self.tree.put(f"{APPLIED_PATH}/{broker}", document.to_json())

    def _problem(self, broker: int, spec: InstanceSpec) -> str | None:
        if spec.state is not InstanceState.RUNNING:
            return None
        found = (self._route_problem(broker, route) for route in spec.routes)
        return "; ".join(problem for problem in found if problem) or None

    def _route_problem(self, broker: int, route: Route) -> str | None:
        if route.security in self.unserved:
            return f"route {route.id}: this broker does not serve {route.security!r}"
        endpoint = route.endpoints.get(broker)
        if endpoint is None:
            return f"route {route.id}: no endpoint for this broker"
        port = endpoint.bind[1]
        if port in self.taken_ports:
            return f"route {route.id}: cannot listen on 127.0.0.1:{port}: address in use"
        return None


class CountedDict(dict):
    """Knows how often a key came or went."""

    changes = 0

    def __setitem__(self, key: str, value: object) -> None:
        self.changes += key not in self
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self.changes += 1

    def pop(self, key: str, *default: object) -> object:
        self.changes += key in self
        return super().pop(key, *default)


class FakeBacklogs:
    """What `backlog_door.door` gives: a hundred bytes for each record from an offset on; `unknown` of nobody's partitions."""

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin
        self.unknown: set[Place] = set()
        self.asked = 0

    def backlogs(self, stretches: Iterable[tuple[str, int, int, int]]) -> dict[tuple[str, int, int, int], int]:
        self.asked += 1
        self.admin._check()
        found = {}
        for topic, number, offset, end in stretches:
            start, timestamps = self.admin.groups.logs.get((topic, number), (0, []))
            known = start + len(timestamps)
            if (topic, number) not in self.unknown and known >= end:
                found[topic, number, offset, end] = FakeSizes.RECORD * max(0, known - max(offset, start))
        return found


class FakeAdmin:
    """The cluster's topics. `asked` counts those that were described."""

    def __init__(self, tree: FakeTree | None = None) -> None:
        self.topics: dict[str, Layout] = CountedDict()
        if isinstance(tree, FakeTree):  # not the real one, which some tests put in its place
            tree.listed[TOPICS_PATH] = self.topics
        self.asked = 0
        self.configs: dict[str, dict[str, str]] = {}
        self.before_setting: Callable[[str, Mapping[str, str | None]], None] = lambda _name, _changes: None
        self.refusals: dict[str, SluiceError] = {}  # of changes of configurations, by topic
        self.made = 0  # topics, of which each has an id of its own
        self.away = False
        self.groups = FakeGroups(self)
        self.messages = FakeMessages(self)
        self.transactions = FakeTransactions(self)
        self.connections = FakeConnections(self)
        self.placement = FakePlacement(self)
        self.config_rows = FakeConfigs(self)
        self.sizes = FakeSizes(self)
        self.backlogs = FakeBacklogs(self)

    def _check(self) -> None:
        if self.away:
            raise ClusterUnavailable("the cluster does not answer")

    def layouts(self, names: Sequence[str]) -> list[Layout]:
        self._check()
        self.asked += len(names)
        return [self.topics[name] for name in names if name in self.topics]

    def layout(self, name: str) -> Layout | None:
        self._check()
        return self.topics.get(name)

    def create(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str],
        validate_only: bool = False,
    ) -> None:
        self._check()
        if name in self.topics:
            raise AlreadyExists("Topic exists", code="topic_exists")
        if replication_factor > 3:
            raise Invalid("more replicas than brokers", code="invalid_replication_factor")
        if validate_only:
            return
        replicas = tuple(range(1, replication_factor + 1))
        self.made += 1
        self.topics[name] = Layout(
            name,
            tuple(Partition(number, replicas[0], replicas, replicas) for number in range(partitions)),
            f"topic-id-{self.made}",
        )
        self.configs[name] = dict(config)

    def delete(self, names: Sequence[str]) -> None:
        self._check()
        for name in names:
            self.topics.pop(name, None)

    def grow(self, name: str, partitions: int, *, validate_only: bool = False) -> None:
        self._check()
        if validate_only:
            return
        old = self.topics[name].partitions
        more = (Partition(number, 1, old[0].replicas, old[0].isr) for number in range(len(old), partitions))
        self.topics[name] = replace(self.topics[name], partitions=(*old, *more))

    def config(self, name: str) -> dict[str, str]:
        self._check()
        if name not in self.topics:
            raise NotFound("no such topic")
        return self.configs[name]

    def settings_in_force(self, names: Sequence[str]) -> dict[str, dict[str, Setting]]:
        self._check()
        return {
            name: {
                key: Setting(self.configs.get(name, {}).get(key, default), key in self.configs.get(name, {}))
                for key, default in {**DEFAULT_SETTINGS, **self.configs.get(name, {})}.items()
            }
            for name in names
            if name in self.topics
        }

    def config_set(self, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> None:
        self._check()
        self.before_setting(name, changes)
        if validate_only:
            return
        for key, value in changes.items():
            if value is None:
                self.configs[name].pop(key, None)
            else:
                self.configs[name][key] = value

    def config_of_each(self, names: Sequence[str]) -> dict[str, dict[str, str] | SluiceError]:
        self._check()
        missing = NotFound("no such topic", code="topic_not_found")
        return {name: dict(self.configs[name]) if name in self.topics else missing for name in names}

    def config_set_each(
        self, names: Sequence[str], changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> dict[str, SluiceError | None]:
        self._check()
        found: dict[str, SluiceError | None] = {}
        for name in names:
            found[name] = self.refusals.get(name)
            if name not in self.topics:
                found[name] = NotFound("no such topic", code="topic_not_found")
            elif found[name] is None:
                self.config_set(name, changes, validate_only=validate_only)
        return found


INHERITED = {
    "cleanup.policy": (
        "delete", KAFKAS, "What happens to old segments: delete removes them, compact keeps the last record of each key.",
    ),
    "max.message.bytes": ("1048588", KAFKAS, "The largest batch of records that is taken, compressed."),
    "min.insync.replicas": ("1", KAFKAS, "Replicas that must be in sync for a write with acks=all to be taken."),
    "preallocate": ("false", KAFKAS, "Whether a new segment's room on disk is taken at once."),
    "retention.ms": ("86400000", IN_FILE, "The age at which segments are deleted; -1 is never."),
    "segment.ms": (
        "604800000", KAFKAS,
        "The age at which a new segment is begun, even if the last is not full. In this service 600000 at least.",
    ),
}  # fmt: skip


class FakeConfigs:
    """What `config_door.door` gives: a few configurations, as brokers that run with Kafka's defaults but for one say them."""

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin

    def rows(self, physical: str) -> list[ConfigRow] | None:
        self.admin._check()
        if physical not in self.admin.topics:
            return None
        own = self.admin.configs.get(physical, {})
        return [
            ConfigRow(
                name,
                own.get(name, value),
                OF_TOPIC if name in own else source,
                name == "preallocate",
                Origin(value, source),
                documentation,
            )
            for name, (value, source, documentation) in INHERITED.items()
        ]


class FakeSizes:
    """What `size_door.door` gives: a hundred bytes a record, and what `held` says beside it, on each replica."""

    RECORD = 100

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin
        self.held: dict[Place, int] = {}
        self.silent: set[int] = set()

    def sizes(self, places: Iterable[Place]) -> dict[int, Mapping[Place, int] | None]:
        self.admin._check()
        found: dict[int, Mapping[Place, int] | None] = {}
        for broker in (1, 2, 3):
            there = [place for place in places if broker in self._of(place).replicas]
            found[broker] = None if broker in self.silent else {place: self._size(place) for place in there}
        return found

    def _of(self, place: Place) -> Partition:
        return self.admin.topics[place[0]].partitions[place[1]]

    def _size(self, place: Place) -> int:
        return self.held.get(place, self.RECORD * len(self.admin.groups.logs.get(place, (0, []))[1]))


class FakeTransactions:
    """Coordinators of transactions, all of them one broker, and where transactions begin in partitions."""

    AT = ("127.0.0.1", 1)

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin
        self.found: dict[str, Transaction] = {}
        self.starts: dict[Place, dict[int, int]] = {}
        self.lost_answers = 0  # of attempts to fence or to abort that are carried out all the same
        self.hanging: dict[Place, list[OpenProducer]] = {}  # beside those in `starts`
        self.wrote_s: dict[int, float] = {}  # how long ago a producer of `starts` last wrote, if not this moment
        self.silent: set[Place] = set()  # partitions whose leaders do not say
        self.leaders = [(1, 2)]  # of the partitions of ids, as they are asked for one after the other; the last stays

    def hang(self, place: Place, *, at: int = 7, producer_id: int = 9000, idle_s: float = 3600.0) -> None:
        """A transaction that no coordinator knows."""
        written = int(1000 * (time.time() - idle_s))
        self.hanging.setdefault(place, []).append(OpenProducer(producer_id, 3, 5, written, at))

    def begin(self, transactional_id: str, *places: Place, age_s: float = 60.0, at: int = 7) -> Transaction:
        """A transaction that was begun so long ago, and has written to these partitions from this offset on."""
        number = 1000 + len(self.found)
        begun = int(1000 * (time.time() - age_s))
        made = Transaction(transactional_id, "Ongoing", number, 0, 60_000, begun, places)
        self.found[transactional_id] = made
        for place in places:
            self.starts.setdefault(place, {})[number] = at
        return made

    def _check(self) -> None:
        if self.admin.away:
            raise ClusterUnavailable("the cluster does not answer")

    def listed(self, owned: Callable[[str], bool], states: Sequence[str], open_for_ms: int | None) -> dict[str, str]:
        self._check()
        before = float("inf") if open_for_ms is None else 1000 * time.time() - open_for_ms
        return {
            name: row.state
            for name, row in self.found.items()
            if owned(name) and (not states or row.state in states) and row.started_ms < before
        }

    def described(self, transactional_ids: Sequence[str]) -> dict[str, Coordinated]:
        self._check()
        return {name: Coordinated(self.found[name], self.AT) for name in transactional_ids if name in self.found}

    def open_producers(self, places: Iterable[Place]) -> dict[Place, Mapping[int, int]]:
        self._check()
        return {place: self.starts[place] for place in places if place in self.starts}

    def producers(self, places: Iterable[Place]) -> dict[Place, tuple[OpenProducer, ...]]:
        self._check()
        found: dict[Place, tuple[OpenProducer, ...]] = {}
        for place in places:
            if place not in self.silent:
                ago = {number: 1000 * self.wrote_s.get(number, 0.0) for number in self.starts.get(place, {})}
                found[place] = (
                    *(
                        OpenProducer(number, 0, -1, int(1000 * time.time() - ago[number]), at)
                        for number, at in self.starts.get(place, {}).items()
                    ),
                    *self.hanging.get(place, []),
                )
        return found

    def coordinators(self) -> tuple[int, ...]:
        self._check()
        return self.leaders.pop(0) if len(self.leaders) > 1 else self.leaders[0]

    def abort(self, place: Place, producer: OpenProducer) -> None:
        self._check()
        self.hanging[place].remove(producer)
        if self.lost_answers:
            self.lost_answers -= 1
            raise ClusterChanging("the brokers do not answer in time")

    def fence(self, found: Coordinated) -> None:
        self._check()
        row = found.transaction
        epoch = row.producer_epoch + 1
        ended = replace(row, state="Empty", producer_epoch=epoch, started_ms=-1, partitions=())
        self.found[row.transactional_id] = ended
        for starts in self.starts.values():
            starts.pop(row.producer_id, None)
        if self.lost_answers:
            self.lost_answers -= 1
            raise ClusterChanging("the brokers do not answer in time")


class FakeConnections:
    """Who is connected, as brokers say it. `found` is by instance and broker; a broker that is in `away` does not answer."""

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin
        self.found: dict[tuple[str, int], ConnectionAnswer] = {}
        self.brokers = [1, 2]
        self.away: set[int] = set()
        self.asked_for: list[tuple[str, str | None, int, int]] = []

    def say(self, instance_id: str, broker: int = 1, **said: Any) -> None:
        """What a broker says besides."""
        before = self.found.get((instance_id, broker), NO_CONNECTIONS)
        self.found[instance_id, broker] = before._replace(**said)

    def asked(
        self, instance_id: str, topic: str | None, most_connections: int, most_talkers: int
    ) -> dict[int, ConnectionAnswer | None]:
        if self.admin.away:
            raise ClusterUnavailable("the cluster does not answer")
        self.asked_for.append((instance_id, topic, most_connections, most_talkers))
        return {
            broker: None
            if broker in self.away
            else self._told(
                self.found.get((instance_id, broker), NO_CONNECTIONS), topic, most_connections, most_talkers
            )
            for broker in self.brokers
        }

    @staticmethod
    def _told(
        answer: ConnectionAnswer, topic: str | None, most_connections: int, most_talkers: int
    ) -> ConnectionAnswer:
        talkers = [row for row in answer.talkers if topic in (None, row.topic)]
        return answer._replace(
            connections=answer.connections[:most_connections],
            refused=answer.refused if most_connections else (),
            talkers=tuple(talkers[:most_talkers]),
        )


class FakePlacement:
    """Where the topics of `FakeAdmin` are: a controller that moves them when `copy` says that the bytes are there.

    `before_call` and `after_call` hear of each question by its name: there a test lets its worker die.
    """

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin
        self.ongoing: dict[Place, Ongoing] = {}
        self.origins: dict[Place, tuple[int, ...]] = {}
        self.sizes: dict[Place, int] = {}
        self.copied: dict[tuple[Place, int], int] = {}
        self.rate: int | None = None
        self.named: dict[str, tuple[str, str]] = {}
        self.refused: dict[Place, Refusal] = {}
        self.before_call: Callable[[str], None] = lambda _name: None
        self.after_call: Callable[[str], None] = lambda _name: None
        self.disk: tuple[int | None, int | None] = (None, None)
        self.most_at_once = 0

    def _of(self, place: Place) -> Partition:
        return self.admin.topics[place[0]].partitions[place[1]]

    def _put(self, place: Place, **members: object) -> None:
        layout = self.admin.topics[place[0]]
        changed = tuple(replace(each, **members) if each.partition == place[1] else each for each in layout.partitions)
        self.admin.topics[place[0]] = replace(layout, partitions=changed)

    def _ask(self, name: str, act: Callable[[], object]) -> Any:
        self.admin._check()
        self.before_call(name)
        found = act()
        self.after_call(name)
        return found

    def placed(self) -> list[Placed]:
        return self._ask(
            "placed",
            lambda: [
                Placed(layout.name, each.partition, each.leader, each.replicas, each.isr)
                for layout in self.admin.topics.values()
                for each in layout.partitions
            ],
        )

    def disks(self, brokers: Iterable[int], places: Iterable[Place] | None = None) -> dict[int, Disk]:
        wanted = None if places is None else set(places)
        return self._ask("disks", lambda: {broker: Disk(*self.disk, self._held(broker, wanted)) for broker in brokers})

    def _held(self, broker: int, wanted: set[Place] | None) -> dict[Place, int]:
        found = {}
        for layout in self.admin.topics.values():
            for each in layout.partitions:
                place = layout.name, each.partition
                if broker in each.replicas and (wanted is None or place in wanted):
                    found[place] = self.copied.get((place, broker), self.sizes.get(place, 0))
        return found

    def under_way(self) -> dict[Place, Ongoing]:
        return self._ask("under_way", lambda: dict(self.ongoing))

    def reassign(self, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, Refusal]:
        return self._ask("reassign", lambda: self._reassigned(targets))

    def _reassigned(self, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, Refusal]:
        for place, target in targets.items():
            if place in self.refused:
                continue
            origin = self.origins.setdefault(place, self._of(place).replicas)
            if target is None:  # who was there before; the order may be another, as of Kafka
                ongoing = self.ongoing.get(place)
                goal = (
                    origin
                    if ongoing is None
                    else tuple(broker for broker in ongoing.replicas if broker not in ongoing.adding)
                )
            else:
                goal = tuple(target)
            both = tuple(dict.fromkeys((*goal, *origin)))
            added = tuple(broker for broker in both if broker not in origin)
            if target is None or not added:
                self._finish(place, goal)
                continue
            assert self.rate is not None, "nothing is copied without a throttle"
            assert place[0] in self.named, "the throttle has to know what it is for"
            self.ongoing[place] = Ongoing(both, added, tuple(broker for broker in both if broker not in goal))
            self._put(place, replicas=both)
            self.copied |= {(place, broker): 0 for broker in added}
            self.most_at_once = max(self.most_at_once, len(self.ongoing))
        return {place: refusal for place, refusal in self.refused.items() if place in targets}

    def _finish(self, place: Place, target: tuple[int, ...]) -> None:
        self.ongoing.pop(place, None)
        self.origins.pop(place, None)
        leader = self._of(place).leader
        self._put(place, replicas=target, isr=target, leader=leader if leader in target else target[0])

    def copy(self, part: float = 1.0) -> None:
        """So much of everything that is under way is there; with all of it the controller ends it."""
        for place, ongoing in list(self.ongoing.items()):
            for broker in ongoing.adding:
                self.copied[place, broker] = int(self.sizes.get(place, 0) * part)
            if part >= 1:
                self._finish(place, ongoing.target)

    def elect(self, places: Iterable[Place]) -> dict[Place, Refusal]:
        def held() -> dict[Place, Refusal]:
            for place in places:
                self._put(place, leader=self._of(place).replicas[0])
            return {}

        return self._ask("elect", held)

    def throttle(self, bytes_per_s: int | None) -> None:
        self._ask("throttle", lambda: setattr(self, "rate", bytes_per_s))

    def throttled(self, topics: Mapping[str, tuple[str, str] | None]) -> None:
        def told() -> None:
            for topic, lists in topics.items():
                if lists is None:
                    self.named.pop(topic, None)
                else:
                    self.named[topic] = lists

        self._ask("throttled", told)


@dataclass
class FakeGroup:
    """What a coordinator keeps of a group."""

    offsets: dict[Place, int] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    classic: set[str] | None = None  # of the consumer protocol: who of them speaks the classic one
    was_joined: bool = False  # somebody was a member once
    is_rebalancing: bool = False
    generation: int = 0  # of a rebalance that changes nothing

    @property
    def state(self) -> str:
        if self.is_rebalancing and self.members:
            return "PreparingRebalance"
        return "Stable" if self.members else "Empty"

    @property
    def is_offsets_alone(self) -> bool:
        return not (self.members or self.was_joined)


class FakeGroups:
    """Coordinators and leaders. `logs`: by physical partition, the first offset kept and the timestamps (ms) from there on.

    `rounds` counts the questions that were asked; a page is to be a few, whatever it shows.
    """

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin
        self.found: dict[str, FakeGroup] = {}
        self.logs: dict[Place, tuple[int, list[int]]] = {}
        self.values: dict[Place, list[bytes]] = {}  # of the same partitions, where somebody reads them
        self.rounds: Counter[str] = Counter()
        self.slow = False  # leaders answer, and send no record in time
        self.silent: set[tuple[str, int]] = set()  # brokers that say nothing about groups
        self.hidden: set[str] = set()  # groups whose coordinator does not answer
        self.stretches: int | None = None  # that its readers get in time; None: all

    def _round(self, name: str) -> None:
        self.rounds[name] += 1
        if self.admin.away:
            raise ClusterUnavailable("the cluster does not answer")

    def listed(self, owned: Callable[[str], bool]) -> Listing:
        """By two brokers, 1 and 2: one that is silent names none of those in `hidden`."""
        self._round("listed")
        hidden = self.hidden if self.silent else set()
        named = [ListedGroup(name, group.state) for name, group in self.found.items() if owned(name)]
        missing = tuple(sorted(number for _, number in self.silent))
        return Listing([group for group in named if group.name not in hidden], missing)

    def known(self, names: Sequence[str]) -> Known:
        answering = [name for name in names if name not in self.hidden]
        return Known(self.described(answering), self.committed(answering))

    def described(self, names: Sequence[str]) -> dict[str, DescribedGroup]:
        self._round("described")
        return {name: self._described(name) for name in names}

    def _described(self, name: str) -> DescribedGroup:
        group = self.found.get(name)
        if group is None:
            return DescribedGroup(name, "Dead", "", ())
        protocol, members = "range" if group.members else "", tuple(group.members)
        if group.state == "PreparingRebalance":
            protocol, members = "", tuple(replace(member, partitions=()) for member in members)
        is_of_consumers = group.classic is not None
        coordinator = ("127.0.0.1", 1)
        return DescribedGroup(
            name, group.state, protocol, members, coordinator, is_of_consumers, group.is_offsets_alone
        )

    def committed(self, names: Sequence[str]) -> dict[str, dict[Place, int]]:
        self._round("committed")
        return {name: dict(self.found[name].offsets) if name in self.found else {} for name in names}

    def read(self, names: Sequence[str]) -> tuple[dict[str, DescribedGroup], dict[str, dict[Place, int]]]:
        return self.described(names), self.committed(names)

    def coordinated(self) -> dict[tuple[str, int], dict[str, str]]:
        """By two brokers, one group after the other."""
        self._round("coordinated")
        names = sorted(self.found)
        by_broker = {("127.0.0.1", 1): names[::2], ("127.0.0.1", 2): names[1::2]}
        return {address: {name: self.found[name].state for name in some} for address, some in by_broker.items()}

    def marks(self, address: tuple[str, int], names: Sequence[str], *, within_s: float) -> dict[str, GroupMark]:
        self._round("marks")
        assert within_s > 0
        if address in self.silent:
            raise ClusterUnavailable("the group's coordinator does not answer")
        there = {name: self.found[name] for name in names if name in self.found and name not in self.hidden}
        return {name: GroupMark(each.state, f"{each.generation} {each.members}") for name, each in there.items()}

    def offsets(
        self, address: tuple[str, int], names: Sequence[str], *, within_s: float
    ) -> dict[str, dict[Place, int]]:
        self._round("offsets")
        assert within_s > 0
        if address in self.silent:
            raise ClusterUnavailable("the group's coordinator does not answer")
        return {name: dict(self.found[name].offsets) for name in names if name in self.found}

    def spans(self, places: Iterable[Place]) -> dict[Place, Span]:
        self._round("spans")
        return {place: self._span(place) for place in places if self._leader(place) is not None}

    def _leader(self, place: Place) -> int | None:
        layout = self.admin.topics.get(place[0])
        assert layout is not None, f"librdkafka would wait for {place[0]}, which is not there"
        return layout.partitions[place[1]].leader

    def _span(self, place: Place) -> Span:
        start, timestamps = self.logs.get(place, (0, []))
        return Span(start, start + len(timestamps))

    def offsets_at(self, places: Iterable[Place], timestamp_ms: int) -> dict[Place, int | None]:
        self._round("offsets_at")
        found = {}
        for place in places:
            start, timestamps = self.logs.get(place, (0, []))
            found[place] = next((start + n for n, at in enumerate(timestamps) if at >= timestamp_ms), None)
        return found

    def offsets_at_each(self, times: Mapping[Place, int]) -> dict[Place, int | None]:
        self._round("offsets_at_each")
        found: dict[Place, int | None] = {}
        for place, timestamp_ms in times.items():
            if self._leader(place) is not None:
                start, timestamps = self.logs.get(place, (0, []))
                found[place] = next((start + n for n, at in enumerate(timestamps) if at >= timestamp_ms), None)
        return found

    def newest(self, places: Iterable[Place]) -> dict[Place, int | None]:
        self._round("newest")
        return {place: max(self.logs.get(place, (0, []))[1], default=None) for place in places}

    def oldest(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        self._round("oldest")
        if self.slow:
            return {}
        found = {}
        for place, offset in positions.items():
            start, timestamps = self.logs[place]
            found[place] = timestamps[offset - start] if offset - start < len(timestamps) else NOTHING_LEFT
        return found

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        self._round("commit")
        group = self.found.setdefault(name, FakeGroup())
        if group.members:
            raise Conflict("the group has members: stop its consumers first", code="group_not_empty")
        group.offsets.update(offsets)

    def delete(self, name: str) -> None:
        self._round("delete")
        if name not in self.found:
            raise NotFound("no such group", code="group_not_found")
        del self.found[name]

    def remove(self, name: str, member_id: str) -> None:
        self._round("remove")
        group = self.found[name]
        if group.classic is not None and member_id not in group.classic:
            raise NotFound("the member has left the group", code="member_not_found")
        group.members[:] = [member for member in group.members if member.id != member_id]
        group.was_joined, group.is_rebalancing = True, group.classic is None

    def classic_members(self, name: str) -> frozenset[str]:
        self._round("classic_members")
        return frozenset(self.found[name].classic or ())

    def forget(self, name: str, places: Sequence[Place]) -> None:
        self._round("forget")
        offsets = self.found[name].offsets
        for place in places:
            del offsets[place]
        if not offsets and self.found[name].is_offsets_alone:
            del self.found[name]

    def write(self, place: Place, timestamp_ms: int, value: bytes) -> None:
        """One more record at the end of a partition."""
        _, timestamps = self.logs.setdefault(place, (0, []))
        timestamps.append(timestamp_ms)
        self.values.setdefault(place, []).append(value)

    def reader(self, place: Place) -> FakeReader:
        return FakeReader(self, place)


class FakeReader:
    """What `record_door.reader` gives."""

    def __init__(self, groups: FakeGroups, place: Place) -> None:
        self._groups, self._place = groups, place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        return

    def records(self, first: int, end: int) -> list[tuple[int, bytes]]:
        self._groups._round("records")
        if self._groups.stretches is not None:
            if not self._groups.stretches:
                raise ClusterUnavailable("the broker did not send the records in time")
            self._groups.stretches -= 1
        start, values = self._groups.logs[self._place][0], self._groups.values[self._place]
        return [(start + n, value) for n, value in enumerate(values) if first <= start + n < end]


class FakeMessages:
    """What `message_door.door` gives, over the logs of `FakeGroups`."""

    def __init__(self, admin: FakeAdmin) -> None:
        self.admin = admin
        self.extras: dict[
            tuple[str, int, int], Message
        ] = {}  # by topic, partition and offset: what a log does not keep
        self.refusal: Exception | None = None  # of everything that is produced
        self.largest = 2**20  # bytes, of what is produced with others
        self.wait_s = 0.0  # that readers are told
        self.now_ms = 1_700_000_000_000

    def write(self, topic: str, partition: int, value: bytes | None, **members: object) -> Message:
        """One more message at the end of a partition."""
        place = (topic, partition)
        start, timestamps = self.admin.groups.logs.setdefault(place, (0, []))
        self.now_ms += 1
        timestamp_ms = members.pop("timestamp_ms", None) or self.now_ms
        message = Message(partition, start + len(timestamps), timestamp_ms, members.pop("key", None), value, **members)
        self.admin.groups.write(place, message.timestamp_ms, value or b"")
        self.extras[topic, partition, message.offset] = message
        return message

    def compact(self, topic: str, partition: int, offset: int) -> None:
        """The offset stays, and nothing is there."""
        del self.extras[topic, partition, offset]

    def reader(self, topic: str) -> FakeMessageReader:
        return FakeMessageReader(self, topic)

    def produce(self, topic: str, message: Message, partition: int | None) -> Message:
        self.admin.groups._round("produce")
        if self.refusal is not None:
            raise self.refusal
        at = partition or 0
        return self.write(
            topic, at, message.value, key=message.key, headers=message.headers, timestamp_ms=message.timestamp_ms
        )

    def produce_several(self, topic: str, messages: Sequence[Message]) -> list[Message | SluiceError]:
        self.admin.groups._round("produce_several")
        return [
            Invalid("too large", code="message_too_large")
            if len(message.value or b"") > self.largest
            else self.write(topic, 0, message.value, key=message.key)
            for message in messages
        ]

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        self.admin.groups._round("delete_before")
        for partition, offset in offsets.items():
            start, timestamps = self.admin.groups.logs[topic, partition]
            self.admin.groups.logs[topic, partition] = (offset, timestamps[offset - start :])
        return dict(offsets)


class FakeMessageReader:
    """One client for one question."""

    def __init__(self, messages: FakeMessages, topic: str) -> None:
        self._messages, self._topic = messages, topic
        self.wait_s = messages.wait_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        return

    def partitions(self) -> int:
        groups = self._messages.admin.groups
        groups._round("partitions")
        if self._topic not in groups.admin.topics:
            raise NotFound("no such topic or partition", code="topic_not_found")
        return len(groups.admin.topics[self._topic].partitions)

    def read(self, wanted: Mapping[int, Stretch], room: Room) -> dict[int, Taken]:
        self._messages.admin.groups._round("read")
        return read_from(
            lambda partition, offset: self._messages.extras.get((self._topic, partition, offset)), wanted, room
        )


def read_from(at: Callable[[int, int], Message | None], wanted: Mapping[int, Stretch], room: Room) -> dict[int, Taken]:
    """As a broker's answers come: from each partition in turn, while there is room."""
    found = {partition: Taken(first) for partition, (first, _) in wanted.items()}
    left = {partition: end for partition, (first, end) in wanted.items() if first < end}
    while left and not room.is_used_up:
        for partition, end in sorted(left.items()):
            taken = found[partition]
            while taken.upto < end:
                message = at(partition, taken.upto)
                taken.upto += 1
                if message is not None:
                    taken.messages.append(replace(message))
                    room.take(message)
                    break
            if taken.upto >= end:
                del left[partition]
            if room.messages <= 0 or room.bytes <= 0:
                break
    return found
