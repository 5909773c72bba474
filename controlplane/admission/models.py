"""What operators have said of clusters and of organisations. What is taken stands nowhere: instances say it."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager


class ClusterRoom(models.Model):
    """What each broker of a cluster has of a resource, from then on: rows are appended, and the newest one counts."""

    cluster = models.ForeignKey("clusters.PhysicalCluster", models.PROTECT, related_name="+")
    resource = models.CharField(max_length=32)  # of rules.CLUSTER
    per_broker = models.FloatField()
    overcommit = models.FloatField()
    actor = models.CharField(max_length=254)
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta:
        """Read by cluster, in order."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["cluster", "id"], name="rooms_of_a_cluster")]

    def __str__(self) -> str:
        return f"{self.resource} of {self.cluster}: {self.per_broker} x {self.overcommit}"


class OrganisationCap(models.Model):
    """A cap that an operator has set. An organisation without a row has the default."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    resource = models.CharField(max_length=32)  # of rules.ORGANISATION; of the price, rules.price_cap
    limit = models.DecimalField(max_digits=16, decimal_places=3)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One cap of each kind."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "resource"], name="one_cap_per_resource")
        ]

    def __str__(self) -> str:
        return f"{self.resource} of {self.organisation_id}: {self.limit}"


class ScheduledState(models.TextChoices):
    """What has become of a change that was to be made later."""

    WAITING = "waiting"
    BEGUN = "begun"  # it was made; its operation brings it to brokers
    REFUSED = "refused"  # at its time it could not be made
    CANCELLED = "cancelled"


class ScheduledChange(models.Model):
    """Other sizes for an instance from a moment on. `scheduling.py` writes it."""

    id = models.CharField(primary_key=True, max_length=20)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    actor = models.CharField(max_length=254)
    changes = models.JSONField()  # of rules.SIZES
    accept_full_storage = models.BooleanField(default=False)
    confirm_price = models.BooleanField(default=False)
    at = models.DateTimeField()
    pays_in_advance = models.BooleanField(default=True, db_default=True)  # whether who asked for it may pay so
    in_window = models.BooleanField(default=False)  # only while the maintenance window is open, from `at` on
    state = models.CharField(max_length=16, choices=ScheduledState, default=ScheduledState.WAITING)
    operation_id = models.CharField(max_length=32, blank=True, default="")  # once it is begun
    problem = models.TextField(blank=True, default="")  # why it was refused, or could not be made yet
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)  # when owners were written to what has become of it

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Beat asks for those that are due, and for those of which nobody was told."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["state", "at"], name="changes_due"),
            models.Index(fields=["instance", "created_at"], name="changes_of_an_instance"),
            models.Index(
                fields=["ended_at"],
                name="changes_untold",
                condition=models.Q(state="begun", told_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} of {self.instance_id} at {self.at:%Y-%m-%d %H:%M:%S}"
