"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.fleet"
    label = "fleet"
