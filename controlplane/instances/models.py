"""Instances and their routes. What is wanted of them stands here; ZooKeeper holds a copy for the brokers."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager
from quota.contracts.instance import ClientCertificates, Security
from quota.contracts.instance import InstanceState as SpecState


class InstanceState(models.TextChoices):
    """What its tenant is shown."""

    CREATING = "creating"  # an operation is bringing it up
    RUNNING = "running"  # every live broker serves it
    FAILED = "failed"  # bringing it up gave up; the reconciler still tries, and it can be deleted
    ISOLATED = "isolated"  # its tenant deleted it: nobody gets in, all is kept, until `destroys_at` it can be restored
    RESTORING = "restoring"  # an operation is opening it again; where that gave up, the reconciler still tries
    DELETING = "deleting"  # an operation is taking it away
    DELETED = "deleted"  # gone for its tenant; the row stays for the bill


class SpecChangeKind(models.TextChoices):
    """Why a size is in force from then on."""

    OPENED = "opened"  # first open for use: what is before costs nothing
    RESIZED = "resized"
    ISOLATED = "isolated"  # its tenant deleted it: from then on it costs nothing
    RESTORED = "restored"  # open for use again, after it was isolated
    CLOSED = "closed"  # its tenant asked for its end


class Instance(models.Model):
    """One instance. `generation` counts every change brokers must hear of, and guards each by compare-and-set."""

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    cluster = models.ForeignKey("clusters.PhysicalCluster", models.PROTECT, related_name="+")
    name = models.CharField(max_length=128)
    bandwidth_mib_per_s = models.FloatField()
    storage_gib = models.FloatField()
    partitions = models.PositiveIntegerField()  # replicas included
    whitelist = models.JSONField(default=list)
    topic_whitelists = models.JSONField(default=dict)  # tenant's topic name -> CIDRs
    operators_limits = models.JSONField(
        default=dict
    )  # what an operator has set of spec.OPERATORS_LIMITS; null: unlimited
    config = models.JSONField(default=dict)  # what its tenant has set of spec.DEFAULT_CONFIG
    deletion_protection = models.BooleanField(default=False)  # while it is on, nobody deletes the instance
    maintenance_window = models.JSONField(null=True)  # as `windows` has it; null: none, so that nothing waits for one
    # What its tenant wished of its cluster: zones, apart_from; empty: nothing.
    placement = models.JSONField(default=dict, db_default={})
    state = models.CharField(max_length=16, choices=InstanceState, default=InstanceState.CREATING)
    spec_state = models.CharField(max_length=16, default=SpecState.RUNNING.value)  # what brokers are told
    generation = models.PositiveBigIntegerField(default=1)
    problem = models.TextField(default="")  # why the reconciler could not look after it; empty: it could
    created_at = models.DateTimeField()
    isolated_at = models.DateTimeField(null=True)  # since when, where it is isolated or was when it was destroyed
    destroys_at = models.DateTimeField(null=True)  # until when it can be restored
    end_foretold_at = models.DateTimeField(null=True)  # when owners were told that it is about to be destroyed
    deleted_at = models.DateTimeField(null=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Lists are in the order of creation."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organisation", "created_at"]),
            models.Index(fields=["state", "destroys_at"], name="instance_end"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.name})"


class RouteState(models.TextChoices):
    """What its tenant is shown; one whose end has come is shown as closed besides."""

    CREATING = "creating"  # an operation is opening it on the brokers
    RUNNING = "running"  # open, or kept so by the reconciler
    FAILED = "failed"  # brokers could not open it: it is not in force, until it is changed or removed
    DELETING = "deleting"  # an operation is taking it away; brokers are told of it no more
    REMOVED = "removed"  # gone for its tenant; the row keeps its id from being used again


class Route(models.Model):
    """One way into an instance. Whoever writes one raises the instance's generation in the same transaction."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey(Instance, models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()  # from 1 within the instance, never used again
    key = models.CharField(max_length=32)  # its id within the instance: "default", or "r" and the number
    security = models.CharField(max_length=16, default=Security.PLAINTEXT.value)
    mechanisms = models.JSONField(default=list)
    allow_plain_in_clear = models.BooleanField(default=False)
    client_certificates = models.CharField(max_length=16, default=ClientCertificates.NONE.value)
    principal_mapping = models.JSONField(default=list)
    proxy_protocol = models.BooleanField(default=False)
    whitelist = models.JSONField(null=True)  # CIDRs; null: the instance's alone
    connections = models.PositiveIntegerField(null=True)  # these two of each broker; null: the instance's alone
    connections_per_address = models.PositiveIntegerField(null=True)
    advertised_host = models.CharField(max_length=255, blank=True, default="")  # empty: the installation's
    advertised_hosts = models.JSONField(default=dict)  # broker id as text -> host, before the one above
    public = models.BooleanField(default=False)
    closes_at = models.DateTimeField(null=True)  # null: it stays
    state = models.CharField(max_length=16, choices=RouteState, default=RouteState.CREATING)
    created_at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Ids and numbers stay; there is one public route at most."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "number"], name="route_number_once"),
            models.UniqueConstraint(fields=["instance", "key"], name="route_key_once"),
            models.UniqueConstraint(
                fields=["instance"],
                condition=models.Q(public=True) & ~models.Q(state="removed"),
                name="one_public_route",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.instance_id}"


class SpecChange(models.Model):
    """The history of an instance's sizes, for the bill: appended in the transaction of each change, never updated."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey(Instance, models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=SpecChangeKind)
    bandwidth_mib_per_s = models.FloatField()
    storage_gib = models.FloatField()
    partitions = models.PositiveIntegerField()
    at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Opened and closed happen once, however often a step or a request is repeated."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["instance", "at"])]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["instance", "kind"],
                condition=models.Q(kind__in=("opened", "closed")),
                name="opened_and_closed_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"
