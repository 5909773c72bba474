"""Django's entry for this app."""

from __future__ import annotations

import sys

from django.apps import AppConfig

from controlplane.loads import installed


class LoadsConfig(AppConfig):
    """Found by Django through INSTALLED_APPS; settings that make no sense stop the start."""

    name = "controlplane.loads"
    label = "loads"

    def ready(self) -> None:
        """A setting that makes no sense stops the process, with a sentence. The kind of operation is made known."""
        from controlplane.loads import watching  # noqa: PLC0415  # models must be loaded first

        watching.register()
        installed.check(folders_follow=sys.argv[1:2] == ["up"])
