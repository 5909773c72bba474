"""A process of its own with Django on a database of its own: what several workers do at once shows only there.

`set_up` is called in it, before anything of Django's is imported; `answer_of` runs one, and has what it said last, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def set_up(directory: str, database: str, *, makes_tables: bool = True, **environment: str) -> None:
    """Settings for `database`, a URL, with what is kept in `directory`, and what else `environment` says."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "DATABASE_URL": database,
        "SLUICE_STACK_DIR": directory,
        "SLUICE_SECRETS_FILE": f"{directory}/secrets.json",
        "SLUICE_ENCRYPTION_KEYS_FILE": str(ROOT / "tests" / "support" / "encryption.keys"),
        **environment,
    }
    import django

    django.setup()
    if makes_tables:
        from django.core.management import call_command

        call_command("migrate", verbosity=0)


def answer_of(module: str, directory: Path, database: str, *, within_s: float = 150.0) -> Any:
    """Run ``python -m module directory database``; AssertionError with its complaint where it fails."""
    program = [sys.executable, "-m", module, str(directory), database]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=within_s, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
