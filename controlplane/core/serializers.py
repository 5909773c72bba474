"""Operations and the audit trail as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.core import sums
from controlplane.core.models import OperationState, StepState


class StepSerializer(serializers.Serializer[Any]):
    """A step of an operation: its name, how far it is, and what it says of itself."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=StepState.choices)
    note = serializers.SerializerMethodField(help_text="what it waits for, or what it did")

    def get_note(self, step: Any) -> str:
        return sums.shown(step["note"])


class OperationSerializer(serializers.Serializer[Any]):
    """Long work on an instance, step by step; poll it until its state is final."""

    id = serializers.CharField()
    kind = serializers.CharField()
    target = serializers.CharField(help_text="id of what it works on")
    actor = serializers.CharField(
        help_text='who asked for it: an email, "system", or "operator" for one of the service; empty where it was not kept yet'
    )
    state = serializers.ChoiceField(choices=OperationState.choices)
    steps = StepSerializer(many=True)
    progress = serializers.IntegerField(help_text="percent of the steps that are done")
    error = serializers.SerializerMethodField(help_text="why it failed; null unless it did")
    error_code = serializers.SerializerMethodField()
    result = serializers.DictField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)

    def get_error(self, operation: Any) -> str | None:
        return sums.shown(operation.error) or None

    def get_error_code(self, operation: Any) -> str | None:
        return operation.error_code or None


class OperationPageSerializer(serializers.Serializer[Any]):
    """An organisation's operations, a page at a time."""

    items = OperationSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class AuditTrailEntrySerializer(serializers.Serializer[Any]):
    """One change that somebody asked for."""

    id = serializers.IntegerField()
    time = serializers.DateTimeField(source="at")
    at = serializers.DateTimeField(help_text="the same as `time`")
    actor = serializers.CharField(help_text='an email, a service account, "system", or who a Kafka client is')
    action = serializers.CharField(help_text="such as topic.create")
    object = serializers.CharField(source="target", help_text="what was changed, looked at or refused")
    target = serializers.CharField(help_text="the same as `object`")
    before = serializers.DictField(
        source="sides.before",
        allow_null=True,
        help_text="what changed, as it was; null: it was not there, or nothing says so",
    )
    after = serializers.DictField(
        source="sides.after",
        allow_null=True,
        help_text="what changed, as it is since; null: it is gone, or nothing says so",
    )
    detail = serializers.DictField(help_text="what was asked for; of a change `{name: {from, to}}`; never a secret")
    source = serializers.CharField(  # type: ignore[assignment]  # the name is the contract's
        source="address", help_text="where the request came from; empty: from none"
    )
    address = serializers.CharField(help_text="the same as `source`")
    key = serializers.CharField(help_text="id of the API key or access key; empty: the console, or nobody")
    request_id = serializers.CharField(help_text="`X-Request-Id` of the answer; empty: of no request")
    number = serializers.IntegerField(
        allow_null=True,
        help_text="its place in the chain of the organisation, from 1; null: it is chained within seconds",
    )
    hash = serializers.CharField(
        help_text="SHA-256 of all that it says and of the hash of the entry with the number before; empty: not chained yet"
    )


class AuditTrailPageSerializer(serializers.Serializer[Any]):
    """An organisation's audit trail, a page at a time."""

    items = AuditTrailEntrySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class AuditLinkSerializer(serializers.Serializer[Any]):
    """A place in the chain. Who keeps both can check later that nothing before it was changed."""

    number = serializers.IntegerField(help_text="0: before the first entry")
    hash = serializers.CharField()


class AuditBreakSerializer(serializers.Serializer[Any]):
    """The first entry that does not fit."""

    number = serializers.IntegerField()
    id = serializers.IntegerField(allow_null=True, help_text="null: there is no such entry")
    code = serializers.ChoiceField(choices=["missing", "changed", "kept", "head"])
    detail = serializers.CharField()


class AuditVerificationSerializer(serializers.Serializer[Any]):
    """How far the chain of the audit trail is whole."""

    checked = serializers.IntegerField(help_text="entries that were computed again")
    last = AuditLinkSerializer(help_text="the last entry that fits")
    newest = serializers.IntegerField(help_text="number of the newest entry")
    waiting = serializers.IntegerField(help_text="entries that are not chained yet; they are within seconds")
    next = serializers.IntegerField(
        source="following", allow_null=True, help_text="ask again with `after` set to this; null: that was all"
    )
    broken = AuditBreakSerializer(allow_null=True, help_text="null: all that was looked at is as it was written")
