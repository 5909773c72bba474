"""The state of an instance, with its reasons, as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.health.rules import EVERY_CODE, HEALTH_STATES


class HealthReasonSerializer(serializers.Serializer[Any]):
    """One thing that is the matter."""

    code = serializers.ChoiceField(choices=list(EVERY_CODE))
    state = serializers.ChoiceField(choices=HEALTH_STATES)
    title = serializers.CharField(help_text="a few words")
    detail = serializers.CharField(help_text="a sentence, with figures and what to do")
    since = serializers.DateTimeField(help_text="when it was first seen")


class HealthSerializer(serializers.Serializer[Any]):
    """The worst of the reasons, and all of them, worst first."""

    state = serializers.ChoiceField(choices=HEALTH_STATES)
    reasons = HealthReasonSerializer(many=True)
