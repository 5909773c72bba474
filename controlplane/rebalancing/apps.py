"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class RebalancingConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.rebalancing"
    label = "rebalancing"

    def ready(self) -> None:
        """Make the kinds of operation known before a worker or a request asks for one."""
        from controlplane.rebalancing import carrying_out  # noqa: PLC0415  # models must be loaded first

        carrying_out.register()
