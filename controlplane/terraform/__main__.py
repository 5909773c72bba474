"""`python -m controlplane.terraform`: the plugin, for Terraform; `… install [FOLDER]`: where Terraform looks for it."""

from __future__ import annotations

import sys
from pathlib import Path

from controlplane.terraform.installing import SOURCE, VERSION, install
from controlplane.terraform.plugin import serve

USAGE = "python -m controlplane.terraform [install [FOLDER]]"
MOST_ARGUMENTS = 2


def main(arguments: list[str]) -> int:
    """The exit status."""
    if not arguments:
        return serve()
    if arguments[0] != "install" or len(arguments) > MOST_ARGUMENTS:
        sys.stderr.write(f"{USAGE}\n")
        return 2
    path = install(Path(arguments[1]) if arguments[1:] else None)
    sys.stdout.write(f"{path}\n\nsource = {SOURCE!r}, version = {VERSION!r} in required_providers\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
