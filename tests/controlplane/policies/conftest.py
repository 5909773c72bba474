"""Alice's instance with topics, groups and a disk whose level a test says; its policy, looked at and carried out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import Operation
from controlplane.instances.models import Instance
from controlplane.policies import evaluation
from controlplane.policies.models import DiskPolicy, ShortenedTopic
from controlplane.topics import services as topics
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.fakes import FakeGroup, ManualClock

if TYPE_CHECKING:
    from collections.abc import Sequence

GIB = 2**30
HOUR_S, DAY_S = 3600, 24 * 3600
DAY_MS = DAY_S * 1000
REASON = "a test"


@dataclass
class World:
    """What a test does to it."""

    instance: Instance
    person: Any
    admin: Any
    master: Any
    clock: ManualClock

    @property
    def url(self) -> str:
        return f"/api/v1/instances/{self.instance.id}/policies"

    @property
    def key(self) -> str:
        return self.instance.id.removeprefix("ins-")

    def topic(self, name: str, ages_s: Sequence[float], *, start: int = 0, **config: str) -> None:
        """A topic of one partition with records of these ages, the oldest first."""
        topics.topic_create(
            organisation=self.instance.organisation, actor="a", instance_id=self.instance.id, name=name, partitions=1,
            replication_factor=1, config={member.replace("_", "."): value for member, value in config.items()},
        )  # fmt: skip
        stamps = [int(1000 * (time.time() - age)) for age in ages_s]
        self.admin.groups.logs[f"{self.key}.{name}", 0] = (start, stamps)

    def group(self, name: str, **offsets: int) -> None:
        """A group that would read topics on from these offsets."""
        places = {(f"{self.key}.{topic}", 0): offset for topic, offset in offsets.items()}
        self.admin.groups.found[f"{self.key}.{name}"] = FakeGroup(places)

    def fills(self, percent: float | None, *, learning: bool = False) -> None:
        """So much of the storage is used, as the flow master says; None: it is away."""
        self.master.answers.pop(self.instance.id, None)
        if percent is not None:
            self.instance.refresh_from_db()
            used = round(self.instance.storage_gib * GIB * percent / 100)
            self.master.answers[self.instance.id] = {"storage_used_bytes": used, "learning": learning}

    def set(self, policy: str, *, status: int = 200, **members: Any) -> Any:
        answer = self.person.api.put(f"{self.url}/disk", {"policy": policy, **members})
        assert answer.status_code == status, answer.content
        return answer.json()

    def shown(self) -> dict[str, Any]:
        return self.person.api.get(self.url).json()["disk"]

    def retention(self, name: str) -> str | None:
        """What is set for a topic."""
        return self.admin.configs[f"{self.key}.{name}"].get("retention.ms")

    def look(self) -> list[Operation]:
        """Be beat: what was begun."""
        before = set(self.operations().values_list("pk", flat=True))
        evaluation.evaluate(clock=self.clock)
        return list(self.operations().exclude(pk__in=before).order_by("created_at"))

    def act(self) -> Operation:
        """Be beat and the worker; what became of the one operation that was begun."""
        (begun,) = self.look()
        return run_to_the_end(begun.pk, self.clock)

    def later(self, **members: float) -> None:
        self.clock.time += timedelta(**members)

    def operations(self) -> Any:
        rows = Operation.objects.unscoped(REASON).filter(target=self.instance.id)
        return rows.filter(kind__startswith="policies.")

    def policy(self) -> DiskPolicy:
        return DiskPolicy.objects.unscoped(REASON).get(instance=self.instance)

    def shortened(self) -> dict[str, ShortenedTopic]:
        return {row.topic: row for row in ShortenedTopic.objects.unscoped(REASON).filter(instance=self.instance)}


@pytest.fixture
def world(alice, instance, admin, flow_master) -> World:
    """Three brokers that report; storage is used to a tenth."""
    flow_master.broker_rows = [{"broker": number, "reporting": True} for number in (1, 2, 3)]
    clock = ManualClock()
    clock.time = SYSTEM_CLOCK.now()
    made = World(instance, alice, admin, flow_master, clock)
    made.fills(10)
    return made
