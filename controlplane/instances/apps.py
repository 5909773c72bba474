"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class InstancesConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.instances"
    label = "instances"

    def ready(self) -> None:
        """Make the kinds of operation known before a worker or a request asks for one."""
        from controlplane.instances import provisioning  # noqa: PLC0415  # models must be loaded first

        provisioning.register()
