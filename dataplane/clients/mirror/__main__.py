"""The process: arguments in, exit status out."""

from __future__ import annotations

import sys

from dataplane.clients.mirror.commands import main


def run() -> int:
    """The script `sluice-mirror` of the wheel."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
