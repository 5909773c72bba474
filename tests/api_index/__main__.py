"""``python -m tests.api_index``: prints the index; status 1 where an API has no test."""

from __future__ import annotations

import sys

from tests.api_index import rows, text

index = rows()
print(text(index))
sys.exit(not all(row.tests for row in index))
