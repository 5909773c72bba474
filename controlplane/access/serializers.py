"""Users, ACLs, the answer to "may ...?" and the audit as JSON, with Kafka's words in capitals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.access import words
from controlplane.access.acls import MOST_AT_ONCE
from controlplane.access.passwords import LEAST_CHARACTERS, MOST_CHARACTERS
from controlplane.access.presets import Preset
from controlplane.access.trail import MOST_LOOKED_AT, AuditPage
from controlplane.access.users import EVERY_MECHANISM, LONGEST_KEEP_S
from controlplane.api.pagination import place_cursor
from controlplane.api.serializers import StrictBooleanField, StrictCharField, StrictIntegerField, StrictSerializer
from quota.contracts.acls import ANYTHING, LONGEST_NAME, Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.audit import MOST_TEXT, AuditKind, AuditRecord
from quota.contracts.users import LONGEST_NAME as LONGEST_USER_NAME
from quota.core.acl_filters import MATCH, AclFilter

LONGEST_HOST = 64
LONGEST_OUTCOME = MOST_TEXT
LONGEST_PRINCIPAL = LONGEST_NAME + len("User:")
MECHANISMS = [mechanism.value for mechanism in EVERY_MECHANISM]


class WordField(serializers.ChoiceField):
    """One of Kafka's words, as a string."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be a string")
        return super().to_internal_value(data)


class NameField(StrictCharField):
    """A name as clients have it, spaces too."""

    def __init__(self, longest: int = LONGEST_NAME, **options: Any) -> None:
        super().__init__(max_length=longest, trim_whitespace=False, **options)


class AclCreateSerializer(StrictSerializer):
    """One rule: who may, or may not, do what to which resource."""

    principal = NameField(LONGEST_PRINCIPAL, help_text="User:name, or User:* for everybody")
    host = StrictCharField(max_length=LONGEST_HOST, default=ANYTHING, help_text="*, an address, or a CIDR block")
    operation = WordField(choices=words.OPERATIONS)
    permission = WordField(choices=words.PERMISSIONS, default=Permission.ALLOW.name)
    resource_type = WordField(choices=words.RESOURCE_TYPES)
    resource_name = NameField(help_text="* with LITERAL: each of its type; the one of CLUSTER is kafka-cluster")
    pattern_type = WordField(choices=words.PATTERN_TYPES, default=PatternType.LITERAL.name)

    @staticmethod
    def acl(members: dict[str, Any]) -> Acl:
        """What was asked for, once it is valid."""
        return Acl(
            ResourceType[members["resource_type"]],
            PatternType[members["pattern_type"]],
            members["resource_name"],
            members["principal"],
            members["host"],
            AclOperation[members["operation"]],
            Permission[members["permission"]],
        )


class AclBatchSerializer(StrictSerializer):
    """Several at once: all of them come into force, or none."""

    items = serializers.ListField(child=AclCreateSerializer(), min_length=1, max_length=MOST_AT_ONCE)


class AclPresetSerializer(StrictSerializer):
    """The ACLs that a kind of program needs, as kafka-acls --producer and --consumer make them."""

    preset = WordField(choices=[preset.value for preset in Preset])
    principal = NameField(LONGEST_PRINCIPAL)
    topic = NameField()
    group = NameField(required=False, help_text="of a consumer, which needs one")
    host = StrictCharField(max_length=LONGEST_HOST, required=False)
    pattern_type = WordField(
        choices=words.PATTERN_TYPES,
        default=PatternType.LITERAL.name,
        help_text="of both names. PREFIXED: for topics to come, too",
    )


class AclFilterSerializer(StrictSerializer):
    """Which ACLs are meant: all members have to fit. What is left out, or ANY, takes anything."""

    not_empty = True

    principal = NameField(LONGEST_PRINCIPAL, required=False)
    host = StrictCharField(max_length=LONGEST_HOST, required=False)
    operation = WordField(choices=words.FILTER_OPERATIONS, required=False)
    permission = WordField(choices=words.FILTER_PERMISSIONS, required=False)
    resource_type = WordField(choices=words.FILTER_RESOURCE_TYPES, required=False)
    resource_name = NameField(required=False)
    pattern_type = WordField(
        choices=words.FILTER_PATTERN_TYPES,
        required=False,
        help_text="MATCH: all that a resource of this name has, by prefixes and * as well",
    )

    @staticmethod
    def wanted(members: dict[str, Any]) -> AclFilter:
        """The filter, once its members are valid."""

        def word(kind: type[Any], name: str) -> Any:
            said = members.get(name, words.ANY)
            return None if said == words.ANY else said if said == MATCH else kind[said]

        return AclFilter(
            resource_type=word(ResourceType, "resource_type"),
            pattern_type=word(PatternType, "pattern_type"),
            resource_name=members.get("resource_name"),
            principal=members.get("principal"),
            host=members.get("host"),
            operation=word(AclOperation, "operation"),
            permission=word(Permission, "permission"),
        )


class AclSerializer(serializers.Serializer[Any]):
    """One rule, as Kafka's AclBinding has it."""

    principal = serializers.CharField()
    host = serializers.CharField()
    operation = serializers.ChoiceField(choices=words.OPERATIONS, source="operation.name")
    permission = serializers.ChoiceField(choices=words.PERMISSIONS, source="permission.name")
    resource_type = serializers.ChoiceField(choices=words.RESOURCE_TYPES, source="resource_type.name")
    resource_name = serializers.CharField()
    pattern_type = serializers.ChoiceField(choices=words.PATTERN_TYPES, source="pattern_type.name")


class AclsSerializer(serializers.Serializer[Any]):
    """Those that were made, or deleted."""

    items = AclSerializer(many=True)


class AclPageSerializer(AclsSerializer):
    """A page of ACLs."""

    next = serializers.CharField(allow_null=True)


class AccessQuestionSerializer(StrictSerializer):
    """May somebody do something?"""

    source = StrictCharField(max_length=LONGEST_HOST, help_text="the address that he connects from")
    principal = NameField(
        LONGEST_PRINCIPAL, required=False, help_text="by default User:ANONYMOUS: nobody has logged in"
    )
    route = StrictCharField(max_length=64, required=False, help_text="by default the route called default")
    operation = WordField(choices=[word for word in words.OPERATIONS if word != AclOperation.ALL.name])
    resource_type = WordField(choices=words.RESOURCE_TYPES)
    resource_name = NameField()


class DecidingRuleSerializer(serializers.Serializer[Any]):
    """What decided."""

    kind = serializers.CharField(help_text=f"one of {', '.join(words.RULES)}")
    acl = AclSerializer(allow_null=True, help_text="of kind acl: which one")


class AccessAnswerSerializer(serializers.Serializer[Any]):
    """Whether he may, which rule says so, and why in a sentence."""

    allowed = serializers.BooleanField()
    rule = DecidingRuleSerializer()
    reason = serializers.CharField()


class AuditFilterSerializer(StrictSerializer):
    """Which records of the audit are wanted. All that is said has to fit."""

    kind = WordField(choices=words.AUDIT_KINDS, required=False)
    principal = NameField(LONGEST_PRINCIPAL, required=False, help_text="User:name, or a user's name")
    outcome = StrictCharField(
        max_length=LONGEST_OUTCOME,
        required=False,
        help_text="accepted, refused, success, failure, NONE (a request that was carried out), or one of Kafka's errors",
    )

    @staticmethod
    def wanted(members: dict[str, Any]) -> dict[str, Any]:
        """As `trail.AuditFilter` takes them."""
        kind = {"kind": AuditKind(members["kind"])} if "kind" in members else {}
        return {**members, **kind}


class AuditRecordSerializer(serializers.Serializer[Any]):
    """One thing that happened. What its kind has no use for is null."""

    time = serializers.SerializerMethodField(help_text="of the broker's clock")
    broker = serializers.IntegerField()
    kind = serializers.CharField(help_text=f"one of {', '.join(words.AUDIT_KINDS)}")
    outcome = serializers.CharField()
    source = serializers.CharField(help_text="the client's address")
    route = serializers.CharField()
    principal = serializers.CharField(allow_null=True)
    client_id = serializers.CharField(allow_null=True)
    api = serializers.CharField(allow_null=True, help_text="Kafka's name of the request")
    operation = serializers.CharField(allow_null=True, help_text="what was to be done, in the words of ACLs")
    resource = serializers.CharField(allow_null=True, help_text="such as TOPIC:orders")
    reason = serializers.CharField(allow_null=True, help_text="which rule has decided, in a sentence")
    mechanism = serializers.CharField(allow_null=True, help_text="of SASL, of a login")
    count = serializers.IntegerField(help_text="equal denials within a minute are told together")
    left_out = serializers.IntegerField(
        help_text="so many before this one were not written: there were too many at once"
    )

    def get_time(self, record: AuditRecord) -> datetime:
        """The moment, in UTC."""
        return datetime.fromtimestamp(record.time_ms / 1000, UTC)


class AuditPageSerializer(serializers.Serializer[Any]):
    """A page of the audit, the newest first."""

    items = AuditRecordSerializer(many=True, source="records")
    next = serializers.SerializerMethodField(help_text="null: there is nothing older")
    enabled = serializers.BooleanField(source="is_on", help_text="whether brokers write now: `audit` of the config")
    looked_at = serializers.IntegerField(
        help_text=f"records that this call has read, {MOST_LOOKED_AT} at most; with a filter more than `items` are"
    )
    not_legible = serializers.IntegerField(help_text="of these: a newer release has written them")

    def get_next(self, page: AuditPage) -> str | None:
        """The cursor of the page behind this one."""
        return place_cursor(page.following)


class PasswordField(StrictCharField):
    """A password as clients will send it. Refusals do not repeat it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            min_length=LEAST_CHARACTERS, max_length=MOST_CHARACTERS, trim_whitespace=False, required=False, **options
        )


@extend_schema_field({"type": "array", "items": {"type": "string", "enum": MECHANISMS}, "minItems": 1, "maxItems": 2})
class MechanismsField(serializers.ListField):
    """Names of SCRAM's."""

    child = StrictCharField()

    def __init__(self, **options: Any) -> None:
        super().__init__(min_length=1, max_length=len(MECHANISMS), **options)


class UserCreateSerializer(StrictSerializer):
    """A user that clients can log in as."""

    name = NameField(LONGEST_USER_NAME)
    password = PasswordField(help_text="left out: one is made, and is in this answer alone")
    mechanisms = MechanismsField(required=False, help_text="by default both")


class UserNameSerializer(StrictSerializer):
    """Whom a DELETE means."""

    name = NameField(LONGEST_USER_NAME)
    with_acls = StrictBooleanField(required=False, help_text="ACLs that name the user go as well")


class UserPasswordSerializer(StrictSerializer):
    """PUT: another password."""

    not_empty = True

    password = PasswordField(help_text="left out: one is made, and is in this answer alone")
    keep_previous_s = StrictIntegerField(
        min_value=0,
        max_value=LONGEST_KEEP_S,
        required=False,
        help_text="how long the password before it stays good; by default it ends at once",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something is asked for: a request that lost its body makes no password."""
        if not attrs:
            raise serializers.ValidationError("must name password, keep_previous_s or both")
        return attrs


class UserSerializer(serializers.Serializer[Any]):
    """A user. What verifies his password is never shown."""

    name = serializers.CharField()
    mechanisms = serializers.ListField(child=serializers.CharField())
    iterations = serializers.DictField(child=serializers.IntegerField(), help_text="by mechanism")
    previous_password_until = serializers.DateTimeField(
        allow_null=True, help_text="until then the password before the present one is good as well"
    )


class UserWithPasswordSerializer(UserSerializer):
    """What a call answers that sets a password."""

    password = serializers.CharField(allow_null=True, help_text="one that was made here; null: it was given")


class UserPageSerializer(serializers.Serializer[Any]):
    """A page of users."""

    items = UserSerializer(many=True)
    next = serializers.CharField(allow_null=True)
