"""A sample of each broker, each minute: what it led, carried and held. Rows are wide and have no id of their own."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class BrokerSample(models.Model):
    """What was known of a broker in a minute. Where nobody knew anything there is no row: a gap, never a zero."""

    pk = models.CompositePrimaryKey("cluster", "broker", "at")
    cluster = models.BigIntegerField()  # of its row
    broker = models.IntegerField()  # its id within the cluster
    at = models.BigIntegerField()  # the minute's beginning, seconds since 1970
    reporting = models.BooleanField()
    leaders = models.IntegerField()
    instances = models.IntegerField()
    produce_bytes_per_s = models.BigIntegerField()
    produce_allocated_bytes_per_s = models.BigIntegerField()  # of these two: unlimited instances are left out
    consume_bytes_per_s = models.BigIntegerField()
    consume_allocated_bytes_per_s = models.BigIntegerField()
    loop_us_per_s = models.BigIntegerField(null=True)  # what it works for tenants; null: not known, as the two below
    disk_bytes = models.BigIntegerField(null=True)
    behind = models.IntegerField(null=True)  # of its replicas, those that are not in sync

    class Meta:
        """Of a cluster's brokers by the key; what has expired by moment."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["at"], name="broker_samples_by_moment")]

    def __str__(self) -> str:
        return f"broker {self.broker} of cluster {self.cluster} at {self.at}"
