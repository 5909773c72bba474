"""Django's command line for Sluice's control plane: ``python manage.py migrate``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415  # settings come first

    from controlplane.env import EnvironmentProblem  # noqa: PLC0415  # so does the path to it

    try:
        execute_from_command_line(sys.argv)
    except EnvironmentProblem as problem:
        sys.exit(f"sluice: {problem}")


if __name__ == "__main__":
    main()
