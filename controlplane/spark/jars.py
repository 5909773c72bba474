"""Jars that the pyspark wheel lacks: the Kafka source, Delta Lake.

They come from Maven Central by Ivy, once, into a folder of the program's own: a half-filled `~/.m2` makes Ivy fail. A
note says which of them are needed once all have arrived; from then on they go straight on the class path, and a start
needs no network. Spark's own jars stay as they are.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

SPARK_VERSION = "4.0.0"
"""Of the pyspark wheel, pinned in requirements/product.in: source and Spark must be of one version."""
KAFKA_SOURCE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"
DELTA = "io.delta:delta-spark_2.13:4.0.0"
"""The release that is built for Spark 4.0.0 (docs/decisions/0026)."""


def fetched(home: Path, packages: Sequence[str]) -> list[Path]:
    """What Ivy fetched and Spark has not got itself; nothing until `note_fetched` has seen all of it arrive."""
    note = _note(home, packages)
    jars = [home / "ivy" / "jars" / name for name in note.read_text().split()] if note.exists() else []
    return jars if all(jar.exists() for jar in jars) else []


def note_fetched(home: Path, packages: Sequence[str]) -> None:
    """After a session came up with Ivy's jars: remember which."""
    own = {jar.name for jar in spark_jars()}
    found = sorted(jar.name for jar in (home / "ivy" / "jars").glob("*.jar"))
    # Ivy's file names begin with the organisation: org.lz4_lz4-java-1.8.0.jar.
    needed = [name for name in found if name.partition("_")[2] not in own]
    if needed:
        note = _note(home, packages)
        partial = note.with_suffix(".part")
        partial.write_text("\n".join(needed))
        partial.replace(note)


def _note(home: Path, packages: Sequence[str]) -> Path:
    """Named after what is in it. The Kafka source of Spark's version is always among it."""
    others = [package.split(":") for package in packages if package != KAFKA_SOURCE]
    words = [SPARK_VERSION, *(f"{artifact}-{version}" for _, artifact, version in others)]
    return home / "ivy" / f"complete-{'-'.join(words)}"


def spark_jars() -> list[Path]:
    """Those of the wheel."""
    wheel = importlib.util.find_spec("pyspark")
    assert wheel is not None
    assert wheel.submodule_search_locations
    return sorted((Path(wheel.submodule_search_locations[0]) / "jars").glob("*.jar"))
