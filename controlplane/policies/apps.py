"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.policies"
    label = "policies"

    def ready(self) -> None:
        """Make the kinds of operation known before a worker or a request asks for one."""
        from controlplane.policies import retention, services, storage  # noqa: PLC0415  # models must be loaded first
        from controlplane.topics.services import when_deleted  # noqa: PLC0415  # the same

        retention.register()
        storage.register()
        when_deleted(services.shortened_forget)
