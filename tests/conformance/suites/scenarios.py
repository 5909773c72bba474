"""Our own scenarios with clients that others wrote: kafkajs (`kafkajs/scenarios.js`) and the Java client
(`java_client/Scenarios.java`). Each prints a line of JSON per scenario.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance import fixtures
from tests.conformance.process import run_lines
from tests.conformance.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S = 1_200
_HERE = Path(__file__).parents[1]
_REPLICAS = "3"


def run_kafkajs(bootstrap: str, scratch: Path, say: Callable[[str], None], only: str = "") -> list[Result]:
    """All scenarios in one process of node."""
    modules = fixtures.kafkajs() / "node_modules"
    command = ["node", str(_HERE / "kafkajs/scenarios.js"), bootstrap, _REPLICAS, only]
    environment = {"NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    return _run(command, environment, scratch, say)


def run_java(bootstrap: str, scratch: Path, say: Callable[[str], None], only: str = "") -> list[Result]:
    """All scenarios in one Java process, with the client of the Apache Kafka that we compare with."""
    classpath = fixtures.java_classes(_HERE / "java_client/Scenarios.java")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", quiet, "-cp", classpath]
    return _run([*java, "Scenarios", bootstrap, _REPLICAS, only], {}, scratch, say)


def _run(command: list[str], environment: dict[str, str], scratch: Path, say: Callable[[str], None]) -> list[Result]:
    results: list[Result] = []

    def on_line(line: str) -> None:
        if line.startswith('{"test"'):
            result = Result(**json.loads(line))
            results.append(result)
            say(f"{result.outcome:8} {result.test:52} {result.seconds:6.1f} s  {result.remark[:100]}")

    run_lines(command, limit_s=LIMIT_S, log=scratch / "out.log", environment=environment, on_line=on_line)
    return results
