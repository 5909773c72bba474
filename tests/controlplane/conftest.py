"""The people (alice owns, bob is on her team, charlie is a stranger) and the fake world around the control plane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient

from controlplane.accounts import attempts
from controlplane.accounts import services as accounts
from controlplane.alarms.delivery import posting
from controlplane.clusters import master, zookeeper
from controlplane.core import operations
from controlplane.core.errors import MasterUnavailable
from controlplane.core.models import Operation
from controlplane.env import DELETION_GRACE_S
from controlplane.instances import services as instances
from controlplane.kafka import (
    backlog_door,
    client,
    config_door,
    connection_door,
    group_door,
    message_door,
    placement_door,
    record_door,
    size_door,
    transaction_door,
)
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Organisation, Role
from tests.support import postgresql
from tests.support.ports import free_port
from tests.support.smtp import MailServer, mailing_by

from .fakes import FakeAdmin, FakeBrokers, FakeTree, ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_django.fixtures import SettingsWrapper

    from controlplane.accounts.models import User
    from controlplane.clusters.address import ClusterAddress
    from controlplane.instances.models import Instance
    from quota.contracts.loop_time import LoopWindow

CLUSTER_SECRET = "of the cluster"
CONSOLE_URL = "https://sluice.example.com"
WANTED = {"name": "events", "bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60, "whitelist": ["127.0.0.0/8"]}


@dataclass
class Person:
    """Someone with a key."""

    user: User
    organisation: Organisation
    key: str

    @property
    def api(self) -> APIClient:
        return client_of(self.key)


def client_of(key: str) -> APIClient:
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    api.default_format = "json"
    return api


def _person(name: str, organisation: Organisation | None = None, role: Role = Role.MEMBER) -> Person:
    user, _ = accounts.user_ensure(email=f"{name}@example.com", password=None)
    if organisation is None:
        organisation = tenants.organisation_create(name=f"{name}'s", owner=user)
    else:
        tenants.membership_set(organisation=organisation, user=user, role=role)
    _, key = accounts.api_key_create(organisation=organisation, user=user, name="test")
    return Person(user, organisation, key)


@pytest.fixture(
    params=[pytest.param("sqlite", marks=[pytest.mark.long] if postgresql.is_installed() else []), "postgresql"]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of the test's own, for processes beside it (`django_process`).

    Once of each kind; where there is PostgreSQL, `make test` has it alone: SQLite is in the long profile then.
    """
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/db.sqlite3"
        return
    if not postgresql.is_installed():
        pytest.skip("PostgreSQL is not installed")
    with postgresql.PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        yield server.database("own")


@pytest.fixture
def alice(db: None) -> Person:
    return _person("alice")


@pytest.fixture
def bob(alice: Person) -> Person:
    return _person("bob", alice.organisation)


@pytest.fixture
def viewer(alice: Person) -> Person:
    return _person("vera", alice.organisation, Role.VIEWER)


@pytest.fixture
def charlie(db: None) -> Person:
    return _person("charlie")


@pytest.fixture(autouse=True)
def own_cache(settings: SettingsWrapper) -> None:
    """Not the Redis of a stack that happens to run here."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    cache.clear()
    attempts.HERE.clear()


@pytest.fixture(autouse=True)
def no_grace(settings: SettingsWrapper) -> None:
    """Deleting destroys at once; what is isolated before has tests of its own (`grace`)."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, deletion_grace_s=0)


@pytest.fixture
def grace(no_grace: None, settings: SettingsWrapper) -> int:
    """A grace period as services have it, in seconds."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, deletion_grace_s=DELETION_GRACE_S)
    return DELETION_GRACE_S


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def cluster_secret(settings: SettingsWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of a stack that happens to be here; private keys are sealed with it."""
    environment = type(settings.ENVIRONMENT)
    real = environment.secret
    monkeypatch.setattr(
        environment, "secret", lambda self, name: CLUSTER_SECRET if name == "cluster_secret" else real(self, name)
    )


@pytest.fixture(autouse=True)
def tree(monkeypatch: pytest.MonkeyPatch) -> FakeTree:
    fake = FakeTree()
    monkeypatch.setattr(zookeeper, "connection", lambda _cluster: fake)
    return fake


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names resolve to; those that are not in it to a public address. No test asks a name server."""
    found: dict[str, list[str]] = {}
    monkeypatch.setattr(posting, "looked_up", lambda host, _port: found.get(host, ["8.8.8.8"]))
    return found


@pytest.fixture
def brokers(tree: FakeTree) -> FakeBrokers:
    return FakeBrokers(tree)


@pytest.fixture(autouse=True)
def admin(monkeypatch: pytest.MonkeyPatch, tree: FakeTree) -> FakeAdmin:
    fake = FakeAdmin(tree)
    monkeypatch.setattr(client, "admin", lambda _cluster: fake)
    monkeypatch.setattr(group_door, "door", lambda _cluster: fake.groups)
    monkeypatch.setattr(message_door, "door", lambda _cluster: fake.messages)
    monkeypatch.setattr(placement_door, "door", lambda _cluster: fake.placement)
    monkeypatch.setattr(record_door, "reader", lambda _cluster, place: fake.groups.reader(place))
    monkeypatch.setattr(transaction_door, "door", lambda _cluster: fake.transactions)
    monkeypatch.setattr(connection_door, "door", lambda _cluster: fake.connections)
    monkeypatch.setattr(config_door, "door", lambda _cluster: fake.config_rows)
    monkeypatch.setattr(size_door, "door", lambda _cluster: fake.sizes)
    monkeypatch.setattr(backlog_door, "door", lambda _cluster: fake.backlogs)
    return fake


@pytest.fixture
def mails(settings: SettingsWrapper) -> Iterator[MailServer]:
    """A mail server; the service writes to people by it."""
    with MailServer() as server:
        mailing_by(settings, server, sender="service@sluice.example.com", console_url=CONSOLE_URL)
        yield server


class FakeMaster:
    """What the master answers, by instance; nothing: it is away."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.broker_rows: list[dict[str, Any]] = []
        self.windows: dict[str, dict[int, str]] | None = None  # of requests, by instance and beginning; None: away
        self.told: dict[int, int] | None = None  # as `master.Window.until`; None: all from the first window on
        self.loops: dict[int, dict[int, LoopWindow]] | None = None  # by broker and beginning; None: away
        self.journals: dict[str, list[dict[str, Any]]] = {}  # lines, by the master's address
        self.asked = 0

    def allocation(self, _cluster: ClusterAddress, instance_id: str) -> dict[str, Any]:
        self.asked += 1
        if instance_id not in self.answers:
            raise MasterUnavailable("no flow master is active")
        return self.answers[instance_id]

    def short(self, _cluster: ClusterAddress, instance_ids: Sequence[str]) -> list[dict[str, Any]]:
        self.asked += 1
        if not self.answers:
            raise MasterUnavailable("no flow master is active")
        return [{"instance": key, **self.answers[key]} for key in instance_ids if key in self.answers]

    def allocations(self, cluster: ClusterAddress, instance_ids: Sequence[str]) -> list[dict[str, Any]]:
        return self.short(cluster, instance_ids)

    def requests(self, _cluster: ClusterAddress, instance_ids: Sequence[str], at: int) -> master.Window:
        self.asked += 1
        if self.windows is None:
            raise MasterUnavailable("no flow master is active")
        texts = {name: [self.windows[name][at]] for name in instance_ids if at in self.windows.get(name, {})}
        first = min((began for windows in self.windows.values() for began in windows), default=2**40)
        return master.Window({1: max(at + 20, first + 30)} if self.told is None else self.told, texts)

    def loop_times(self, _cluster: ClusterAddress, broker: int, at: int) -> dict[int, LoopWindow]:
        if self.loops is None:
            raise MasterUnavailable("no flow master is active")
        return {began: window for began, window in self.loops.get(broker, {}).items() if at <= began < at + 60}

    def throttled(self, http: str, position: int) -> tuple[list[dict[str, Any]], int]:
        if http not in self.journals:
            raise MasterUnavailable("the flow master does not answer")
        lines = self.journals[http]
        return lines[position:], len(lines)

    def brokers(self, _cluster: ClusterAddress) -> list[dict[str, Any]]:
        if not self.broker_rows:
            raise MasterUnavailable("no flow master is active")
        return self.broker_rows


@pytest.fixture(autouse=True)
def flow_master(monkeypatch: pytest.MonkeyPatch) -> FakeMaster:
    fake = FakeMaster()
    for name in ("allocation", "allocations", "loop_times", "requests", "short", "brokers", "throttled"):
        monkeypatch.setattr(master, name, getattr(fake, name))
    return fake


@pytest.fixture(autouse=True)
def wakeups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is sent to a Redis that happens to run here."""
    sent: list[str] = []
    monkeypatch.setattr(operations, "wake", sent.extend)
    return sent


def run_to_the_end(operation_id: str, clock: ManualClock | None = None, rounds: int = 200) -> Operation:
    """Be beat and the worker until the operation is over."""
    clock = clock or ManualClock()
    rows = Operation.objects.unscoped("a test")
    clock.time = max(clock.time, rows.get(pk=operation_id).runnable_at)
    for _ in range(rounds):
        operations.run(operation_id, clock=clock)
        operation = rows.get(pk=operation_id)
        if operation.state != "running":
            return operation
        clock.advance(2)
    raise AssertionError(f"still running: {operation.steps}")


@pytest.fixture
def instance(alice: Person, brokers: FakeBrokers) -> Instance:
    """Alice's, up and running."""
    made, operation = instances.instance_create(organisation=alice.organisation, actor="alice@example.com", **WANTED)
    assert run_to_the_end(operation.id).state == "succeeded"
    made.refresh_from_db()
    return made
