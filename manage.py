"""Django's command line for Sluice's control plane: ``python manage.py migrate``.

``python manage.py --stack PORT invoices waiting`` is for the local stack of that port, with the environment of its processes.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415  # settings come first

    from controlplane.env import EnvironmentProblem  # noqa: PLC0415  # so does the path to it

    try:
        execute_from_command_line(_for_a_stack(sys.argv) if sys.argv[1:2] == ["--stack"] else sys.argv)
    except EnvironmentProblem as problem:
        sys.exit(f"sluice: {problem}")


def _for_a_stack(words: list[str]) -> list[str]:
    """The words behind `--stack PORT`. Exits with a sentence."""
    from controlplane.stack.config import environment_of  # noqa: PLC0415  # for this alone

    try:
        os.environ.update(environment_of(words[2] if len(words) > 2 else "", os.environ))
    except ValueError as error:
        sys.exit(f"manage.py --stack: {error}")
    return [words[0], *words[3:]]


if __name__ == "__main__":
    main()
