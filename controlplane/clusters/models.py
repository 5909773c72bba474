"""Physical clusters, their brokers, and the ports of tenants' listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.db import models

from controlplane.clusters.address import ClusterAddress

if TYPE_CHECKING:
    from collections.abc import Collection

DEFAULT_CAPACITY = 500


class ClusterState(models.TextChoices):
    """Whether instances are placed on a cluster. What is on it goes on in each of them, and may grow."""

    OPEN = "open"
    CORDONED = "cordoned"  # takes no new instance
    DRAINING = "draining"  # nor this; and what is on it is to be moved away
    RETIRED = "retired"  # nothing is on it, and nobody asks it any more; admission.retiring says when that can be


class PhysicalCluster(models.Model):
    """Brokers that share one ZooKeeper chroot. Bounded: a service grows by more clusters, not by larger ones."""

    name = models.CharField(max_length=64, unique=True)  # stays: tables of metering refer to it
    capacity = models.PositiveIntegerField(default=DEFAULT_CAPACITY)  # instances
    zones = models.JSONField(default=list, db_default=[])  # where its brokers are, by name, sorted
    state = models.CharField(
        max_length=16, choices=ClusterState, default=ClusterState.OPEN, db_default=ClusterState.OPEN.value
    )
    # Its ZooKeeper with the chroot; empty, of one cluster at most: the installation's own, ZOOKEEPER_HOSTS.
    zookeeper_hosts = models.CharField(max_length=255, blank=True, default="", db_default="", unique=True)

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> ClusterAddress:
        """What every door to this cluster is opened with."""
        return ClusterAddress(self.pk, self.zookeeper_hosts or settings.ENVIRONMENT.zookeeper_hosts)


class ChangesRead(models.Model):
    """How far what clients of tenants change in a cluster has been read (instances/kafka_changes.py)."""

    cluster = models.OneToOneField(PhysicalCluster, models.CASCADE, primary_key=True, related_name="+")
    offset = models.BigIntegerField()  # of the next record

    def __str__(self) -> str:
        return f"{self.cluster_id} to {self.offset}"


class ClusterEvent(models.Model):
    """What an operator has decided about a cluster: appended, never changed. It is the record of it."""

    cluster = models.ForeignKey(PhysicalCluster, models.PROTECT, related_name="+")
    actor = models.CharField(max_length=254)  # an email, or "system"
    action = models.CharField(max_length=32)  # register, change
    detail = models.JSONField(default=dict)  # member -> {"from", "to"}
    reason = models.TextField(blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        """Read by cluster, the newest first."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["cluster", "id"], name="events_of_a_cluster")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.action} {self.cluster}"


class Broker(models.Model):
    """A broker that has registered at least once. It keeps its listeners' addresses while it is away."""

    cluster = models.ForeignKey(PhysicalCluster, models.PROTECT, related_name="brokers")
    broker_id = models.PositiveIntegerField()
    host = models.CharField(max_length=255)  # of the internal listener
    port = models.PositiveIntegerField()
    rack = models.CharField(max_length=255, blank=True, default="")
    away_since = models.DateTimeField(null=True)  # first missed in ZooKeeper; null: it was there when last looked

    class Meta:
        """Ids are unique within a cluster."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["cluster", "broker_id"], name="broker_id_per_cluster")
        ]

    def __str__(self) -> str:
        return f"broker {self.broker_id} of {self.cluster}"


class BrokerAbsence(models.Model):
    """A time in which a broker was not registered: the history of `Broker.away_since`, which goes when the broker is back."""

    cluster = models.ForeignKey(PhysicalCluster, models.PROTECT, related_name="+")
    broker_id = models.PositiveIntegerField()
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # null: it is still away
    # Of which instances it led partitions when it began, as `led_text` writes them: thousands are some kilobytes, where a row
    # of each would be thousands of rows whenever a broker is renewed. Null: not known.
    led = models.TextField(null=True)  # noqa: DJ001

    class Meta:
        """Read by cluster and time; a broker is away once at a time, whoever looks."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["cluster", "began_at"], name="absences_by_beginning"),
            models.Index(fields=["cluster", "ended_at"], name="absences_by_end"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["cluster", "broker_id"], condition=models.Q(ended_at=None), name="one_absence_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"broker {self.broker_id} from {self.began_at:%Y-%m-%d %H:%M:%S}"

    @staticmethod
    def led_text(instances: Collection[str] | None) -> str | None:
        """`` k3v9x2qa m2x8c4vb ``: ids without what all begin with, each between spaces, so that one can be looked for."""
        if instances is None:
            return None
        return f" {' '.join(sorted(name.removeprefix('ins-') for name in instances))} "

    @classmethod
    def met(cls, instance: str) -> models.Q:
        """Absences of brokers that led partitions of an instance, and those of which that is not known."""
        return models.Q(led=None) | models.Q(led__contains=cls.led_text([instance]))


class PortState(models.TextChoices):
    """A port that was ever given out."""

    HELD = "held"  # by `owner`
    BLOCKED = "blocked"  # another process has it: not tried again for a while
    RELEASED = "released"  # its instance is gone: rests, so that old clients do not meet a new tenant


class PortAllocation(models.Model):
    """One port on one host. The unique constraint is what keeps two instances off one port, whoever races."""

    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=PortState, default=PortState.HELD)
    broker = models.ForeignKey(Broker, models.PROTECT, null=True, related_name="+")
    owner = models.CharField(max_length=32, blank=True, default="", db_index=True)  # instance id
    route = models.CharField(max_length=32, blank=True, default="")
    changed_at = models.DateTimeField()

    class Meta:
        """A port once per host; a listener once per broker and route."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["host", "port"], name="port_per_host"),
            models.UniqueConstraint(
                fields=["broker", "owner", "route"],
                condition=models.Q(state=PortState.HELD),
                name="listener_per_broker_and_route",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host}:{self.port} {self.state} {self.owner}"


class Journal(models.Model):
    """Of a master that was active once. It is asked as long as it is remembered, active or not."""

    cluster = models.ForeignKey(PhysicalCluster, models.PROTECT, related_name="+")
    master = models.IntegerField()  # its id, within its cluster
    http = models.CharField(max_length=200)
    position = models.BigIntegerField(default=0)  # up to which it has been read
    active_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)  # when it was read to its end last
    problem = models.TextField(default="")  # why the last look at it went wrong, or what had to be left out

    class Meta:
        """A table for each kind of journal."""

        abstract = True

    def __str__(self) -> str:
        return f"master {self.master} up to {self.position}"

    def note(self, problem: str) -> None:
        """What is wrong with it; empty: nothing any more."""
        type(self)._default_manager.filter(pk=self.pk).update(problem=problem)  # noqa: SLF001 - the model's own
        self.problem = problem

    def went_on(self, following: int) -> bool:
        """Whether it was for us to go on to that position; False: another worker reads this journal too."""
        here = type(self)._default_manager.filter(pk=self.pk, position=self.position)  # noqa: SLF001 - the model's own
        return bool(here.update(position=following))
