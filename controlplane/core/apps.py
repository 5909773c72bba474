"""Django's entry for this app."""

from __future__ import annotations

from typing import Any

from celery.signals import celeryd_init
from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured


class CoreConfig(AppConfig):
    """Found by Django through INSTALLED_APPS."""

    name = "controlplane.core"
    label = "core"

    def ready(self) -> None:
        from controlplane.core import checks  # noqa: PLC0415  # it needs settings

        checks.install()
        celeryd_init.connect(_worker_starts, dispatch_uid="sluice encryption keys")


def _worker_starts(**_said: Any) -> None:
    """A worker without keys does not start. Celery logs what a listener raises, and goes on: only an exit stops it."""
    from controlplane.sealing import installed  # noqa: PLC0415  # likewise

    try:
        installed.demand()
    except ImproperlyConfigured as problem:
        raise SystemExit(f"sluice: {problem}") from None
