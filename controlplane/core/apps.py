"""Django's entry for this app."""

from __future__ import annotations

from typing import Any

from celery.signals import celeryd_init, task_postrun, task_prerun, worker_process_init
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
        worker_process_init.connect(_process_starts, dispatch_uid="sluice pulse")


def _worker_starts(**_said: Any) -> None:
    """A worker without keys does not start. Celery logs what a listener raises, and goes on: only an exit stops it."""
    from controlplane.sealing import installed  # noqa: PLC0415  # likewise

    try:
        installed.demand()
    except ImproperlyConfigured as problem:
        raise SystemExit(f"sluice: {problem}") from None


def _process_starts(**_said: Any) -> None:
    """Of a worker, after its fork: from now on it says that it is busy. No other process asks for that."""
    from controlplane.core.pulse import BUSY  # noqa: PLC0415  # likewise

    task_prerun.connect(_task_begins, dispatch_uid="sluice pulse")
    task_postrun.connect(_task_ends, dispatch_uid="sluice pulse")
    BUSY.watch()


def _task_begins(task_id: str, **_said: Any) -> None:
    from controlplane.core.pulse import BUSY  # noqa: PLC0415  # likewise

    BUSY.begun(task_id)


def _task_ends(task_id: str, **_said: Any) -> None:
    from controlplane.core.pulse import BUSY  # noqa: PLC0415  # likewise

    BUSY.ended(task_id)
