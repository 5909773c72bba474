"""Django's entry to health."""

from __future__ import annotations

from django.apps import AppConfig


class HealthConfig(AppConfig):
    """See the package."""

    name = "controlplane.health"
    label = "health"
