"""Who copies in `mirror`: our mirror, and MirrorMaker 2. Each run has names of its own, and so begins at the beginning."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path

from controlplane.stack.process import dies_with_parent
from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import ClientError
from dataplane.clients.fetching import LATEST_TIME, offset_in
from dataplane.clients.settings import ConnectionSettings, addresses
from tests.benchmarks.server import Server
from tests.support.mirror_maker import MirrorMaker
from tests.support.ports import free_port

TOPIC = "mirrored"
PARTITIONS = 4
_TICKS = os.sysconf("SC_CLK_TCK")


class Copy(ABC):
    """One way from a source to a target; `topic` is the target's."""

    name = ""
    topic = ""

    @abstractmethod
    def start(self) -> None:
        """Begin to copy, or go on."""

    @abstractmethod
    def stop(self) -> None:
        """What was copied stays."""

    @abstractmethod
    def copied(self) -> int:
        """Messages in the target, as far as it is known now."""

    @abstractmethod
    def pid(self) -> int:
        """Of its process."""

    def cpu_s(self) -> float:
        """What its process has used."""
        return _cpu_s(self.pid())


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class OurCopy(Copy):
    """`python -m dataplane.clients.mirror`, with all that it does: configurations, offsets, checkpoints in transactions."""

    name = "sluice"

    def __init__(self, folder: Path, source: Server, target: Server, run: str) -> None:
        self.topic = f"{run}.{TOPIC}"
        self._port = free_port()
        self._log = folder / f"{run}.log"
        self.file = folder / f"{run}.toml"
        self.file.write_text(
            f'[target]\nname = "{run}-target"\nbootstrap = "{target.bootstrap}"\n'
            f'checkpoint_topic = "{run}-checkpoints"\nreplication_factor = 1\n'
            f'[[sources]]\nname = "{run}"\nbootstrap = "{source.bootstrap}"\ntopics = "{TOPIC}"\nprefix = "{run}."\n'
            f"[mirror]\nmetrics_port = {self._port}\n"
            'delivery = "exactly_once"\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dataplane.clients.mirror", str(self.file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )

    def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)

    def copied(self) -> int:
        """Up to where it is at the source, whose offsets have no gaps; 0 while it does not say."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the mirror has ended:\n{self._log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return 0
        rows = [line for line in text.splitlines() if line.startswith("sluice_mirror_source_offset{")]
        return sum(int(line.rpartition(" ")[2]) for line in rows)

    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def compare(self) -> tuple[bool, list[str]]:
        """Whether the target is equal, and what is said of each partition."""
        command = [sys.executable, "-m", "dataplane.clients.mirror", str(self.file), "compare"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode == 0, (done.stdout + done.stderr).splitlines()


class MirrorMakerCopy(Copy):
    """MirrorMaker 2 as it is by default: at least once."""

    name = "mirrormaker"

    def __init__(self, folder: Path, source: Server, target: Server, run: str) -> None:
        self.topic = f"{run}.{TOPIC}"
        self._maker = MirrorMaker(
            folder, source=source.bootstrap, target=target.bootstrap, name=run, topics=TOPIC, tasks=PARTITIONS
        )
        where = tuple(addresses(target.bootstrap))
        self._target = Cluster(ConnectionSettings(), lambda: where)

    def start(self) -> None:
        self._maker.start()

    def stop(self) -> None:
        self._maker.stop()
        self._target.close()

    def copied(self) -> int:
        """What the target's topic has: nothing else writes there, and nothing there is a marker."""
        self._maker.check()
        try:
            return sum(offset_in(self._target, (self.topic, index), LATEST_TIME) for index in range(PARTITIONS))
        except ClientError:  # it is not there yet
            return 0

    def pid(self) -> int:
        return self._maker.pid
