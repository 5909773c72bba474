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


class RequestRow(models.Model):
    """What became of an instance's requests in a step of time, in which there were any: `quota.contracts.requests`.

    `windows` are the tens of seconds in which anything was asked. A text, since what there is differs from one instance to the
    next, and most of it is zero; every row is the exact sum of its windows (`requests.sampling`). What topics moved
    (`quota.contracts.topics_moved`) and what was asked of each broker (`requests.by_broker`) are texts beside it; null: not
    known.

    What is asked of a broker by all instances has such rows as well, under a name that no instance has (`sampling.broker_name`).
    """

    instance = models.CharField(max_length=32)
    at = models.BigIntegerField()
    windows = models.IntegerField()
    counts = models.TextField()
    topics = models.TextField(null=True)  # noqa: DJ001  # nothing that moved and not known are two things
    brokers = models.TextField(null=True)  # noqa: DJ001

    class Meta:
        """Of an instance by its key; what has expired by moment."""

        abstract = True
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["at"], name="%(class)s_by_moment")]

    def __str__(self) -> str:
        return f"requests of {self.instance} at {self.at}"


class RequestSample(RequestRow):
    """A window of ten seconds, of all brokers."""

    pk = models.CompositePrimaryKey("instance", "at")


class RequestMinute(RequestRow):
    """A minute, once it is over."""

    pk = models.CompositePrimaryKey("instance", "at")


class RequestHour(RequestRow):
    """An hour, as far as its minutes are over."""

    pk = models.CompositePrimaryKey("instance", "at")


class RequestDay(RequestRow):
    """Likewise a day: what 400 days are shown from."""

    pk = models.CompositePrimaryKey("instance", "at")


class RequestTotal(models.Model):
    """All requests of an instance that began before `until`. It only grows: Prometheus has counters from it."""

    instance = models.CharField(max_length=32, primary_key=True)
    until = models.BigIntegerField()
    counts = models.TextField()
    topics = models.TextField(default="{}", db_default="{}")  # what those moved that moved most, since this is kept
    brokers = models.TextField(default="{}", db_default="{}")  # `requests.by_broker`, likewise

    def __str__(self) -> str:
        return f"requests of {self.instance} up to {self.until}"


class RequestMark(models.Model):
    """How far this has been done for a cluster: the last window that was taken, and minutes that begin before `rolled`."""

    name = models.CharField(max_length=64, primary_key=True)
    taken = models.BigIntegerField()
    rolled = models.BigIntegerField()

    def __str__(self) -> str:
        return f"requests of {self.name} up to {self.taken}"


class RequestGap(models.Model):
    """Windows of a cluster of which some broker has not told what was asked: nothing is known of them, of no instance."""

    name = models.CharField(max_length=64)  # as the cluster's mark has it
    at = models.BigIntegerField()
    until = models.BigIntegerField()  # where the next window that is known begins
    pk = models.CompositePrimaryKey("name", "at")

    class Meta:
        """What has expired, by moment."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["until"], name="request_gap_by_moment")]

    def __str__(self) -> str:
        return f"requests of {self.name} are not known from {self.at} to {self.until}"


class StoredSpan(models.Model):
    """A time of which all rows of one length are in a metrics store: `store.spans`.

    Rows that began in [`at`, `until`) are. Those before `purged` may have been removed from the database.
    """

    store = models.CharField(max_length=16)  # `store.client.Store.digest`
    name = models.CharField(max_length=32)
    at = models.BigIntegerField()
    until = models.BigIntegerField()
    purged = models.BigIntegerField()

    class Meta:
        """Of a store and a length, by moment."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["store", "name", "at"], name="one_stored_span_of_a_moment")
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.store} from {self.at} to {self.until}"


class StoreWriter(models.Model):
    """Who writes to the store: nobody else does before `until`, in seconds since 1970."""

    name = models.CharField(max_length=16, primary_key=True)
    until = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.name} up to {self.until}"


class LagGroup(models.Model):
    """A consumer group of which there are rows of lag. It outlives the group, as long as its rows are kept.

    A name may have a thousand letters, more than an index takes: `digest` stands for it (`lag.rows.digest_of`).
    """

    instance = models.CharField(max_length=32)
    digest = models.CharField(max_length=32)
    name = models.CharField(max_length=1000)
    deleted_at = models.BigIntegerField(
        null=True
    )  # seconds: it was not there any more; null: a round has seen it since

    class Meta:
        """Found by its instance and name."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "digest"], name="one_lag_group_of_a_name")
        ]

    def __str__(self) -> str:
        return f"a group of {self.instance}"


class LagRow(models.Model):
    """A run of steps, from the one at `at` to the one at `until`, in each of which a group had the same figures.

    A group that stands still has one row for an hour of minutes, so it costs no row a minute. A step that no row has is a gap.
    """

    group = models.BigIntegerField()
    at = models.BigIntegerField()
    until = models.BigIntegerField()

    class Meta:
        """Of a group by its key; what is continued, and what has expired, by moment."""

        abstract = True
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["at"]), models.Index(fields=["until"])]

    def __str__(self) -> str:
        return f"lag of group {self.group} from {self.at} to {self.until}"


class LagMinutes(LagRow):
    """Minutes of one hour. Figures are of `late_s` seconds after the beginning of a minute."""

    pk = models.CompositePrimaryKey("group", "at")
    late_s = models.SmallIntegerField()
    messages = models.BigIntegerField()
    oldest_ms = models.BigIntegerField(null=True)  # see `groups.rounds.Lag`
    size = models.BigIntegerField(null=True)  # bytes, likewise
    consumed = models.BigIntegerField(null=True)  # records in a minute: `lag.rates`
    produced = models.BigIntegerField(null=True)


class LagSample(models.Model):
    """Steps of ten seconds, from `at` to `until`, in which nothing changed in the lag of an instance's groups and topics.

    A text with all of them, or one of several such rows where there are many: `lag.samples`. Figures are of `late_s` seconds
    after the beginning of a step.
    """

    instance = models.CharField(max_length=32)
    part = models.SmallIntegerField()
    at = models.BigIntegerField()
    pk = models.CompositePrimaryKey("instance", "part", "at")
    until = models.BigIntegerField()
    late_s = models.SmallIntegerField()
    digest = models.BigIntegerField()  # of the text, with whose it is
    figures = models.TextField()

    class Meta:
        """What has expired, by moment."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["at"], name="lag_sample_by_moment")]

    def __str__(self) -> str:
        return f"lag in {self.instance} from {self.at} to {self.until}"


class LagHours(LagRow):
    """Hours of one UTC day. `samples` of an hour are its minutes that are known, `dated` those with a known age.

    `sized` are those whose bytes are known, `moved` those of which it is known what was consumed and produced; null: none is, or
    the hour was made before there were any.
    """

    pk = models.CompositePrimaryKey("group", "at")
    samples = models.SmallIntegerField()
    dated = models.SmallIntegerField()
    messages_sum = models.BigIntegerField()
    messages_max = models.BigIntegerField()
    seconds_sum = models.FloatField()
    seconds_max = models.FloatField(null=True)
    sized = models.SmallIntegerField(null=True)
    size_sum = models.BigIntegerField(null=True)
    size_max = models.BigIntegerField(null=True)
    moved = models.SmallIntegerField(null=True)
    consumed_sum = models.BigIntegerField(null=True)
    produced_sum = models.BigIntegerField(null=True)


class LagMark(models.Model):
    """How far something of this has been done: the last minute of a cluster, or all hours that begin before `at`."""

    name = models.CharField(max_length=64, primary_key=True)
    at = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.name} up to {self.at}"


class ExpiringUnread(models.Model):
    """A time in which records that a group had not read were about to expire, or did: `lag.expiry`.

    It outlives the group and the topic. Reached through an instance that was looked up in its organisation's scope.
    """

    instance = models.CharField(max_length=32)
    digest = models.CharField(max_length=32)  # of group and topic: both names may be longer than what an index takes
    group = models.CharField(max_length=1000)
    topic = models.CharField(max_length=249)
    messages = models.BigIntegerField()  # that were unread when it was noticed
    expires_at = models.DateTimeField()  # the oldest of them, at the earliest, as it was then
    is_by_size = models.BooleanField(default=False, db_default=False)  # then it is an estimate
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # null: they still are

    class Meta:
        """Once at a time, whoever looks; the timeline reads it by instance and time."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["instance", "digest"], condition=models.Q(ended_at=None), name="one_expiry_at_a_time"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["instance", "began_at"], name="expiring_by_beginning"),
            models.Index(fields=["instance", "ended_at"], name="expiring_by_end"),
            models.Index(fields=["ended_at"], name="expiring_that_ended"),
        ]

    def __str__(self) -> str:
        return f"unread of a group of {self.instance} from {self.began_at:%Y-%m-%d %H:%M:%S}"


class GroupRebalances(models.Model):
    """The rebalances of a consumer group that were seen in an hour, once a minute at most: `lag.rebalances`.

    It outlives the group. Reached through an instance that was looked up in its organisation's scope.
    """

    instance = models.CharField(max_length=32)
    digest = models.CharField(max_length=32)  # of the group: its name may be longer than what an index takes
    group = models.CharField(max_length=1000)
    hour = models.DateTimeField()  # its beginning
    times = models.IntegerField()
    began_at = models.DateTimeField()  # when the first was seen
    seen_at = models.DateTimeField()  # and the last

    class Meta:
        """Once an hour, whoever looks; the timeline reads it by instance and time."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "digest", "hour"], name="one_row_per_group_and_hour")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["instance", "began_at"], name="rebalances_by_beginning"),
            models.Index(fields=["began_at"], name="rebalances_by_age"),
        ]

    def __str__(self) -> str:
        return f"a group of {self.instance}, {self.times} times in the hour of {self.hour:%Y-%m-%d %H:%M}"
