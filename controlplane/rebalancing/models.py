"""Proposals to rebalance a cluster, their moves, and who said what about them.

None has an `organisation`: a cluster is its operators', and they alone reach these rows. Topics are physical names.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models


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
    created_by = models.CharField(max_length=254)
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
        """One a partition; the next ones are looked for by state."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["rebalance", "number"], name="move_number_once"),
            models.UniqueConstraint(fields=["rebalance", "topic", "partition"], name="one_move_per_partition"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["rebalance", "state", "number"], name="moves_by_state")
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


class RebalanceEvent(models.Model):
    """Who said what about a proposal: appended, never changed. It is the record of what operators did."""

    rebalance = models.ForeignKey(Rebalance, models.CASCADE, related_name="events")
    actor = models.CharField(max_length=254)  # an email, or "system"
    action = models.CharField(max_length=32)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.action} {self.rebalance_id}"
