"""Instances as JSON. Rules are in validation.py and whitelist.py; here are only shapes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.admission.models import ScheduledState
from controlplane.admission.rules import SIZES
from controlplane.api.serializers import (
    CidrsField,
    NumberField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from controlplane.core import sums
from controlplane.core.text import LONGEST_NAME
from controlplane.core.whitelist import whitelist_problems
from controlplane.health.serializers import HealthSerializer
from controlplane.instance_rest.prepaid_serializers import AtEndField, MonthsField
from controlplane.instances import windows
from controlplane.instances.models import InstanceState
from controlplane.instances.validation import (
    CONFIG_RULES,
    LEAST_MESSAGE_BYTES,
    LONGEST_WISHED,
    MOST_BANDWIDTH_MIB_PER_S,
    MOST_DEFAULT_PARTITIONS,
    MOST_MESSAGE_BYTES,
    MOST_OF_AN_OPERATORS_LIMIT,
    MOST_PARTITIONS,
    MOST_REPLICAS,
    MOST_STORAGE_GIB,
    MOST_SUPER_USERS,
    MOST_WISHED,
    RULES,
)
from controlplane.routes.serializers import RouteSerializer


class _RuledField(serializers.Field):  # type: ignore[type-arg]
    """A member whose rule is in validation.py: it is judged with the shapes, so that one answer names all that is wrong."""

    rules = RULES
    rule = ""

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(data)
        problem = self.rules[self.rule](value)
        if problem is not None:
            raise serializers.ValidationError(problem)
        return value


def _amount(kind: str, most: int) -> dict[str, Any]:
    """The published shape of what validation.py judges."""
    return {"type": kind, "minimum": 0, "exclusiveMinimum": True, "maximum": most}


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": LONGEST_NAME})
class NameField(_RuledField, StrictCharField):
    """1 to 128 printable characters, as names that people give have."""

    rule = "name"


@extend_schema_field(_amount("number", MOST_BANDWIDTH_MIB_PER_S))
class BandwidthField(_RuledField, NumberField):
    """What may be bought of bandwidth."""

    rule = "bandwidth_mib_per_s"


@extend_schema_field(_amount("number", MOST_STORAGE_GIB))
class StorageField(_RuledField, NumberField):
    """What may be bought of storage."""

    rule = "storage_gib"


@extend_schema_field(_amount("integer", MOST_PARTITIONS))
class PartitionsField(_RuledField, StrictIntegerField):
    """How many partitions may be bought."""

    rule = "partitions"


class WhitelistField(CidrsField):
    """A whitelist whose entries are judged with the shapes."""

    def to_internal_value(self, data: Any) -> list[Any]:
        cidrs = super().to_internal_value(data)
        problems = whitelist_problems(cidrs, field="")
        if problems and not problems[0].field:
            raise serializers.ValidationError(problems[0].detail)
        if problems:
            raise serializers.ValidationError({each.field.removeprefix("."): [each.detail] for each in problems})
        return cidrs


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


@extend_schema_field({"type": "boolean"})
class FlagField(_RuledField, StrictBooleanField):
    """Whether topics come into being by being named."""

    rules, rule = CONFIG_RULES, "auto_create_topics"


@extend_schema_field(_whole(1, MOST_DEFAULT_PARTITIONS))
class DefaultPartitionsField(_RuledField, StrictIntegerField):
    """Partitions of a topic that does not say."""

    rules, rule = CONFIG_RULES, "default_partitions"


@extend_schema_field(_whole(1, MOST_REPLICAS))
class DefaultReplicasField(_RuledField, StrictIntegerField):
    """Replicas of a topic that does not say."""

    rules, rule = CONFIG_RULES, "default_replication_factor"


@extend_schema_field(_whole(LEAST_MESSAGE_BYTES, MOST_MESSAGE_BYTES))
class MessageBytesField(_RuledField, StrictIntegerField):
    """The largest batch of a topic that does not say."""

    rules, rule = CONFIG_RULES, "max_message_bytes"


@extend_schema_field({"type": "boolean"})
class EveryoneField(_RuledField, StrictBooleanField):
    """What holds for a resource without ACLs."""

    rules, rule = CONFIG_RULES, "allow_everyone_if_no_acl_found"


@extend_schema_field({"type": "boolean"})
class AuditField(_RuledField, StrictBooleanField):
    """Whether brokers write down what happens."""

    rules, rule = CONFIG_RULES, "audit"


@extend_schema_field({"type": "array", "items": {"type": "string"}, "maxItems": MOST_SUPER_USERS})
class SuperUsersField(_RuledField, serializers.ListField):
    """Principals whom no ACL is asked for."""

    child = StrictCharField()
    rules, rule = CONFIG_RULES, "super_users"


class ConfigChangeSerializer(StrictSerializer):
    """What is not named stays as it is."""

    not_empty = True

    auto_create_topics = FlagField(required=False, help_text="whether a topic comes into being when a client names it")
    default_partitions = DefaultPartitionsField(required=False, help_text="of a topic that does not say")
    default_replication_factor = DefaultReplicasField(required=False, help_text="of a topic that does not say")
    max_message_bytes = MessageBytesField(
        required=False, help_text="the largest batch of records, as producers compress it, of a topic that does not say"
    )
    allow_everyone_if_no_acl_found = EveryoneField(
        required=False, help_text="who may use what has no ACL: true, everyone; false, super users alone"
    )
    super_users = SuperUsersField(required=False, help_text="principals who may do everything, such as User:admin")
    audit = AuditField(required=False, help_text="whether brokers write what happens to the topic __sluice_audit")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("must name one or more of its members")
        return attrs


class ConfigSerializer(serializers.Serializer[Any]):
    """What holds for the instance's topics that do not say, how its ACLs are meant, and whether it is audited."""

    auto_create_topics = serializers.BooleanField()
    default_partitions = serializers.IntegerField()
    default_replication_factor = serializers.IntegerField()
    max_message_bytes = serializers.IntegerField()
    allow_everyone_if_no_acl_found = serializers.BooleanField()
    super_users = serializers.ListField(child=serializers.CharField())
    audit = serializers.BooleanField()


CONFIRM_PRICE = (
    "the price is known: a purchase that costs more than a threshold is refused without it (price_unconfirmed)"
)


PROTECTION = "while it is on, nobody deletes the instance: deleting is refused (deletion_protected) until it is off"


WINDOW = (
    "when in a week scheduled changes and moves of partitions may happen that are asked for in the window; null: none, and "
    "nothing waits for one"
)


class MaintenanceWindowSerializer(StrictSerializer):
    """Each week from an hour of a day on."""

    day = serializers.ChoiceField(choices=windows.DAYS)
    hour_utc = StrictIntegerField(min_value=0, max_value=windows.LATEST_HOUR, help_text="its beginning")
    length_hours = StrictIntegerField(min_value=1, max_value=windows.LONGEST_HOURS, help_text="it may go on next day")


class WishedField(serializers.ListField):
    """Names, of which each counts once."""

    child = StrictCharField(max_length=LONGEST_WISHED)

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=MOST_WISHED, **options)


class PlacementWishSerializer(StrictSerializer):
    """Where a new instance is to be. Refused (no_place) where no cluster that takes new ones is so; nothing moves it later."""

    zones = WishedField(help_text="its cluster has brokers in each of them; GET /zones has their names")
    apart_from = WishedField(help_text="instances of the organisation that its cluster must not have")


class PlacementSerializer(serializers.Serializer[Any]):
    """What was wished when it was bought."""

    zones = serializers.ListField(child=serializers.CharField(), default=list)
    apart_from = serializers.ListField(child=serializers.CharField(), default=list)


class InstanceCreateSerializer(StrictSerializer):
    """What a new instance is bought with: name, sizes, whitelist, config, protection, window, place."""

    name = NameField()
    bandwidth_mib_per_s = BandwidthField(help_text="for each direction")
    storage_gib = StorageField(help_text="all replicas together")
    partitions = PartitionsField(help_text="replicas included")
    whitelist = WhitelistField(help_text="who may connect; [] lets nobody in, 0.0.0.0/0 and ::/0 everyone")
    config = ConfigChangeSerializer(required=False)
    deletion_protection = StrictBooleanField(required=False, help_text=PROTECTION)
    maintenance_window = MaintenanceWindowSerializer(required=False, allow_null=True, help_text=WINDOW)
    prepaid_months = MonthsField(
        required=False,
        help_text="so many months are paid in advance, from its opening on; left out: it is paid by the hour",
    )
    prepaid_at_end = AtEndField(required=False)
    placement = PlacementWishSerializer(required=False, help_text="where it is to be; left out: wherever there is room")
    confirm_price = StrictBooleanField(required=False, help_text=CONFIRM_PRICE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """What is paid by the hour has no end."""
        if "prepaid_at_end" in attrs and "prepaid_months" not in attrs:
            raise serializers.ValidationError({"prepaid_at_end": "is of what is paid in advance: give prepaid_months"})
        return attrs


class InstanceChangeSerializer(StrictSerializer):
    """Name, sizes, members of config, protection or window; what is left out stays."""

    not_empty = True

    name = NameField(required=False)
    bandwidth_mib_per_s = BandwidthField(required=False)
    storage_gib = StorageField(required=False)
    partitions = PartitionsField(required=False)
    config = ConfigChangeSerializer(required=False)
    deletion_protection = StrictBooleanField(required=False, help_text=PROTECTION)
    maintenance_window = MaintenanceWindowSerializer(required=False, allow_null=True, help_text=WINDOW)
    accept_full_storage = StrictBooleanField(
        required=False,
        help_text="less storage than is used is meant: producing will be refused until topics are deleted or records expire",
    )
    confirm_price = StrictBooleanField(required=False, help_text=CONFIRM_PRICE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Some change is asked for."""
        words = {"accept_full_storage", "confirm_price"}
        if attrs and set(attrs) <= words:
            raise serializers.ValidationError(dict.fromkeys(attrs, "is no change by itself"))
        return attrs


class ScheduledChangeCreateSerializer(StrictSerializer):
    """Sizes, one or more, and from when on: at a moment, or in the next maintenance window."""

    at = serializers.DateTimeField(required=False, help_text="to come, and within 30 days")
    in_next_window = StrictBooleanField(
        required=False, help_text="in place of `at`: when the maintenance window of the instance opens next"
    )
    bandwidth_mib_per_s = BandwidthField(required=False)
    storage_gib = StorageField(required=False)
    partitions = PartitionsField(required=False)
    accept_full_storage = StrictBooleanField(
        required=False,
        help_text="less storage than is used is meant: producing will be refused until topics are deleted or records expire",
    )
    confirm_price = StrictBooleanField(required=False, help_text=CONFIRM_PRICE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Some size is named."""
        if not set(attrs) & set(SIZES):
            raise serializers.ValidationError({"at": f"is no change by itself: give one or more of {', '.join(SIZES)}"})
        if ("at" in attrs) == attrs.get("in_next_window", False):
            raise serializers.ValidationError({"at": "give a moment, or in_next_window"})
        return attrs


class InstanceDestroySerializer(StrictSerializer):
    """A word that it is meant."""

    name = StrictCharField(help_text="the instance's name, whole")


class OperatorsLimitField(StrictIntegerField):
    """A limit that plans do not sell."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=MOST_OF_AN_OPERATORS_LIMIT, allow_null=True, **options)


class OperatorsLimitsSerializer(StrictSerializer):
    """PUT of the limits that operators set. null is unlimited, 0 blocks; what is not named gets its default."""

    topics = OperatorsLimitField(required=False, help_text="how many; by default unlimited")
    requests_per_s = OperatorsLimitField(required=False, help_text="over all brokers; by default unlimited")
    broker_time_ms_per_s = OperatorsLimitField(
        required=False, help_text="over all brokers; by default as much as its bandwidth needs"
    )
    open_transactions = OperatorsLimitField(
        required=False, help_text="at a time, over all brokers; by default by its bandwidth"
    )
    transactional_ids = OperatorsLimitField(required=False, help_text="over all brokers; by default by its bandwidth")
    transaction_timeout_ms = OperatorsLimitField(
        required=False,
        help_text="the longest that a producer may ask for; by default 15 minutes; null: the brokers' own",
    )


class LimitsSerializer(serializers.Serializer[Any]):
    """What is in force beside the limits of the instance. null is unlimited."""

    topics = serializers.IntegerField(allow_null=True)
    requests_per_s = serializers.IntegerField(allow_null=True, help_text="over all brokers")
    broker_time_ms_per_s = serializers.IntegerField(
        allow_null=True,
        help_text="milliseconds a second that all brokers together may work for the instance; its requests wait beyond it",
    )
    open_transactions = serializers.IntegerField(
        allow_null=True, help_text="at a time, over all brokers; one too many does not begin (POLICY_VIOLATION)"
    )
    transactional_ids = serializers.IntegerField(
        allow_null=True, help_text="over all brokers; a new one too many is refused (POLICY_VIOLATION)"
    )
    transaction_timeout_ms = serializers.IntegerField(
        allow_null=True,
        help_text="the longest transaction.timeout.ms (INVALID_TRANSACTION_TIMEOUT beyond it); null: the brokers' own",
    )


class WhitelistSerializer(StrictSerializer):
    """PUT of an instance's whitelist."""

    cidrs = CidrsField(help_text="[] lets nobody in")


class WhitelistChangeSerializer(StrictSerializer):
    """PATCH of an instance's whitelist."""

    add = CidrsField(required=False, help_text="let in beside those who are; what is there already stays")
    remove = CidrsField(required=False, help_text="let in no more; each has to be on the list as it stands there")


class SentenceField(serializers.CharField):
    """A sentence; null instead of none."""

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return sums.shown(super().to_representation(value)) or None


class ScheduledChangeSerializer(serializers.Serializer[Any]):
    """A change of sizes that is made later, or was."""

    id = serializers.CharField()
    at = serializers.DateTimeField()
    bandwidth_mib_per_s = NumberField(source="changes.bandwidth_mib_per_s", default=None, allow_null=True)
    storage_gib = NumberField(source="changes.storage_gib", default=None, allow_null=True)
    partitions = serializers.IntegerField(
        source="changes.partitions", default=None, allow_null=True, help_text="null, as of the others: it stays"
    )
    state = serializers.ChoiceField(choices=ScheduledState.choices)
    operation_id = SentenceField(allow_null=True, help_text="what brings it to the brokers, once it has begun")
    problem = SentenceField(allow_null=True, help_text="why it was refused at its time, or is not made yet")
    actor = serializers.CharField(help_text="who asked for it: an email")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="when it was begun, refused or cancelled")


class ScheduledChangePageSerializer(serializers.Serializer[Any]):
    """Scheduled changes of an instance, a page at a time."""

    items = ScheduledChangeSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class InstanceSerializer(serializers.Serializer[Any]):
    """An instance with its addresses, its health and its use."""

    id = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=InstanceState.choices)
    bootstrap = serializers.CharField(
        allow_null=True,
        help_text="host:port,… of the default route, or the oldest; null before addresses are allocated",
    )
    routes = RouteSerializer(many=True)
    bandwidth_mib_per_s = NumberField()
    storage_gib = NumberField()
    partitions = serializers.IntegerField()
    config = ConfigSerializer()
    deletion_protection = serializers.BooleanField(help_text=PROTECTION)
    maintenance_window = MaintenanceWindowSerializer(allow_null=True, help_text=WINDOW)
    placement = PlacementSerializer(help_text="what was wished of the place when it was bought")
    zones = serializers.ListField(
        child=serializers.CharField(), source="cluster.zones", help_text="where its brokers are; empty: it is not told"
    )
    limits = LimitsSerializer()
    storage_used_bytes = serializers.IntegerField(allow_null=True, help_text="null while the master is away")
    health = HealthSerializer(allow_null=True, help_text="how it is, and why; null unless it is running")
    problem = SentenceField(allow_null=True, help_text="why a change is not in force yet; null: nothing is the matter")
    whitelist = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    isolated_at = serializers.DateTimeField(allow_null=True, help_text="when it was deleted; null: it was not")
    destroys_at = serializers.DateTimeField(
        allow_null=True,
        help_text="until when it can be restored, and then its data are deleted; null: it is not isolated",
    )


class InstancePageSerializer(serializers.Serializer[Any]):
    """An organisation's instances, a page at a time."""

    items = InstanceSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class InstanceNameSerializer(serializers.Serializer[Any]):
    """What an instance is called, and its id."""

    id = serializers.CharField()
    name = serializers.CharField()


class InstanceNamePageSerializer(serializers.Serializer[Any]):
    """Names of instances, a page at a time."""

    items = InstanceNameSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class CreatedSerializer(serializers.Serializer[Any]):
    """The new instance, and the operation that brings it up."""

    id = serializers.CharField()
    operation_id = serializers.CharField()


class AcceptedSerializer(serializers.Serializer[Any]):
    """The answer to a change that takes its time."""

    operation_id = serializers.CharField()


class BrokerShareSerializer(serializers.Serializer[Any]):
    """One broker's part of a limit, in bytes/s."""

    broker = serializers.IntegerField()
    leaders = serializers.IntegerField(help_text="partitions of the instance that it leads")
    initial_share = serializers.IntegerField(allow_null=True)
    flow = serializers.IntegerField()
    allocation = serializers.IntegerField(allow_null=True)


class DirectionSerializer(serializers.Serializer[Any]):
    """Producing or consuming: the limit, and what each broker has of it."""

    limit = serializers.IntegerField(allow_null=True, help_text="bytes/s; null: unlimited")
    branch = serializers.CharField(help_text="which branch of the algorithm decided")
    brokers = BrokerShareSerializer(many=True)


class BrokerTimeShareSerializer(serializers.Serializer[Any]):
    """One broker's part of the broker time, in milliseconds a second."""

    broker = serializers.IntegerField()
    flow = serializers.FloatField(help_text="used")
    allocation = serializers.FloatField(allow_null=True)


class BrokerTimeSerializer(serializers.Serializer[Any]):
    """What brokers work for the instance."""

    limit = serializers.FloatField(help_text="milliseconds a second over all brokers")
    branch = serializers.CharField(help_text="which branch of the algorithm decided")
    brokers = BrokerTimeShareSerializer(many=True)


class TransactionCountsSerializer(serializers.Serializer[Any]):
    """Transactions and transactional ids over all brokers, a second or two ago."""

    open = serializers.IntegerField(help_text="transactions that have begun and have not ended in every partition")
    open_limit = serializers.IntegerField(allow_null=True, help_text="null: unlimited")
    ids = serializers.IntegerField(help_text="transactional ids: they go when nobody has used them for 7 days")
    ids_limit = serializers.IntegerField(allow_null=True, help_text="null: unlimited")


class AllocationSerializer(serializers.Serializer[Any]):
    """How the limit is shared out now, as the active master tells it."""

    produce = DirectionSerializer()
    consume = DirectionSerializer()
    storage_used_bytes = serializers.IntegerField()
    storage_full = serializers.BooleanField(help_text="producing is refused")
    partitions_without_leader = serializers.IntegerField(allow_null=True, help_text="null: an older master")
    partitions_under_replicated = serializers.IntegerField(allow_null=True, help_text="null: an older master")
    connections = serializers.IntegerField()
    broker_time = BrokerTimeSerializer(allow_null=True, help_text="null: there is no limit of it, or an older master")
    transactions = TransactionCountsSerializer(allow_null=True, help_text="null: an older master")
