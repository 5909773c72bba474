"""Proposals to rebalance a cluster, their moves, and who said what about them.

None has an `organisation`: a cluster is its operators', and they alone reach these rows. Topics are physical names.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

DEFAULT_THROTTLE_BYTES_PER_S = 50 * 2**20
DEFAULT_AT_ONCE = 20


class RebalanceState(models.TextChoices):
    """What has become of a proposal."""

    PLANNING = "planning"  # a worker looks at the cluster
    PROPOSED = "proposed"  # nothing happens until somebody has it carried out
    RUNNING = "running"
    PAUSED = "paused"  # what is under way goes on, nothing new begins
    CANCELLING = "cancelling"  # what is under way is called back
    CANCELLED = "cancelled"
    DONE = "done"
    FAILED = "failed"  # it gave up; `problem` says why
    EXPIRED = "expired"  # the cluster has become another since it was looked at


UNDER_WAY = (RebalanceState.RUNNING, RebalanceState.PAUSED, RebalanceState.CANCELLING)
OVER = (RebalanceState.CANCELLED, RebalanceState.DONE, RebalanceState.FAILED)


class MoveState(models.TextChoices):
    """How far one partition is."""

    WAITING = "waiting"
    ASKED = "asked"  # written down before the controller hears of it: a worker that dies in between asks again
    MOVING = "moving"  # the controller has it, or it waits for its leader
    DONE = "done"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # its partition had changed, or gone, before its turn came
    FAILED = "failed"  # the controller refused it


ACTIVE = (MoveState.ASKED, MoveState.MOVING)


class Rebalance(models.Model):
    """One proposal. `wishes` and `summary` are documents: see `wishes` and `summaries`."""

    id = models.CharField(primary_key=True, max_length=32)
    cluster = models.ForeignKey("clusters.PhysicalCluster", models.PROTECT, related_name="+")
    state = models.CharField(max_length=16, choices=RebalanceState, default=RebalanceState.PLANNING)
    wishes = models.JSONField(default=dict)
    summary = models.JSONField(null=True)  # null: not planned yet
    throttle_bytes_per_s = models.BigIntegerField()  # into and out of each broker
    throttle_in_force = models.BigIntegerField(
        null=True
    )  # what brokers have been told; null: nothing, or all was taken back
    at_once = models.PositiveIntegerField()  # partitions that are copied
    rollback_of = models.ForeignKey("self", models.PROTECT, null=True, related_name="+")
    operation = models.ForeignKey("core.Operation", models.PROTECT, null=True, related_name="+")  # the last one
    problem = models.TextField(default="", blank=True)
    cause = models.TextField(default="", blank=True)  # why it was proposed by itself; empty: somebody has proposed it
    created_by = models.CharField(max_length=254)  # an email, or "system"
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    approved_by = models.CharField(max_length=254, default="", blank=True)  # empty: nobody
    approved_at = models.DateTimeField(null=True)
    begun_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        """Listed by cluster, the newest first."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["cluster", "-created_at"], name="rebalances_of_a_cluster")
        ]

    def __str__(self) -> str:
        return f"{self.id} of {self.cluster}"

    @property
    def estimated_s(self) -> int | None:
        """How long it takes at the throttle, by what the busiest broker has to take in or give out; None: not planned yet."""
        if self.summary is None:
            return None
        return -(-int(self.summary["busiest_bytes"]) // self.throttle_bytes_per_s)


class RebalanceMove(models.Model):
    """One partition of a proposal. Moves are made in the order of their numbers."""

    rebalance = models.ForeignKey(Rebalance, models.CASCADE, related_name="moves")
    number = models.PositiveIntegerField()
    topic = models.CharField(max_length=249)
    partition = models.PositiveIntegerField()
    instance = models.CharField(max_length=32, blank=True, default="")  # empty: the cluster's own topic
    before = models.JSONField()  # broker ids; the first is to lead
    after = models.JSONField()
    size_bytes = models.BigIntegerField()  # of one replica
    copies = models.BooleanField()  # false: another replica leads, and nothing is copied
    bytes_to_copy = models.BigIntegerField()
    copied_bytes = models.BigIntegerField(default=0)
    returns_bytes_per_s = models.BigIntegerField(default=0)
    state = models.CharField(max_length=16, choices=MoveState, default=MoveState.WAITING)
    asked = models.PositiveIntegerField(default=0)  # how often the controller was
    problem = models.TextField(default="", blank=True)
    begun_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        """One a partition; the next ones are looked for by state, and what moves of an instance's by its alarms."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["rebalance", "number"], name="move_number_once"),
            models.UniqueConstraint(fields=["rebalance", "topic", "partition"], name="one_move_per_partition"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["rebalance", "state", "number"], name="moves_by_state"),
            models.Index(fields=["instance", "rebalance"], name="moves_of_instance"),
        ]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} of {self.rebalance_id}"

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def added(self) -> list[int]:
        """Brokers that copy it."""
        return [broker for broker in self.after if broker not in self.before]


class BalanceMode(models.TextChoices):
    """What happens where a cluster calls for a rebalance."""

    OFF = "off"
    PROPOSE = "propose"  # there is a proposal, which operators have carried out or not
    CARRY_OUT = "carry_out"  # it is carried out as well


class BalanceRule(models.Model):
    """When a cluster is rebalanced by itself, and how. A cluster without one is not. `automatic` says what it means."""

    cluster = models.OneToOneField("clusters.PhysicalCluster", models.PROTECT, primary_key=True, related_name="+")
    mode = models.CharField(max_length=16, choices=BalanceMode, default=BalanceMode.OFF)
    new_brokers = models.BooleanField(default=True)  # brokers without replicas are filled
    skew_percent = models.PositiveIntegerField(null=True, default=50)  # above the average; null: skew does not count
    lasting_minutes = models.PositiveIntegerField(default=30)  # so long skew has to last
    rest_hours = models.PositiveIntegerField(default=6)  # after the last one
    in_windows = models.BooleanField(default=False)
    throttle_bytes_per_s = models.BigIntegerField(default=DEFAULT_THROTTLE_BYTES_PER_S)
    at_once = models.PositiveIntegerField(default=DEFAULT_AT_ONCE)
    changed_by = models.CharField(max_length=254, default="", blank=True)
    changed_at = models.DateTimeField(null=True)  # null: never
    waiting_for = models.CharField(max_length=16, default="", blank=True)  # a cause that is there; empty: none
    waiting_since = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.mode} of {self.cluster_id}"


class RebalanceEvent(models.Model):
    """Who said what about a proposal: appended, never changed. It is the record of what operators did."""

    rebalance = models.ForeignKey(Rebalance, models.CASCADE, related_name="events")
    actor = models.CharField(max_length=254)  # an email, or "system"
    action = models.CharField(max_length=32)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.action} {self.rebalance_id}"
