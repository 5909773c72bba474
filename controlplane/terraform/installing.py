"""The executable that Terraform looks for: a script that starts this package, from where it lies, with the Python that runs now.

It is put where both look without asking any registry (an implied local mirror)::

    ~/.terraform.d/plugins/terraform.local/sluice/sluice/0.1.0/linux_amd64/terraform-provider-sluice_v0.1.0
"""

from __future__ import annotations

import platform
import shlex
import sys
from pathlib import Path

SOURCE, VERSION = "terraform.local/sluice/sluice", "0.1.0"
FOLDER = ".terraform.d/plugins"
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
ROOT = Path(__file__).resolve().parent.parent.parent


def install(plugins: Path | None = None) -> Path:
    """Put it there; the executable. `plugins`: another mirror, such as a shared folder of a continuous integration."""
    folder = (plugins or Path.home() / FOLDER) / SOURCE / VERSION / place()
    return launcher(folder / f"terraform-provider-sluice_v{VERSION}")


def launcher(path: Path) -> Path:
    """The script at this path; for `dev_overrides` its name is terraform-provider-sluice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    python, root = shlex.quote(sys.executable), shlex.quote(str(ROOT))
    path.write_text(
        f"#!/bin/sh\nPYTHONPATH={root}${{PYTHONPATH:+:$PYTHONPATH}} exec {python} -m controlplane.terraform\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def place() -> str:
    """Such as linux_amd64."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}_{_MACHINES.get(machine, machine)}"
