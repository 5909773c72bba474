"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig

from controlplane.alarms.delivery import posting


class AlarmsConfig(AppConfig):
    """Found by Django through INSTALLED_APPS; a list of networks that cannot be read stops the start."""

    name = "controlplane.alarms"
    label = "alarms"

    def ready(self) -> None:
        """A setting that makes no sense stops the process, with a sentence."""
        posting.networks()
