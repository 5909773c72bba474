"""Operations as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.core.models import OperationState, StepState


class StepSerializer(serializers.Serializer[Any]):
    """One step."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=StepState.choices)
    note = serializers.CharField(help_text="what it waits for, or what it did")


class OperationSerializer(serializers.Serializer[Any]):
    """A long operation."""

    id = serializers.CharField()
    kind = serializers.CharField()
    target = serializers.CharField(help_text="id of what it works on")
    actor = serializers.CharField(help_text='who asked for it: an email, or "system"; empty where it was not kept yet')
    state = serializers.ChoiceField(choices=OperationState.choices)
    steps = StepSerializer(many=True)
    progress = serializers.IntegerField(help_text="percent of the steps that are done")
    error = serializers.SerializerMethodField(help_text="why it failed; null unless it did")
    error_code = serializers.SerializerMethodField()
    result = serializers.DictField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)

    def get_error(self, operation: Any) -> str | None:
        """A sentence."""
        return operation.error or None

    def get_error_code(self, operation: Any) -> str | None:
        """A stable word."""
        return operation.error_code or None


class OperationPageSerializer(serializers.Serializer[Any]):
    """A page of operations."""

    items = OperationSerializer(many=True)
    next = serializers.CharField(allow_null=True)
