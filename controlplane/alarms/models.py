"""Alarms with the state they are in, what happened to them, who is told, and the messages."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.alarms.machine import Condition, Phase
from controlplane.alarms.rules import Comparison, Rule
from controlplane.core.errors import Unavailable
from controlplane.core.scope import TenantManager
from controlplane.core.sealed import opened
from controlplane.sealing.fields import SealedField


class ReceiverKind(models.TextChoices):
    """How a receiver is told."""

    EMAIL = "email"
    WEBHOOK = "webhook"


class Receiver(models.Model):
    """Somebody, or a program, that is told when alarms of an instance fire."""

    id = models.CharField(primary_key=True, max_length=20)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    name = models.CharField(max_length=128)
    kind = models.CharField(max_length=8, choices=ReceiverKind)
    address = models.CharField(max_length=500)  # an e-mail address; of a webhook where it is, and no more
    sealed_address = SealedField(default=b"", owner=("id",))  # of a webhook, all of it: it may be as good as a password
    sealed_code = SealedField(default=b"", owner=("id",))  # that confirms an e-mail address; empty: it has
    secret = SealedField(default=b"", owner=("id",), before="sluice webhook {id}")  # of a webhook
    previous_secret = SealedField(default=b"", owner=("id",), before="sluice webhook {id}")  # signs as well, until:
    previous_until = models.DateTimeField(null=True)
    tested_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    def __str__(self) -> str:
        return f"{self.name} of {self.instance_id}"

    @property
    def is_confirmed(self) -> bool:
        """Whether messages go there: whoever reads an e-mail address has said that they may."""
        return not self.sealed_code

    @property
    def full_address(self) -> str:
        """For whoever may change it. Where it cannot be opened, `address`: lists are shown, and messages say what is wrong."""
        try:
            return self.address_opened()
        except Unavailable:
            return self.address

    def address_opened(self) -> str:
        """Where messages go. Raises Unavailable."""
        lost = Unavailable("the address of this webhook cannot be read any more: make another receiver")
        return opened(self, "sealed_address", lost).decode() or self.address


class Alarm(models.Model):
    """A rule, and how it is. The rule is its tenant's, the rest is `evaluation`'s; both write under a lock on the row."""

    id = models.CharField(primary_key=True, max_length=20)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    name = models.CharField(max_length=128)
    watch = models.CharField(max_length=40)  # one of rules.WATCHED
    group = models.CharField(max_length=1000, null=True)  # noqa: DJ001  # of one of OF_GROUPS; null: it is the instance's
    topic = models.CharField(max_length=249, null=True)  # noqa: DJ001  # of one of OF_TOPICS, likewise
    comparison = models.CharField(max_length=8, null=True)  # noqa: DJ001  # null is no text: a reason is not compared
    threshold = models.FloatField(null=True)
    duration_s = models.PositiveIntegerField(default=0)
    repeat_s = models.PositiveIntegerField(null=True)  # null: told once
    tell_no_data = models.BooleanField(default=False, db_default=False)  # receivers are told that there are no values
    receivers = models.JSONField(default=list)  # their ids
    enabled = models.BooleanField(default=True)
    silenced_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)  # its events and messages outlive it

    phase = models.CharField(max_length=8, default=Phase.OK.value)
    since = models.DateTimeField()
    seen_at = models.DateTimeField()
    looked_at = models.DateTimeField(null=True)
    firing_since = models.DateTimeField(null=True)
    told = models.BooleanField(default=False)
    told_at = models.DateTimeField(null=True)
    told_no_data = models.BooleanField(default=False, db_default=False)
    # Receivers that were held back alone while others were told, with the last of machine.Telling that each was told.
    owed = models.JSONField(default=dict, db_default={})
    value = models.FloatField(null=True)  # the last one; null: there was none, or there is none now
    value_of = models.CharField(max_length=1000, blank=True, default="", db_default="")  # of any group, broker: whose
    missing = models.CharField(
        max_length=16, blank=True, default=""
    )  # rules.Missing: why there is none; empty: there is

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Evaluation asks for those that are looked at, instance by instance."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["instance", "deleted_at"])]

    def __str__(self) -> str:
        return f"{self.name} of {self.instance_id}"

    @property
    def rule(self) -> Rule:
        """What its tenant has said."""
        comparison = None if self.comparison is None else Comparison(self.comparison)
        return Rule(
            self.watch,
            comparison,
            self.threshold,
            self.duration_s,
            self.repeat_s,
            self.group,
            tells_no_data=self.tell_no_data,
            topic=self.topic,
        )

    @property
    def condition(self) -> Condition:
        """What the machine goes on from."""
        return Condition(
            self.since,
            self.seen_at,
            self.looked_at,
            Phase(self.phase),
            self.firing_since,
            self.told,
            self.told_at,
            self.told_no_data,
        )

    def take(self, condition: Condition) -> None:
        """Be as the machine says. It is the caller's to save."""
        self.phase, self.since, self.firing_since = condition.phase.value, condition.since, condition.firing_since
        self.seen_at, self.looked_at = condition.seen_at, condition.looked_at
        self.told, self.told_at = condition.told, condition.told_at
        self.told_no_data = condition.told_no_data


STATE = (
    "phase", "since", "seen_at", "looked_at", "firing_since", "told", "told_at", "told_no_data", "owed", "value", "value_of",
    "missing",
)  # fmt: skip
"""What `evaluation` writes of an alarm."""


class AlarmEvent(models.Model):
    """One thing that happened to an alarm, with the value at that moment. Never updated; kept for 90 days."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    alarm = models.ForeignKey(Alarm, models.CASCADE, related_name="+")
    name = models.CharField(max_length=128)  # the alarm's, then
    kind = models.CharField(max_length=8)  # machine.EventKind
    at = models.DateTimeField()
    value = models.FloatField(null=True)
    actor = models.CharField(max_length=254, blank=True, default="")  # who changed the rule, where that ended it

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Something happens once at a moment, whoever looks; lists are of an alarm, or of an instance, the newest first."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["alarm", "at", "kind"], name="one_event_at_a_moment")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["instance", "at"]),
            models.Index(fields=["at"]),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"


class DeliveryState(models.TextChoices):
    """What has become of a message."""

    WAITING = "waiting"  # not sent yet, or to be tried again
    SENT = "sent"  # the receiver, or the mail server, has taken it
    FAILED = "failed"  # given up; `error` says why


class DeliveryKind(models.TextChoices):
    """What a message is about."""

    ALARM = "alarm"
    BUDGET = "budget"  # of an organisation or an instance, which has reached a threshold
    TEST = "test"
    CONFIRM = "confirm"  # whether messages may come to an e-mail address


class Delivery(models.Model):
    """The outbox: a message to one receiver. Its id is the same at every attempt, so that a receiver knows it again."""

    id = models.CharField(primary_key=True, max_length=20)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    receiver = models.ForeignKey(Receiver, models.SET_NULL, null=True, related_name="+")
    address = models.CharField(max_length=500)  # the receiver's, as there
    event = models.ForeignKey(AlarmEvent, models.SET_NULL, null=True, related_name="+")
    kind = models.CharField(max_length=8, choices=DeliveryKind)
    document = models.JSONField()  # what it says: delivery.words
    state = models.CharField(max_length=8, choices=DeliveryState, default=DeliveryState.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    error = models.CharField(max_length=300, blank=True, default="")  # of the last attempt; empty: it went well
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """An event is told to a receiver once; the outbox is asked for what is due, receivers for their own."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["event", "receiver"], name="one_message_of_an_event")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["state", "next_attempt_at"]),
            models.Index(fields=["receiver", "created_at"]),
            models.Index(fields=["organisation", "kind", "created_at"]),
            models.Index(fields=["created_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.id} to {self.address} ({self.state})"


class ThrottledSpell(models.Model):
    """A time in which an instance's own limit made somebody wait again and again: intervals of the flight recorder, joined.

    Reached through an instance that was looked up in its organisation's scope, as the intervals are. Written by `throttling`.
    """

    instance = models.CharField(max_length=32)
    direction = models.CharField(max_length=8)  # produce, consume
    began_at = models.DateTimeField()
    until_at = models.DateTimeField(db_index=True)  # the end of the last interval that is known

    class Meta:
        """Once, whoever joins; the timeline reads it by instance and time."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "direction", "began_at"], name="one_throttled_spell")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["instance", "began_at"], name="throttled_spells_by_beginning"),
            models.Index(fields=["instance", "until_at"], name="throttled_spells_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.direction} from {self.began_at:%Y-%m-%d %H:%M:%S}"


class ThrottledMark(models.Model):
    """Up to when intervals have been joined. There is one row, whose key is 1."""

    id = models.SmallIntegerField(primary_key=True)
    at = models.BigIntegerField()  # seconds since 1970

    def __str__(self) -> str:
        return f"joined up to {self.at}"
