"""Usage facts. The stream job writes these tables by DB-API (pipeline/tables.py); Django makes and reads them.

None has an `organisation`: the job knows instances only by name. Selectors reach usage through an instance that was
looked up in its organisation's scope.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from controlplane.clusters.models import Journal
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from quota.contracts.usage import LONGEST_USER


class UsageMaximum(models.Model):
    """The largest counters that a broker's boot reported for a topic under an hour, and the record that said so."""

    instance = models.CharField(max_length=32)
    boot = models.CharField(max_length=64)
    topic = models.CharField(max_length=249)  # the tenant's name
    hour = models.CharField(max_length=20)  # "2026-11-21T09:00:00Z": as in the record; sorts as time does
    broker = models.IntegerField()
    produced_bytes = models.BigIntegerField()  # since the boot, as the two below
    consumed_bytes = models.BigIntegerField()
    stored_byte_seconds = models.BigIntegerField()
    # The largest of the same boot and topic in any earlier hour: the upsert keeps them right.
    produced_bytes_before = models.BigIntegerField(default=0, db_default=0)
    consumed_bytes_before = models.BigIntegerField(default=0, db_default=0)
    stored_byte_seconds_before = models.BigIntegerField(default=0, db_default=0)
    source_partition = models.IntegerField()  # of `__usage`
    source_offset = models.BigIntegerField()
    updated_at_ms = models.BigIntegerField()

    class Meta:
        """The unique index is what the upsert leans on; the other finds an instance's hours."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "boot", "topic", "hour"], name="one_maximum_per_key")
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["instance", "hour"])]

    def __str__(self) -> str:
        return f"{self.instance}/{self.topic} {self.hour} of boot {self.boot}"


class InstanceMaximum(models.Model):
    """The largest counters that a broker's boot reported for a whole instance under an hour: what belongs to no topic."""

    instance = models.CharField(max_length=32)
    boot = models.CharField(max_length=64)
    hour = models.CharField(max_length=20)  # as in UsageMaximum
    broker = models.IntegerField()
    wire_in_bytes = models.BigIntegerField()  # since the boot, as the four below
    wire_out_bytes = models.BigIntegerField()
    requests = models.BigIntegerField()
    loop_us = models.BigIntegerField()
    throttled_ms = models.BigIntegerField()
    # The largest of the same boot in any earlier hour: the upsert keeps them right.
    wire_in_bytes_before = models.BigIntegerField(default=0, db_default=0)
    wire_out_bytes_before = models.BigIntegerField(default=0, db_default=0)
    requests_before = models.BigIntegerField(default=0, db_default=0)
    loop_us_before = models.BigIntegerField(default=0, db_default=0)
    throttled_ms_before = models.BigIntegerField(default=0, db_default=0)
    source_partition = models.IntegerField()  # of `__usage`
    source_offset = models.BigIntegerField()
    updated_at_ms = models.BigIntegerField()

    class Meta:
        """The unique index is what the upsert leans on; the other finds an instance's hours."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "boot", "hour"], name="one_maximum_per_instance_key")
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["instance", "hour"], name="hours_of_an_instance")]

    def __str__(self) -> str:
        return f"{self.instance} {self.hour} of boot {self.boot}"


class UserMaximum(models.Model):
    """The largest counters that a broker's boot reported for a user of an instance under an hour.

    `user_name` is as the record tells it (`quota.contracts.usage`): empty of connections that did not sign in. `user` alone is a
    word of SQL.
    """

    instance = models.CharField(max_length=32)
    boot = models.CharField(max_length=64)  # with a generation behind it
    user_name = models.CharField(max_length=LONGEST_USER)
    hour = models.CharField(max_length=20)  # as in UsageMaximum
    broker = models.IntegerField()
    wire_in_bytes = models.BigIntegerField()  # since the boot, as the two below
    wire_out_bytes = models.BigIntegerField()
    requests = models.BigIntegerField()
    # The largest of the same boot and user in any earlier hour: the upsert keeps them right.
    wire_in_bytes_before = models.BigIntegerField(default=0, db_default=0)
    wire_out_bytes_before = models.BigIntegerField(default=0, db_default=0)
    requests_before = models.BigIntegerField(default=0, db_default=0)
    source_partition = models.IntegerField()  # of `__usage`
    source_offset = models.BigIntegerField()
    updated_at_ms = models.BigIntegerField()

    class Meta:
        """The unique index is what the upsert leans on; the other finds an instance's hours."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "boot", "user_name", "hour"], name="one_maximum_per_user_key")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["instance", "hour"], name="hours_of_users"),
            models.Index(fields=["instance", "user_name", "hour"], name="hours_of_a_user"),  # of all its generations
        ]

    def __str__(self) -> str:
        return f"{self.user_name!r} of {self.instance} {self.hour} of boot {self.boot}"


class Fold(models.Model):
    """How far days are folded, and why no further: one row (pipeline/folded.py)."""

    folded_to = models.CharField(max_length=20, blank=True, default="", db_default="")  # an hour: a day's beginning
    swept_to = models.CharField(max_length=20, blank=True, default="", db_default="")  # key rows before it are deleted
    # The pass that deletes them, as far as it has come; "": none is under way.
    sweep_to = models.CharField(max_length=20, blank=True, default="", db_default="")
    sweep_source = models.IntegerField(default=0, db_default=0)
    sweep_id = models.BigIntegerField(default=0, db_default=0)
    # What the last look found.
    looked_at_ms = models.BigIntegerField(null=True)
    reason = models.TextField(
        blank=True, default="", db_default=""
    )  # why the next day is not folded; empty: none is due
    kept = models.JSONField(default=dict, db_default={})  # key rows by table, as of counted_at_ms
    counted_at_ms = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"folded to {self.folded_to or 'nowhere'}"


class FoldedHour(models.Model):
    """What an instance used in an hour of a day that is folded: all topics, brokers and boots together."""

    instance = models.CharField(max_length=32)
    hour = models.CharField(max_length=20)  # as in UsageMaximum
    produced_bytes = models.BigIntegerField()
    consumed_bytes = models.BigIntegerField()
    stored_byte_seconds_millions = models.BigIntegerField()  # whole millions, since the sum may pass 63 bits
    stored_byte_seconds_rest = models.BigIntegerField()

    class Meta:
        """One a key."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "hour"], name="one_folded_hour")
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.hour}"


class FoldedTopicDay(models.Model):
    """What a topic used on a day that is folded."""

    instance = models.CharField(max_length=32)
    topic = models.CharField(max_length=249)
    day = models.CharField(max_length=10)  # "2026-11-21"
    produced_bytes = models.BigIntegerField()
    consumed_bytes = models.BigIntegerField()
    stored_byte_seconds_millions = models.BigIntegerField()  # as in FoldedHour
    stored_byte_seconds_rest = models.BigIntegerField()

    class Meta:
        """One a key; the other index finds an instance's days."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "topic", "day"], name="one_folded_topic_day")
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["instance", "day"], name="folded_topic_days")]

    def __str__(self) -> str:
        return f"{self.instance}/{self.topic} {self.day}"


class FoldedInstanceHour(models.Model):
    """What was counted of a whole instance in an hour of a day that is folded."""

    instance = models.CharField(max_length=32)
    hour = models.CharField(max_length=20)  # as in UsageMaximum
    wire_in_bytes = models.BigIntegerField()
    wire_out_bytes = models.BigIntegerField()
    requests = models.BigIntegerField()
    loop_us = models.BigIntegerField()
    throttled_ms = models.BigIntegerField()

    class Meta:
        """One a key."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "hour"], name="one_folded_instance_hour")
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.hour}"


class FoldedUserHour(models.Model):
    """What all users of an instance moved on the wire in an hour of a day that is folded."""

    instance = models.CharField(max_length=32)
    hour = models.CharField(max_length=20)  # as in UsageMaximum
    wire_in_bytes = models.BigIntegerField()
    wire_out_bytes = models.BigIntegerField()
    requests = models.BigIntegerField()

    class Meta:
        """One a key."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "hour"], name="one_folded_user_hour")
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.hour}"


class FoldedUserDay(models.Model):
    """What a user of an instance moved on the wire on a day that is folded."""

    instance = models.CharField(max_length=32)
    user_name = models.CharField(max_length=LONGEST_USER)  # as in UserMaximum
    day = models.CharField(max_length=10)  # "2026-11-21"
    wire_in_bytes = models.BigIntegerField()
    wire_out_bytes = models.BigIntegerField()
    requests = models.BigIntegerField()

    class Meta:
        """One a key; the other index finds an instance's days."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "user_name", "day"], name="one_folded_user_day")
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["instance", "day"], name="folded_user_days")]

    def __str__(self) -> str:
        return f"{self.user_name!r} of {self.instance} {self.day}"


class StagedMaximum(models.Model):
    """A row for one of the three tables above, as an executor has put it here for a run to merge (pipeline/maxima.py)."""

    run = models.CharField(max_length=32)
    cluster = models.CharField(max_length=64)  # whose stream it is
    kind = models.CharField(max_length=8)  # "topic", "instance", "user"
    instance = models.CharField(max_length=32)
    boot = models.CharField(max_length=64)
    name = models.CharField(max_length=LONGEST_USER)  # of the topic or the user; empty of an instance
    hour = models.CharField(max_length=20)
    broker = models.IntegerField()
    # Those of its kind; the others are 0.
    produced_bytes = models.BigIntegerField()
    consumed_bytes = models.BigIntegerField()
    stored_byte_seconds = models.BigIntegerField()
    wire_in_bytes = models.BigIntegerField()
    wire_out_bytes = models.BigIntegerField()
    requests = models.BigIntegerField()
    loop_us = models.BigIntegerField()
    throttled_ms = models.BigIntegerField()
    source_partition = models.IntegerField()  # of `__usage`
    source_offset = models.BigIntegerField()
    updated_at_ms = models.BigIntegerField()

    class Meta:
        """A task that is run again stages the same rows."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["run", "kind", "instance", "boot", "name", "hour"], name="one_staged_maximum_per_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.instance}/{self.name} {self.hour} of run {self.run}"


class Cap(models.Model):
    """Counters of a topic on a broker's boot that nobody may believe beyond some value: an operator has ruled it out.

    A maximum is only ever raised, so one that a damaged counter brought would stay. Capped before they are compared,
    records end in the same table in whatever order they come.
    """

    instance = models.CharField(max_length=32)
    boot = models.CharField(max_length=64)
    topic = models.CharField(max_length=249)
    produced_bytes = models.BigIntegerField(null=True)  # null: no cap
    consumed_bytes = models.BigIntegerField(null=True)
    stored_byte_seconds = models.BigIntegerField(null=True)
    reason = models.TextField()
    set_at = models.DateTimeField()
    set_by = models.CharField(max_length=254)

    class Meta:
        """The last one counts."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "boot", "topic"], name="one_cap_per_boot_and_topic")
        ]

    def __str__(self) -> str:
        return f"{self.instance}/{self.topic} of boot {self.boot}: {self.reason}"


class Statement(models.Model):
    """A broker's word that it has told all that it counted under an hour and before; in the order in which they were said.

    Those that say no more than a later one does, which is certain, are dropped (pipeline/statements.py).
    """

    cluster = models.CharField(max_length=64, default=DEFAULT_CLUSTER, db_default=DEFAULT_CLUSTER)  # its name
    broker = models.IntegerField()  # its id in that cluster
    hour = models.CharField(max_length=20)  # as in UsageMaximum
    boot = models.CharField(max_length=64)  # which says so
    after = models.TextField()  # boots before it, with commas between them
    said_at_ms = models.BigIntegerField()  # when it was written to `__usage`
    topic_id = models.CharField(max_length=36)
    source_partition = models.IntegerField()
    source_offset = models.BigIntegerField()

    class Meta:
        """What is read again is the same statement."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["topic_id", "source_partition", "source_offset"], name="one_statement_per_record"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["broker", "id"])]

    def __str__(self) -> str:
        return f"broker {self.broker} up to {self.hour}"


class Boot(models.Model):
    """A boot of a broker that has told usage: an hour that it lived in is not final before it is accounted for."""

    cluster = models.CharField(max_length=64, default=DEFAULT_CLUSTER, db_default=DEFAULT_CLUSTER)  # its name
    broker = models.IntegerField()
    boot = models.CharField(max_length=64)  # without the generation
    first_hour = models.CharField(max_length=20)  # under which it told anything, as in UsageMaximum
    last_hour = models.CharField(max_length=20)
    first_at_ms = models.BigIntegerField()  # when the first of it was written to `__usage`
    is_told = models.BooleanField(default=False, db_default=False)  # statements accounted for it that are dropped

    class Meta:
        """What is read again is the same boot."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["cluster", "broker", "boot"], name="one_row_per_boot")
        ]

    def __str__(self) -> str:
        return f"boot {self.boot} of broker {self.broker}"


class BrokerWaiver(models.Model):
    """An operator's word that usage need not wait for a broker: up to an hour, and beyond for as long as it is away."""

    cluster = models.CharField(max_length=64, default=DEFAULT_CLUSTER, db_default=DEFAULT_CLUSTER)  # its name
    broker = models.IntegerField()
    hour = models.CharField(max_length=20)  # the last one that had passed when it was said
    boot = models.CharField(max_length=64, blank=True, default="", db_default="")  # that may follow a gap
    reason = models.TextField()
    waited_for = models.TextField()  # what the broker had told then
    at = models.DateTimeField()
    by = models.CharField(max_length=254)

    def __str__(self) -> str:
        return f"broker {self.broker} up to {self.hour}: {self.reason}"


class Progress(models.Model):
    """How far the stream of a cluster has come: one row for each partition of its `__usage`.

    Who wants to know whether usage is complete up to some moment asks `selectors.completeness`.
    """

    cluster = models.CharField(max_length=64, default=DEFAULT_CLUSTER, db_default=DEFAULT_CLUSTER)  # its name
    partition = models.IntegerField()
    topic_id = models.CharField(max_length=36)  # Kafka's: offsets of a topic that was made again are others
    next_offset = models.BigIntegerField()  # the first record that is not in the database
    end_offset = models.BigIntegerField()  # where the partition ended when the job looked last
    looked_at_ms = models.BigIntegerField()
    # All that had been written to the partition before this moment is in the database; null: not known yet.
    complete_to_ms = models.BigIntegerField(null=True)

    class Meta:
        """Partitions are numbered within a topic, which each cluster has."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["cluster", "partition"], name="progress_per_cluster_and_partition")
        ]

    def __str__(self) -> str:
        return f"{self.partition}: {self.next_offset} of {self.end_offset}"


class Loss(models.Model):
    """Records of `__usage` that were gone before they were read. Usage may be missing until an operator has judged it."""

    cluster = models.CharField(max_length=64, default=DEFAULT_CLUSTER, db_default=DEFAULT_CLUSTER)  # its name
    kind = models.CharField(max_length=16)  # see pipeline/positions.py
    partition = models.IntegerField()  # -1: the whole topic
    start_offset = models.BigIntegerField()
    end_offset = models.BigIntegerField()
    topic_id = models.CharField(max_length=36)
    sentence = models.TextField()
    found_at_ms = models.BigIntegerField()
    settled_at = models.DateTimeField(null=True)  # null: open
    settled_by = models.CharField(max_length=254, default="", db_default="")

    def __str__(self) -> str:
        return self.sentence


class PipelineStatus(models.Model):
    """What the stream job of a cluster says of itself: one row for each."""

    cluster = models.CharField(
        max_length=64, default=DEFAULT_CLUSTER, db_default=DEFAULT_CLUSTER, unique=True
    )  # its name
    query = models.CharField(max_length=64)  # Spark's id of the query; lives as long as the checkpoint
    batch = models.BigIntegerField()
    records = models.BigIntegerField()
    bad_records = models.BigIntegerField()
    early_records = models.BigIntegerField(default=0, db_default=0)  # told under an hour that had not come
    last_record_at_ms = models.BigIntegerField(null=True)
    started_at_ms = models.BigIntegerField()
    seen_at_ms = models.BigIntegerField()  # the last sign of life
    problem = models.TextField()  # what keeps it from working; empty: nothing
    # As Spark's listener told it. A batch that hangs leaves these as they are, while signs of life go on.
    moved_at_ms = models.BigIntegerField(null=True)  # a batch ended, or there was nothing to do
    batch_ms = models.BigIntegerField(null=True)  # how long the last batch took
    batch_records = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"batch {self.batch}, {self.records} records"


class JobRun(models.Model):
    """A run of a job of the pipeline, as the job itself tells it (pipeline/runs.py); or one that somebody has asked for."""

    job = models.CharField(max_length=32)  # one of pipeline/schedule.py
    what = models.CharField(max_length=64, blank=True)  # a day; empty: whatever is due
    state = models.CharField(max_length=16)  # waiting, running, succeeded, failed
    asked_at_ms = models.BigIntegerField()
    asked_by = models.CharField(max_length=254, blank=True)  # empty: the schedule, or whoever starts programs
    started_at_ms = models.BigIntegerField(null=True)
    seen_at_ms = models.BigIntegerField(null=True)  # the last sign of life
    ended_at_ms = models.BigIntegerField(null=True)
    row_count = models.BigIntegerField(default=0, db_default=0)  # that it has written
    done_to_ms = models.BigIntegerField(null=True)  # up to when the job has done its work; null: not known
    reason = models.TextField(blank=True)  # why it failed

    class Meta:
        """What a page shows of a job, and what waits."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["job", "started_at_ms"]),
            models.Index(fields=["state"]),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.job}: {self.state}"


class Reconciliation(models.Model):
    """Hours that were recomputed from `usage_raw` and compared with what is known (pipeline/jobs/reconcile.py)."""

    start_hour = models.CharField(max_length=20)  # as in UsageMaximum
    end_hour = models.CharField(max_length=20)  # not included
    at_ms = models.BigIntegerField()
    compared = models.BigIntegerField()  # hours of a topic on a boot, and hours of invoices
    different = models.BigIntegerField()  # counters that are not the same
    raised = models.BigIntegerField()  # keys that were put into the database again
    # Clusters that were left out, by name, since their table of raw records was not there, or begins after these hours.
    gone = models.JSONField(default=list, db_default=[])
    begins_later = models.JSONField(default=list, db_default=[])
    with_late = models.BooleanField(default=True, db_default=True)  # all that had come late was looked for, of any day

    class Meta:
        """The last one first."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["at_ms"], name="reconciled_at")]

    def __str__(self) -> str:
        return f"{self.start_hour} to {self.end_hour}: {self.different} differ"


class Difference(models.Model):
    """A counter that is not what the records say. Of each run so many are kept (pipeline/reconcile_tables.py)."""

    reconciliation = models.ForeignKey(Reconciliation, models.CASCADE, related_name="differences")
    against = models.CharField(max_length=16)  # database, invoices
    instance = models.CharField(max_length=32)
    hour = models.CharField(max_length=20)
    boot = models.CharField(max_length=64, blank=True)  # empty: of all
    topic = models.CharField(max_length=249, blank=True)  # empty: of all
    counter = models.CharField(max_length=32)
    recomputed = models.CharField(max_length=40)  # a whole number; sums may be longer than 63 bits
    known = models.CharField(max_length=40)

    def __str__(self) -> str:
        return f"{self.instance} {self.hour} {self.counter}: {self.recomputed}, {self.against} has {self.known}"


class ElasticMinute(models.Model):
    """What an instance carried above its bought limit in a minute, as the master of an epoch says (`quota.contracts.elastic`)."""

    instance = models.CharField(max_length=32)
    direction = models.CharField(max_length=8)
    epoch = models.BigIntegerField()
    minute = models.CharField(max_length=20)  # "2026-11-21T09:03:00Z": sorts as time does
    bytes = models.BigIntegerField()

    class Meta:
        """One a minute and master; hours are read by instance, and old ones go."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["instance", "minute", "direction", "epoch"], name="one_row_per_elastic_minute"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["minute"], name="elastic_minutes_by_age")]

    def __str__(self) -> str:
        return f"{self.instance} {self.direction} {self.minute}: {self.bytes}"


class ElasticJournal(Journal):
    """Of what was carried above the bought bandwidth."""

    class Meta:
        """Masters are numbered within a cluster."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["cluster", "master"], name="elastic_journal_per_master")
        ]
