"""Who moved most of an instance while it had to wait.

Rows have no organisation, as throttled intervals have none: an instance is found within its organisation first.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Witness(models.Model):
    """What brokers said at one moment; `document` is made and read by `who`."""

    instance = models.CharField(max_length=32)
    at = models.CharField(max_length=24)  # as `RecordedInterval.started_at`
    document = models.JSONField()

    class Meta:
        """An instance is asked about once at a moment; the purge goes by time."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "at"], name="one_witness_at_a_moment")
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["at"], name="witnesses_by_time")]

    def __str__(self) -> str:
        return f"{self.instance} at {self.at}"


class NeighbourMinute(models.Model):
    """One instance on one broker in a minute: its slowest ten seconds, as `scores.Slow`, and its score."""

    cluster = models.BigIntegerField()  # key of the row
    instance = models.CharField(max_length=32)
    broker = models.IntegerField()
    at = models.BigIntegerField()  # seconds since 1970: the minute's beginning, by the broker's clock
    produce_p99_us = models.BigIntegerField()  # of the local part; 0: nothing was produced
    fetch_p99_us = models.BigIntegerField()
    own_us = models.BigIntegerField()  # of the loop in these ten seconds
    others_us = models.BigIntegerField()
    elapsed_us = models.BigIntegerField()
    minute_us = models.BigIntegerField()  # of the loop for this instance in the whole minute
    score = models.PositiveSmallIntegerField()  # 0 to 100
    kind = models.CharField(max_length=8)  # `scores.Kind`: of which requests
    usual_us = models.BigIntegerField()  # 0: no score

    class Meta:
        """The constraint keeps a minute from being counted twice; indexes: of an instance, of all by time, of a broker."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "cluster", "broker", "at"], name="one_row_per_neighbour_minute")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["cluster", "at", "broker"], name="neighbours_of_a_broker"),
            models.Index(fields=["at"], name="neighbours_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.instance} on {self.broker} at {self.at}"
