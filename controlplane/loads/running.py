"""One run as a process of its own: `controlplane.lake.load` with its words, and a folder of files that nobody else can read.

The program comes by the brokers' internal listeners and reads on behalf of the tenant, so what it reads is charged to the
instance's consume limit and counted in its usage (`quota.contracts.on_behalf`); Kafka's client in the JVM waits as long as
brokers tell it to. Secrets are in the files, never among the words, which every user of a machine can read.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.clusters.identification import USER, to_brokers
from controlplane.kafka import running as brokers
from controlplane.kafka.topics import names_of
from controlplane.lake import report
from controlplane.loads import installed
from controlplane.loads.destinations import Kind, hadoop_options, options_text
from controlplane.loads.models import RunState
from controlplane.loads.ranges import Asked
from controlplane.spark.identification import by_certificate, by_credential, properties_text
from quota.contracts.instance import address_text
from quota.contracts.on_behalf import CLIENT_ID
from quota.tls.material import AUTHORITIES

if TYPE_CHECKING:
    from controlplane.clusters.identification import Identification
    from controlplane.loads.models import LoadRun

MODULE = "controlplane.lake.load"
LONGEST_S = 6 * 3600.0
"""After that a run is stopped: the next goes on where the table is, and others have had their turn."""
STOPS_WITHIN_S = 15.0
LONGEST_TEXT = 1000
FETCH = {"fetch.max.bytes": str(8 * 2**20), "max.partition.fetch.bytes": str(2**20)}
"""What one answer brings at most, and so what a limit is overdrawn by."""
BY_NAME = ("raw", "inferred")
_WORD = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_CLASSES = re.compile(r"^(?:Caused by: |[\w.$]+(?:Error|Exception): )+")
"""What Java and Python call an error, before what it says."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is to be started."""

    words: list[str]
    folder: Path
    hidden: Mapping[str, str]  # what must not be shown to the tenant, and what is shown instead

    @property
    def report(self) -> Path:
        return self.folder / "report.json"

    def text(self, said: str) -> str:
        """Words of the program as a tenant reads them: their own topic's name, members of REST for options."""
        for hidden, shown in self.hidden.items():
            said = said.replace(hidden, shown)
        said = _CLASSES.sub("", said)
        return _WORD.sub(lambda found: found[1].replace("-", "_"), said)[:LONGEST_TEXT]


def prepare(run: LoadRun, folder: Path) -> Prepared:
    """Write the files. Raises ClusterUnavailable, Unavailable."""
    load = run.load
    address = load.instance.cluster.address
    addresses = [address_text((broker.host, broker.port)) for broker in brokers.brokers(address)]
    physical = names_of(load.instance_id).topic_in(load.topic)
    properties = {"client.id": CLIENT_ID, **FETCH, **_identified(to_brokers(), folder)}
    words = [
        "--brokers", ",".join(addresses), "--topic", physical, "--named", load.topic, "--to", load.uri,
        "--schema", _schema(load.schema, folder),
        "--properties", str(_written(folder / "client.properties", properties_text(properties))),
        "--report", str(folder / "report.json"),
    ]  # fmt: skip
    if load.kind == Kind.BUCKET:
        chosen = hadoop_options(load.bucket, load.region, installed.buckets(), load.access_key, load.secret_opened())
        words += ["--hadoop", str(_written(folder / "hadoop.properties", options_text(chosen)))]
    asked = Asked.from_json(run.asked).words()
    words += asked if "--skip-expired" in asked or not load.skip_expired else [*asked, "--skip-expired"]
    return Prepared(words, folder, {physical: load.topic, **dict.fromkeys(addresses, "the brokers"), str(folder): ""})


class Process:
    """A run that was started."""

    def __init__(self, run: LoadRun, prepared: Prepared, submit: list[str]) -> None:
        self.run, self._prepared = run, prepared
        self._process = subprocess.Popen([*_program(submit), *prepared.words], stdin=subprocess.DEVNULL)  # noqa: S603
        self._last_s = time.monotonic() + LONGEST_S

    def status(self) -> int | None:
        """None: it goes on."""
        return self._process.poll()

    @property
    def is_late(self) -> bool:
        """Whether it has run for longer than it may."""
        return time.monotonic() >= self._last_s

    def says(self) -> str:
        """What is done now, for people."""
        return self._prepared.text(report.read(self._prepared.report).says)

    def stop(self) -> None:
        """Ask it to end, and after a while do not ask any more. What it has committed stays."""
        self._process.terminate()
        try:
            self._process.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def outcome(self) -> tuple[str, dict[str, Any]]:
        """The state in which it ended, and what stands in the row then."""
        status, told = self._process.wait(), report.read(self._prepared.report)
        if told.status is None:
            says = f"the program ended with status {status}, and did not say why"
            return RunState.FAILED, {"says": says, "exit_status": status}
        members = {
            "says": self._prepared.text(told.says), "exit_status": told.status, "topic_id": told.topic_id,
            "row_count": told.rows, "byte_count": told.bytes, "commits": told.commits, "problems": told.problems,
            "gaps": told.gaps,
        }  # fmt: skip
        return RunState.FAILED if told.status else RunState.SUCCEEDED, members

    def close(self) -> None:
        """Remove its files."""
        shutil.rmtree(self._prepared.folder, ignore_errors=True)


def folder_of(run: LoadRun, home: Path) -> Path:
    """A new one, for this user alone."""
    home.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{run.pk}-", dir=home))


def _program(submit: list[str]) -> list[str]:
    if not submit:
        return [sys.executable, "-m", MODULE]
    found = importlib.util.find_spec(MODULE)
    assert found is not None
    assert found.origin is not None
    return [*submit, found.origin]


def _identified(who: Identification, folder: Path) -> dict[str, str]:
    if who.material is None:
        return by_credential(USER, who.credential)
    authorities = _written(folder / AUTHORITIES, who.material.authorities)
    own = _written(folder / "own.pem", f"{who.material.key}\n{who.material.chain}")
    return by_certificate(authorities, own)


def _schema(schema: str, folder: Path) -> str:
    return schema if schema in BY_NAME else str(_written(folder / "schema", schema))


def _written(path: Path, text: str) -> Path:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    return path
