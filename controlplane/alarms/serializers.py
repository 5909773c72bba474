"""Alarms, receivers, events and messages as JSON. What a rule may say is judged in rules.py; here are only shapes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.alarms.delivery.targets import LONGEST_URL
from controlplane.alarms.events import KINDS as EVENTS_OF_INSTANCES
from controlplane.alarms.machine import EVENT_KINDS, PHASES
from controlplane.alarms.models import DeliveryKind, DeliveryState, Receiver, ReceiverKind
from controlplane.alarms.rules import (
    COMPARISONS,
    FIGURES,
    LEAST_REPEAT_S,
    LONGEST_DURATION_S,
    LONGEST_GROUP,
    MISSINGS,
    MOST_RECEIVERS,
    MOST_REPEAT_S,
    OF_GROUPS,
    OF_TOPICS,
    WATCHED,
)
from controlplane.api.serializers import (
    NumberField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from controlplane.core import sums
from controlplane.core.text import LONGEST_NAME

LONGEST_CODE = 64
LONGEST_TOPIC = 249
_OF_A_FIGURE = "of a figure; a health reason is there or not"
_MOST = f"0 to {max(figure.most for figure in FIGURES.values())}, of a percentage, a level or a share of time less"
_THRESHOLD = f"{_OF_A_FIGURE}; in the figure's unit; {_MOST}"
_GROUP = f"the consumer group whose figure it is, of {' and '.join(OF_GROUPS)}; of the others null"

_TOPIC = f"the topic whose figure it is, of {' and '.join(OF_TOPICS)}; of the others null"


class AlarmChangeSerializer(StrictSerializer):
    """PATCH: any of them. `receivers` that are given replace those before."""

    not_empty = True

    name = StrictCharField(max_length=LONGEST_NAME, required=False)
    watch = serializers.ChoiceField(choices=list(WATCHED), required=False, help_text="a health reason, or a figure")
    comparison = serializers.ChoiceField(choices=COMPARISONS, required=False, allow_null=True, help_text=_OF_A_FIGURE)
    threshold = NumberField(required=False, allow_null=True, help_text=_THRESHOLD)
    group = StrictCharField(
        max_length=LONGEST_GROUP, required=False, allow_null=True, trim_whitespace=False, help_text=_GROUP
    )
    topic = StrictCharField(max_length=LONGEST_TOPIC, required=False, allow_null=True, help_text=_TOPIC)
    duration_s = StrictIntegerField(
        min_value=0, max_value=LONGEST_DURATION_S, required=False, help_text="for so long it must hold; by default 0"
    )
    repeat_s = StrictIntegerField(
        min_value=LEAST_REPEAT_S,
        max_value=MOST_REPEAT_S,
        required=False,
        allow_null=True,
        help_text="while it fires, receivers are told again after so long; null: once",
    )
    tell_no_data = StrictBooleanField(
        required=False,
        help_text="whether receivers are told when there has been no value for 90 s, and when there is one again; by default "
        "false",
    )
    receivers = serializers.ListField(
        child=StrictCharField(max_length=20), max_length=MOST_RECEIVERS, required=False, help_text="ids"
    )
    enabled = StrictBooleanField(required=False, help_text="by default true")


class AlarmCreateSerializer(AlarmChangeSerializer):
    """POST."""

    not_empty = False

    name = StrictCharField(max_length=LONGEST_NAME)
    watch = serializers.ChoiceField(choices=list(WATCHED), help_text="a health reason, or a figure")


class AlarmSilenceSerializer(StrictSerializer):
    """Until when messages are held back."""

    until = serializers.DateTimeField(allow_null=True, help_text="at most 30 days away; null: messages come again")


class AlarmSerializer(serializers.Serializer[Any]):
    """An alarm: its rule, and how it is."""

    id = serializers.CharField()
    name = serializers.CharField()
    watch = serializers.ChoiceField(choices=list(WATCHED))
    comparison = serializers.ChoiceField(choices=COMPARISONS, allow_null=True)
    threshold = NumberField(allow_null=True)
    group = serializers.CharField(allow_null=True, help_text=_GROUP)
    topic = serializers.CharField(allow_null=True, help_text=_TOPIC)
    duration_s = serializers.IntegerField()
    repeat_s = serializers.IntegerField(allow_null=True)
    tell_no_data = serializers.BooleanField(help_text="whether receivers are told that there are no values")
    receivers = serializers.ListField(child=serializers.CharField())
    enabled = serializers.BooleanField()
    silenced_until = serializers.DateTimeField(allow_null=True)
    state = serializers.ChoiceField(choices=PHASES, source="phase")
    since = serializers.DateTimeField(help_text="of the state")
    firing_since = serializers.DateTimeField(
        allow_null=True, help_text="null: it does not fire. One that fires when its values go missing goes on firing"
    )
    value = NumberField(allow_null=True, help_text="the last one; of a health reason 1 or 0; null: there is none")
    value_of = serializers.SerializerMethodField(
        help_text="the group, or the broker's number, whose value it is, of a figure of any group or broker; else null"
    )
    missing = serializers.SerializerMethodField(
        help_text="why there is no value; null: there is one, or nobody has looked"
    )
    unit = serializers.CharField(source="rule.unit")
    looked_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    def get_value_of(self, row: Any) -> str | None:
        return row.value_of or None

    @extend_schema_field(serializers.ChoiceField(choices=MISSINGS, allow_null=True))
    def get_missing(self, row: Any) -> str | None:
        return row.missing or None


class AlarmPageSerializer(serializers.Serializer[Any]):
    """A page of alarms."""

    items = AlarmSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class AlarmEventSerializer(serializers.Serializer[Any]):
    """What happened to an alarm."""

    time = serializers.DateTimeField(source="at")
    kind = serializers.ChoiceField(choices=EVENT_KINDS)
    value = NumberField(allow_null=True)
    actor = serializers.CharField(help_text="who changed the rule, where that ended it; else empty")


class AlarmEventPageSerializer(serializers.Serializer[Any]):
    """A page of them, the newest first."""

    items = AlarmEventSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class EventSizesSerializer(serializers.Serializer[Any]):
    """The sizes of an instance."""

    bandwidth_mib_per_s = NumberField()
    storage_gib = NumberField()
    partitions = serializers.IntegerField()


class InstanceEventSerializer(serializers.Serializer[Any]):
    """Something that happened to an instance."""

    time = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=list(EVENTS_OF_INSTANCES))
    subject = serializers.CharField(
        source="told.subject",
        help_text="what it happened to: a reason, a kind of operation, an alarm, the instance, clients, a broker, a group",
    )
    object = serializers.CharField(
        source="told.object", help_text="its code or id; of throttling the direction; of unread records the topic"
    )
    actor = serializers.CharField(
        source="told.actor",
        help_text='an email, "system", "operator" for one of the service, or empty where nobody did it',
    )
    detail = serializers.SerializerMethodField(
        help_text="more about it: why an operation failed, what a policy did, what sizes were and are, when unread records may "
        "expire, or that some may have, how often a group rebalanced in that hour; or empty",
    )
    before = EventSizesSerializer(
        source="told.before", allow_null=True, help_text="of a resize; null: not known, or no resize"
    )
    after = EventSizesSerializer(source="told.after", allow_null=True, help_text="of a resize; else null")

    def get_detail(self, row: Any) -> str:
        return sums.shown(row.told.detail)


class InstanceEventPageSerializer(serializers.Serializer[Any]):
    """A page of them, the newest first."""

    items = InstanceEventSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class ReceiverCreateSerializer(StrictSerializer):
    """Who is told, and where."""

    name = StrictCharField(max_length=LONGEST_NAME)
    kind = serializers.ChoiceField(choices=ReceiverKind.choices)
    address = StrictCharField(max_length=LONGEST_URL, help_text="an e-mail address, or an https URL of a public host")


class ReceiverChangeSerializer(StrictSerializer):
    """PATCH. What kind it is stays."""

    not_empty = True

    name = StrictCharField(max_length=LONGEST_NAME, required=False)
    address = StrictCharField(
        max_length=LONGEST_URL,
        required=False,
        help_text="of the same kind. An e-mail address gets a code again; a webhook keeps its secret",
    )


class ReceiverConfirmSerializer(StrictSerializer):
    """What was sent to an e-mail address."""

    code = StrictCharField(max_length=LONGEST_CODE)


class ReceiverSerializer(serializers.Serializer[Any]):
    """A receiver of an instance's alarms."""

    id = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=ReceiverKind.choices)
    address = serializers.SerializerMethodField(
        help_text="a viewer sees of a webhook's address the host alone: the rest may be as good as a password"
    )
    confirmed = serializers.BooleanField(
        source="is_confirmed", help_text="whether messages go there: an e-mail address has to give back the code first"
    )
    previous_secret_until = serializers.DateTimeField(
        source="previous_until", allow_null=True, help_text="until then the secret before signs as well"
    )
    created_at = serializers.DateTimeField()

    def get_address(self, row: Receiver) -> str:
        return row.full_address if self.context.get("may_change") else row.address


class ReceiverSecretSerializer(ReceiverSerializer):
    """A receiver with its secret: shown where it is made, and never again."""

    secret = serializers.CharField(allow_null=True, help_text="of a webhook; null for an e-mail address")


class ReceiverPageSerializer(serializers.Serializer[Any]):
    """A page of receivers."""

    items = ReceiverSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class DeliverySerializer(serializers.Serializer[Any]):
    """A message to a receiver. Its id is in the message, the same at every attempt."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=DeliveryKind.choices)
    state = serializers.ChoiceField(choices=DeliveryState.choices)
    attempts = serializers.IntegerField()
    error = serializers.SerializerMethodField(help_text="of the last attempt; null: it went well, or there was none")
    next_attempt_at = serializers.SerializerMethodField(help_text="null: there is none")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_error(self, row: Any) -> str | None:
        return row.error or None

    def get_next_attempt_at(self, row: Any) -> str | None:
        return row.next_attempt_at.isoformat() if row.state == DeliveryState.WAITING else None


class DeliveryPageSerializer(serializers.Serializer[Any]):
    """A page of messages, the newest first."""

    items = DeliverySerializer(many=True)
    next = serializers.CharField(allow_null=True)
