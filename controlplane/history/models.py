"""Rows of figures, one for each instance and moment: samples, and the minutes and hours that are made of them.

A row has no `organisation`: the master knows instances only by name. Selectors reach rows through an instance that was looked
up in its organisation's scope. Rows are wide and have no id of their own, since there are many of them; moments are seconds since
1970, so that SQL rolls up with whole numbers on any database.

Of what is measured a minute and an hour keep the **sum** of its samples and their number, beside the largest: an hour made of
minutes has then exactly the average of its samples, to the last digit, whichever way it was made.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Row(models.Model):
    """What a row of any length has: of whom, when it begins, and what was set at its end."""

    instance = models.CharField(max_length=32)
    at = models.BigIntegerField()
    produce_limit_bytes_per_s = models.BigIntegerField(null=True)  # these four: null is unlimited
    produce_allocated_bytes_per_s = models.BigIntegerField(null=True)
    consume_limit_bytes_per_s = models.BigIntegerField(null=True)
    consume_allocated_bytes_per_s = models.BigIntegerField(null=True)
    storage_limit_bytes = models.BigIntegerField()

    class Meta:
        """Of an instance by its key; of all instances by moment."""

        abstract = True
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["at"])]

    def __str__(self) -> str:
        return f"{self.instance} at {self.at}"


class Sample(Row):
    """What the master said at a moment."""

    pk = models.CompositePrimaryKey("instance", "at")
    produce_bytes_per_s = models.BigIntegerField()
    consume_bytes_per_s = models.BigIntegerField()
    storage_used_bytes = models.BigIntegerField()
    connections = models.IntegerField()


class Rolled(Row):
    """Of the samples of a minute or an hour. `minutes` are those that had any."""

    produce_bytes_per_s_sum = models.BigIntegerField()
    produce_bytes_per_s_max = models.BigIntegerField()
    consume_bytes_per_s_sum = models.BigIntegerField()
    consume_bytes_per_s_max = models.BigIntegerField()
    storage_used_bytes_sum = models.BigIntegerField()
    storage_used_bytes_max = models.BigIntegerField()
    connections_sum = models.BigIntegerField()
    connections_max = models.IntegerField()
    produce_throttled_ms = models.IntegerField()
    produce_throttled_ms_max = models.IntegerField()  # of its minutes
    consume_throttled_ms = models.IntegerField()
    consume_throttled_ms_max = models.IntegerField()
    samples = models.SmallIntegerField()
    minutes = models.SmallIntegerField()

    class Meta(Row.Meta):
        """As its base."""

        abstract = True


class Minute(Rolled):
    """A minute, once it is over."""

    pk = models.CompositePrimaryKey("instance", "at")


class Hour(Rolled):
    """An hour, once it is over."""

    pk = models.CompositePrimaryKey("instance", "at")


class RolledUp(models.Model):
    """How far rows of one length have been made: all that begin before `until`."""

    step_s = models.IntegerField(primary_key=True)
    until = models.BigIntegerField()

    def __str__(self) -> str:
        return f"rows of {self.step_s} s up to {self.until}"
