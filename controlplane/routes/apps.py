"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class RoutesConfig(AppConfig):
    """Found by Django through INSTALLED_APPS. It has no rows of its own."""

    name = "controlplane.routes"
    label = "routes"

    def ready(self) -> None:
        """Make the kinds of operation known before a worker or a request asks for one."""
        from controlplane.routes import provisioning  # noqa: PLC0415  # models must be loaded first

        provisioning.register()
