"""Members as processes: started again whenever they end, what they say collected with the time at which it was heard."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from controlplane.stack.process import dies_with_parent
from tests.chaos.members.kept import Beginning, Commit, Said, Taken
from tests.conformance import fixtures

HERE = Path(__file__).parent
CLIENTS: dict[str, Sequence[str]] = {
    "eager": ("librdkafka", "librdkafka", "java", "java", "kafkajs"),
    "cooperative": ("librdkafka", "librdkafka", "java", "java"),
    "consumer": ("librdkafka", "librdkafka", "java", "java"),
}
"""Of a group by its assignors. kafkajs has the eager protocol alone."""


class Programs:
    """How each client is started: compiled and fetched once. Raises NotAvailableError where a client cannot be had."""

    def __init__(self) -> None:
        java = ["java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        self._commands = {
            "librdkafka": [sys.executable, "-m", "tests.chaos.members.librdkafka"],
            "java": [*java, quiet, "-cp", fixtures.java_classes(HERE / "Member.java"), "Member"],
            "kafkajs": ["node", str(HERE / "kafkajs.js")],
        }
        modules = str(fixtures.kafkajs() / "node_modules")
        self.environment = {**os.environ, "NODE_PATH": modules, "KAFKAJS_NO_PARTITIONER_WARNING": "1"}

    def command(self, client: str, arguments: Sequence[str]) -> list[str]:
        """Of one member."""
        return [*self._commands[client], *arguments]


class Member:
    """A process, and what it has said so far. `held`: the partitions that it has, as it says."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], said: list[Said], refused: Counter[str]
    ) -> None:
        self.name = name
        self.held: frozenset[int] = frozenset()
        self._command, self._environment, self._said, self._refused = command, environment, said, refused
        self._is_over = False
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> subprocess.Popen[str]:
        self.held = frozenset()
        self._assigned_s: dict[int, float] = {}
        return subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(self._environment),
            text=True,
            preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
        )

    def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does; it is started again."""
        self._process.kill()

    def stop(self) -> None:
        """For good."""
        self._is_over = True
        self._process.kill()
        self._keeper.join(20)

    def _keep(self) -> None:
        while not self._is_over:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                if line.endswith("\n"):  # the last one of a process that was killed may be cut
                    self._hear(line.split())
            self._process.wait()
            if not self._is_over:
                self._process = self._start()

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["assigned", moment, *some]:
                places = _places(some)
                self._assigned_s |= dict.fromkeys(places, float(moment))
                self.held |= places
            case ["lost", *some]:
                self.held -= _places(some)
            case ["begin", partition, offset]:
                since = self._assigned_s.get(int(partition), time.monotonic())
                self._said.append(Beginning(self.name, since, int(partition), int(offset)))
            case ["got", partition, first, last]:
                self._said.append(Taken(self.name, int(partition), int(first), int(last)))
            case ["committed", asked, partition, offset]:
                self._said.append(Commit(self.name, float(asked), time.monotonic(), int(partition), int(offset)))
            case ["refused", why]:
                self._refused[f"{self.name.partition('-')[0]}: {why}"] += 1


def _places(some: list[str]) -> frozenset[int]:
    return frozenset(int(place) for place in some[0].split(",")) if some else frozenset()
