"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class RemediesConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.remedies"
    label = "remedies"

    def ready(self) -> None:
        """Make the kind of operation known before a worker or a request asks for one."""
        from controlplane.remedies import leaders  # noqa: PLC0415  # models must be loaded first

        leaders.register()
