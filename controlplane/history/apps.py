"""Django's entry for this app."""

from __future__ import annotations

from django.apps import AppConfig


class HistoryConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.history"
    label = "history"

    def ready(self) -> None:
        """Pages about groups may ask how far behind they were; who deletes one tells it."""
        from controlplane.groups import earlier  # noqa: PLC0415  # models must be loaded first
        from controlplane.history import latest  # noqa: PLC0415  # the same
        from controlplane.history.lag import known  # noqa: PLC0415  # the same

        earlier.told_by(latest.earlier_lags)
        earlier.tells(known.group_deleted)
