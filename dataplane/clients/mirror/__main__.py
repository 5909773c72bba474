"""The process: arguments in, exit status out."""

from __future__ import annotations

import sys

from dataplane.clients.mirror.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
