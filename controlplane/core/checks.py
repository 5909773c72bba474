"""What this installation must have before it starts, as Django's system checks say it.

The keys are asked for by `migrate`, by `check --database default` and by `check --deploy`, and not by what writes no secret
(`makemigrations`, `spectacular`). Web process and worker ask for them as they start (`sealing.installed.demand`).
"""

from __future__ import annotations

import stat
from typing import Any

from django.conf import settings
from django.core import checks

from controlplane.sealing import installed
from controlplane.sealing.keyring import KeysProblem

RUNBOOK = "docs/runbooks/encryption-keys.md"


def keys_check(app_configs: Any, databases: Any = None, **_options: Any) -> list[checks.CheckMessage]:
    """There are keys to seal secrets with, and they are not everybody's. As all checks of databases, where one is named."""
    del app_configs
    return _keys_told() if databases else []


def _keys_told() -> list[checks.CheckMessage]:
    try:
        installed.keyring()
    except KeysProblem as problem:
        return [checks.Error(str(problem), hint=f"`manage.py secrets draw` makes one; {RUNBOOK}", id="sluice.E001")]
    path = settings.ENVIRONMENT.encryption_keys_file
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        return [
            checks.Warning(f"{path} is for everybody on this machine to read or write", hint=RUNBOOK, id="sluice.W001")
        ]
    return []


def deployed_keys_check(app_configs: Any, **_options: Any) -> list[checks.CheckMessage]:
    """The same, for `check --deploy`: Django keeps the tags of a check with its function."""
    del app_configs
    return _keys_told()


def secret_key_check(app_configs: Any, **_options: Any) -> list[checks.CheckMessage]:
    """Django's secret key was given: one that each process draws for itself ends all sessions with it."""
    del app_configs
    environment = settings.ENVIRONMENT
    if environment.secret_key or environment.secret("django_secret_key"):
        return []
    hint = "`django_secret_key` in SLUICE_SECRETS_FILE, 50 characters or more"
    return [checks.Error("there is no secret key: each process signs with one of its own", hint=hint, id="sluice.E002")]


def install() -> None:
    """Tell Django of them."""
    checks.register(keys_check, checks.Tags.database)
    checks.register(deployed_keys_check, checks.Tags.security, deploy=True)
    checks.register(secret_key_check, checks.Tags.security, deploy=True)
