"""`python -m controlplane.cli`: arguments in, exit status out."""

from __future__ import annotations

import sys

from controlplane.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
