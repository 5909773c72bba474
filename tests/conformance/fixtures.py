"""What other people's suites need: fetched by the ordinary package clients, built once, kept in `var/conformance`.

Nothing here is committed. Each function returns a folder that is complete: it is filled beside its place and moved there
in one step, so a run that was stopped half way begins anew. Raises `NotAvailableError` with a sentence where a program or
a package cannot be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import apache_kafka
from tests.support.alone import alone
from tests.support.apache_kafka import NotAvailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "var" / "conformance"

KAFKA_PYTHON = "3.0.12"
LIBRDKAFKA_PACKAGE = "@confluentinc/kafka-javascript@1.10.1"  # librdkafka 2.15.1, tests included
KAFKAJS = "kafkajs@2.2.4"
CODECS = ("kafkajs-snappy@1.1.0", "kafkajs-lz4@1.2.1")

FETCH_WITHIN_S = 180
"""So long a step of setting up may take."""
_TEST_PACKAGES = ("pytest==9.2.0", "pytest-mock", "pytest-timeout==2.4.0", "py", "crc32c", "lz4", "python-snappy")
_ALONE_WITHIN_S = 240
"""For this long a worker waits for another that fetches or builds the same: less than a test may take that needs it (600 s)."""
_BUILD_WITHIN_S = 1800
"""Of librdkafka, which no test builds: the comparison with its suite is a program of its own (`python -m tests.conformance`)."""
_OUT_OF_TIME = {124, 137}
"""Exit statuses of `timeout`: it ended the command, or had to kill it."""
_HEADERS = ("rapidjson/rapidjson.h", "zstd.h", "openssl/ssl.h", "sasl/sasl.h")
"""Without them librdkafka's build leaves tests or codecs out, and says nothing."""
_SERVICE_STUB = '''"""Stands for a file that the sdist lacks: the broker is started by somebody else."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    pass
'''


def kafka_python() -> Path:
    """`venv/` with the client's wheel, `test/` with its tests, `empty/`."""
    return _once(f"kafka-python-{KAFKA_PYTHON}", _fill_kafka_python)


def librdkafka() -> Path:
    """`deps/librdkafka/tests/test-runner` and its libraries, built; minutes of one core the first time."""
    return _once("librdkafka-2.15.1", _fill_librdkafka, wait_s=_BUILD_WITHIN_S)


def kafkajs() -> Path:
    """`node_modules/` with kafkajs and its codecs."""
    return _once("kafkajs-2.2.4", _fill_kafkajs)


def shim() -> Path:
    """A `KAFKA_PATH`: `bin/` with the wrappers that librdkafka's tests call, `libs/` with Kafka's jars."""
    jars = apache_kafka.jars()

    def fill(folder: Path) -> None:
        (folder / "libs").symlink_to(jars)
        (folder / "bin").mkdir()
        classes = {
            "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
            "kafka-acls.sh": "kafka.admin.AclCommand",
            "kafka-run-class.sh": "",
        }
        for name, main_class in classes.items():
            tool(folder / "bin" / name, main_class, jars)

    return _once("kafka-path", fill)


def tool(script: Path, main_class: str, jars: Path) -> None:
    """Make one of Kafka's scripts, which runs a class of its jars."""
    java = f'exec java -Xmx128M -XX:TieredStopAtLevel=1 -cp "$CLASSPATH:{jars}/*" {main_class} "$@"'
    script.write_text(f"#!/bin/sh\n{java}\n")
    script.chmod(0o755)


def java_classes(source: Path) -> str:
    """The class path of one of our Java programs, compiled against Kafka's own client."""
    return _compiled(source, apache_kafka.jars())


def _compiled(source: Path, jars: Path) -> str:
    classes = CACHE / "java" / source.stem
    made = classes / f"{source.stem}.class"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(source)])
    return f"{classes}:{jars}/*"


def streams_classes(source: Path) -> str:
    """The same for a program of Kafka Streams, whose jars Kafka's own folder does not hold."""

    def fill(folder: Path) -> None:
        pom = source.with_name("pom.xml")
        run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"])

    return _compiled(source, _once("kafka-streams-3.9.2", fill))


def go_program(source: Path) -> Path:
    """One of our Go programs, built as its go.mod and go.sum say; the Go client fetches what they name."""
    made = CACHE / "go" / source.name
    newest = max(file.stat().st_mtime for file in source.iterdir())
    with _alone(CACHE / "go" / f"{source.name}.lock"):
        if not made.exists() or made.stat().st_mtime < newest:
            run(["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(made), "."], source)
    return made


MAVEN = CACHE / "maven"
"""A repository of Maven's own: what is in it is complete for the programs that are marked beside it."""
MAVEN_OPTIONS = {"MAVEN_OPTS": "-Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_not_fetched: dict[str, str] = {}
"""Why not, by program: nobody waits for it twice."""


def maven(folder: Path, plugin: str) -> list[str]:
    """The beginning of a command line of Maven that needs no network, for the program in a folder.

    Everything that its pom.xml names is fetched the first time, and what the plugin needs. Raises NotAvailableError.
    """
    name = f"{plugin}-{sha256((folder / 'pom.xml').read_bytes()).hexdigest()[:12]}"
    command = ["mvn", "-q", "-B", f"-Dmaven.repo.local={MAVEN}"]
    if name in _not_fetched:
        raise NotAvailableError(_not_fetched[name])
    try:
        with _alone(MAVEN.with_name("maven.lock")):
            mark = MAVEN / f"{name}.fetched"
            if not mark.exists():
                run([*command, "test-compile", f"{plugin}:help"], folder, **MAVEN_OPTIONS)
                mark.touch()
    except NotAvailableError as error:
        _not_fetched[name] = str(error)
        raise
    return [*command, "-o"]


@contextmanager
def _alone(lock: Path, within_s: float = _ALONE_WITHIN_S) -> Iterator[None]:
    """`alone`, for whoever can do without. Raises NotAvailableError where another holds it for longer."""
    with ExitStack() as held:
        try:
            held.enter_context(alone(lock, within_s))
        except TimeoutError as error:
            raise NotAvailableError(str(error)) from error
        yield


def run(
    command: Sequence[str], folder: Path | None = None, *, within_s: float = FETCH_WITHIN_S, **environment: str
) -> None:
    """A step of setting up, ended after so long with all that it has started.

    Raises NotAvailableError with the end of what it said.
    """
    if shutil.which(command[0]) is None and not Path(command[0]).exists():
        raise NotAvailableError(f"there is no program `{command[0]}`")
    done = subprocess.run(
        ["timeout", "--kill-after=10", f"{within_s:g}", *command],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        why = f"not done in {within_s:g} s" if done.returncode in _OUT_OF_TIME else f"exit status {done.returncode}"
        raise NotAvailableError(f"{' '.join(command)[:200]}: {why}\n{done.stdout[-2000:]}")


def _once(name: str, fill: Callable[[Path], None], wait_s: float = _ALONE_WITHIN_S) -> Path:
    place = CACHE / name
    if place.is_dir():
        return place
    with _alone(CACHE / f"{name}.lock", wait_s):
        if not place.is_dir():  # another worker may have filled it meanwhile
            part = CACHE / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            fill(part)
            part.rename(place)
    return place


def _fill_kafka_python(folder: Path) -> None:
    run([sys.executable, "-m", "venv", str(folder / "venv")])
    python = str(folder / "venv/bin/python")
    wanted = [f"kafka-python=={KAFKA_PYTHON}", *_TEST_PACKAGES, "zstandard", "setuptools", "wheel"]
    run([python, "-m", "pip", "install", "--quiet", *wanted])
    sdist = ["--no-deps", "--no-binary", ":all:", f"kafka-python=={KAFKA_PYTHON}", "--dest", str(folder / "sdist")]
    run([python, "-m", "pip", "download", "--quiet", *sdist])
    with tarfile.open(next((folder / "sdist").glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "source", filter="data")
    # Not the package's own folder: what is installed is what is tested.
    shutil.copytree(next((folder / "source").glob("*/test")), folder / "test")
    (folder / "test/__init__.py").touch()
    (folder / "test/service.py").write_text(_SERVICE_STUB)
    (folder / "empty").mkdir()


def _fill_librdkafka(folder: Path) -> None:
    missing = [name for name in _HEADERS if not _has_header(name)]
    if missing:
        raise NotAvailableError(
            f"librdkafka's tests need the headers {', '.join(missing)}: Debian has them in rapidjson-dev, libzstd-dev, "
            "libssl-dev, libsasl2-dev"
        )
    run(["npm", "pack", "--silent", LIBRDKAFKA_PACKAGE], folder)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        members = (m for m in archive.getmembers() if m.name.startswith("package/deps/librdkafka/"))
        archive.extractall(folder / "source", members, filter="data")
    (folder / "source/package/deps").rename(folder / "deps")
    tree = folder / "deps/librdkafka"
    run(["nice", "./configure"], tree)
    run(["nice", "make", "-j1", "libs"], tree, within_s=_BUILD_WITHIN_S)
    run(["nice", "make", "-j1", "-C", "tests", "build"], tree, within_s=_BUILD_WITHIN_S)


def _has_header(name: str) -> bool:
    return any((Path(root) / name).exists() for root in ("/usr/include", "/usr/local/include"))


def _fill_kafkajs(folder: Path) -> None:
    (folder / "package.json").write_text('{"private": true}\n')
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", KAFKAJS, *CODECS]
    run(install, folder)
