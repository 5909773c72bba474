"""One run as a process of its own: `controlplane.lake.load` with its words, and a folder of files that nobody else can read.

The program comes by the brokers' internal listeners and reads on behalf of the tenant, so what it reads is charged to the
instance's consume limit and counted in its usage (`quota.contracts.on_behalf`); Kafka's client in the JVM waits as long as
brokers tell it to. Secrets are in the files, never among the words, which every user of a machine can read; of this process's
environment it has what Java and Spark need. Where the load goes to a bucket, a second program copies the table there, and before
both it tries whether the bucket takes it: what Spark reads is charged to the tenant, and costs a minute.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.clusters.identification import USER, to_brokers
from controlplane.env import ROOT
from controlplane.kafka import running as brokers
from controlplane.kafka.topics import names_of
from controlplane.lake import report
from controlplane.lake.checksum import MODULUS
from controlplane.lake.report import Told
from controlplane.lake.request import LONGEST_RUN_S
from controlplane.loads import installed
from controlplane.loads.destinations import AWS, Format, Kind, credentials_text
from controlplane.loads.models import RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.services import BY_NAME
from controlplane.spark.identification import by_certificate, by_credential, properties_text
from controlplane.spark.kept import Kept, program
from quota.contracts.instance import address_text
from quota.contracts.on_behalf import CLIENT_ID
from quota.tls.material import AUTHORITIES

if TYPE_CHECKING:
    from controlplane.clusters.identification import Identification
    from controlplane.loads.models import LoadRun

LOAD, COPY = "controlplane.lake.load", "controlplane.lake.copy_table"
LONGEST_S = LONGEST_RUN_S
"""After that a run is stopped: the next goes on where the table is."""
SLICE_S = 600.0
"""After that, while others wait, a run gives up its turn at its next commit, and waits again itself."""
UNTIL = "until"
"""In a run's folder: once this file is there, a program ends after its commit."""
STOPS_WITHIN_S = 8.0
"""The stack waits 20 s for its programs."""
LONGEST_TEXT = 1000
FETCH = {"fetch.max.bytes": str(8 * 2**20), "max.partition.fetch.bytes": str(2**20)}
"""What one answer brings at most, and so what a limit is overdrawn by."""
INHERITED = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|JAVA_HOME|JAVA_TOOL_OPTIONS|SPARK_\w+|PYSPARK_\w+|HADOOP_\w+|YARN_\w+|PYTHON\w+"
    r"|LD_LIBRARY_PATH|KRB5\w+|SSL_CERT_FILE|SLUICE_STACK_DIR"
)
"""Variables that the programs have. The others name the database, keys and secrets of this installation."""
_WORD = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")
_CLASSES = re.compile(r"^(?:Caused by: |[\w.$]+(?:Error|Exception): )+")
"""What Java and Python call an error, before what it says."""
_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")
"""What a row cannot hold, or what would make two lines of one in a log."""


@dataclass(frozen=True, slots=True)
class Program:
    """A module, its words, and the file in which it says what it does."""

    module: str
    words: list[str]
    report: Path

    @property
    def told(self) -> Told:
        return report.read(self.report)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is to be started: `programs`, one after the other."""

    programs: list[Program]
    folder: Path
    hidden: Mapping[str, str]  # what must not be shown to the tenant, and what is shown instead

    def text(self, said: str) -> str:
        """Words of the program as a tenant reads them: their own topic's name, members of REST for options."""
        for hidden, shown in self.hidden.items():
            said = said.replace(hidden, shown)
        said = _CLASSES.sub("", _NOT_TEXT.sub(" ", said))
        return _WORD.sub(lambda found: found[1].replace("-", "_"), said)[:LONGEST_TEXT]


def prepare(run: LoadRun, folder: Path) -> Prepared:
    """Write the files. Raises ClusterUnavailable, Unavailable."""
    load = run.load
    address = load.instance.cluster.address
    addresses = [address_text((broker.host, broker.port)) for broker in brokers.brokers(address)]
    physical = names_of(load.instance_id).topic_in(load.topic)
    properties = {"client.id": CLIENT_ID, **FETCH, **_identified(to_brokers(), folder)}
    shown = {
        physical: load.topic,
        load.folder: "the table",
        **dict.fromkeys(addresses, "the brokers"),
        f"{folder}/": "",
    }
    prepared = Prepared([], folder, shown)
    # What a tenant has named stands behind "=": it may begin with "-", as a topic may.
    words = [
        "--brokers", ",".join(addresses), "--topic", physical, f"--named={load.topic}", "--to", load.folder,
        "--schema", _schema(load.schema, folder),
        "--properties", str(_written(folder / "client.properties", properties_text(properties))),
        "--report", str(folder / "load.json"), "--until", str(folder / UNTIL), "--tidy",
    ]  # fmt: skip
    asked = replace(Asked.from_json(run.asked), skip_expired=load.skip_expired or run.asked.get("skip_expired", False))
    if load.format == Format.PARQUET:
        words.append("--once")
    loads = Program(LOAD, words + asked.words(), folder / "load.json")
    prepared.programs.extend(_around(loads, run, folder) if load.kind == Kind.BUCKET else [loads])
    return prepared


def _around(loads: Program, run: LoadRun, folder: Path) -> list[Program]:
    """Before a load into a bucket the bucket is tried; after it the table is copied there."""
    load = run.load
    credentials = _written(folder / "credentials", credentials_text(load.access_key, load.secret_opened()))
    words = [
        "--from", load.folder, "--bucket", load.bucket, f"--path={load.bucket_folder}",
        f"--region={load.region}",
        "--credentials", str(credentials), "--until", str(folder / UNTIL),
    ]  # fmt: skip
    if (endpoint := installed.buckets()) != AWS:
        words += ["--endpoint", endpoint]
    if load.format == Format.PARQUET:
        words.append("--plain")
    trial, copy = folder / "trial.json", folder / "copy.json"
    after = [] if load.copied_version is None else ["--after", str(load.copied_version)]
    return [
        Program(COPY, [*words, "--report", str(trial), "--try"], trial),
        loads,
        Program(COPY, [*words, "--report", str(copy), *after], copy),
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its state, what stands in its row, and up to which version the bucket has the table."""

    state: str
    members: Mapping[str, Any]
    copied_version: int | None = None
    is_whole: bool = True  # False: it has given up its turn


class Process:
    """A run that was started. Raises OSError where it cannot be."""

    def __init__(self, run: LoadRun, prepared: Prepared, submit: list[str]) -> None:
        self.run, self._prepared, self._submit = run, prepared, submit
        self._at = 0
        self.stops_because = ""
        self._process = self._started()
        self._began_s = time.monotonic()

    def status(self) -> int | None:
        """None: it goes on."""
        status = self._process.poll()
        if status != 0 or self._at + 1 == len(self._prepared.programs):
            return status
        self._at += 1
        self._process = self._started()
        return None

    @property
    def is_late(self) -> bool:
        """Whether it has run for longer than it may."""
        return time.monotonic() >= self._began_s + LONGEST_S

    @property
    def has_had_its_turn(self) -> bool:
        """Whether it is to let others go before.

        What loads a range again does not: it would begin with the first of it each time.
        """
        is_again = {"offsets", "from_time_ms"} & set(self.run.asked)
        return not is_again and time.monotonic() >= self._began_s + SLICE_S

    def give_way(self) -> None:
        """Have it end after its next commit."""
        (self._prepared.folder / UNTIL).touch()

    def says(self) -> str:
        """What is done now, for people."""
        return self._prepared.text(self._now.told.says)

    def ask(self, why: str = "") -> None:
        """Have it end; what it has committed stays. It is killed if it does not (`spark.keeper`)."""
        self.stops_because = why
        self._process.ask()

    def stop(self) -> None:
        """Ask it to end, and after a while do not ask any more."""
        self._process.stop()

    @property
    def copied_version(self) -> int | None:
        """Up to which version the bucket has the table by now; None: it is not known of this run."""
        return self._now.told.version

    def outcome(self) -> Outcome:
        """Of one that has ended."""
        status = self._process.ended()
        loaded = next(program.told for program in self._prepared.programs if program.module == LOAD)
        last, copied = self._now.told, self.copied_version
        run = self.run  # which has what it had loaded when it gave way before
        members = {
            "topic_id": loaded.topic_id or run.topic_id, "row_count": run.row_count + loaded.rows,
            "byte_count": run.byte_count + loaded.bytes, "commits": run.commits + loaded.commits,
            "problems": run.problems + loaded.problems, "gaps": [*run.gaps, *map(self._prepared.text, loaded.gaps)],
            "partitions": _together(run.partitions, loaded.partitions),
        }  # fmt: skip
        if last.status:
            members |= {"says": self._prepared.text(last.says), "exit_status": last.status}
            return Outcome(RunState.FAILED, members, copied)
        if status or last.status is None or loaded.status is None or self._at + 1 < len(self._prepared.programs):
            members["says"] = f"the program ended with status {status}, and did not say why"
            return Outcome(RunState.FAILED, members, copied)
        members |= {"says": self._prepared.text(self._summary(loaded, last)), "exit_status": 0}
        return Outcome(RunState.SUCCEEDED, members, copied, loaded.is_whole and last.is_whole)

    def close(self) -> None:
        """Remove its files."""
        shutil.rmtree(self._prepared.folder, ignore_errors=True)

    @property
    def _now(self) -> Program:
        return self._prepared.programs[self._at]

    def _summary(self, loaded: Told, last: Told) -> str:
        """Of a run that ended well. What was copied comes first where nothing was loaded: an earlier copy may have failed."""
        if self._now.module == LOAD:
            return loaded.says
        if not loaded.commits and last.version != self.run.load.copied_version:
            return f"{last.says}; loaded by runs before"
        return f"{loaded.says}; {last.says}"

    def _started(self) -> Kept:
        module, words = self._now.module, self._now.words
        chosen = {name: value for name, value in os.environ.items() if INHERITED.fullmatch(name)}
        chosen["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), chosen.get("PYTHONPATH")]))
        # What Spark keeps of a step goes with the run's folder, whatever becomes of the program.
        chosen["SPARK_LOCAL_DIRS"] = str(self._prepared.folder / "spark")
        submit = self._submit if module == LOAD else []
        return Kept([*program(module, submit), *words], stops_within_s=STOPS_WITHIN_S, environment=chosen)


def _together(before: Mapping[str, Any], since: Mapping[str, Any]) -> dict[str, Any]:
    """What a run has loaded of each partition, in the turns before and in this one."""
    found = dict(before)
    for partition, new in since.items():
        old = found.get(partition)
        found[partition] = new if old is None else {
            "first": min(old["first"], new["first"]),
            "end": max(old["end"], new["end"]),
            "rows": old["rows"] + new["rows"],
            "checksum": f"{(int(old['checksum'], 16) + int(new['checksum'], 16)) % MODULUS:016x}",
        }  # fmt: skip
    return found


def folder_of(run: LoadRun, home: Path) -> Path:
    """A new one, for this user alone."""
    home.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{run.pk}-", dir=home))


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
