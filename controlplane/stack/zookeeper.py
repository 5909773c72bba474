"""A real ZooKeeper 3.9 from the jars that the pyspark wheel carries: its files, its command line, its pulse.

One standalone server bound to 127.0.0.1. `tickTime=500` allows sessions from 1 s, so a dead broker is noticed soon;
the admin web server is off (it would want a port of its own) and only two of the four-letter words answer. Without a
log4j2 file of ours the classes would log at DEBUG. Layout of its directory: `zoo.cfg`, `log4j2.properties`, `data/`.

Nothing here needs Django: the tests start their own server with it.
"""

import importlib.util
import socket
from pathlib import Path

from controlplane.java import find_java

HOST = "127.0.0.1"
TICK_MS = 500

# The other 250 jars of Spark stay off the class path: the JVM would open each of them at start.
JARS = (
    "zookeeper-3",
    "zookeeper-jute-",
    "netty-",
    "slf4j-api-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-impl-",
    "jul-to-slf4j-",
    "metrics-core-",
    "snappy-java-",
    "commons-io-",
    "commons-cli-",
    "commons-lang3-",
    "jackson-core-2",
    "jackson-databind-",
    "jackson-annotations-",
    "jline-2",
)
JVM_OPTIONS = (
    "-Xmx256m",  # 96 were too few for 10,000 topics, with a broker that starts anew and reads them all
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.4lw.commands.whitelist=srvr,ruok",
)
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


def prepare(directory: Path, port: int) -> list[str]:
    """Write the server's files under `directory` (kept data stays) and return the command that runs it."""
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    log4j2 = directory / "log4j2.properties"
    log4j2.write_text(LOG4J2)
    config = directory / "zoo.cfg"
    config.write_text(_config(data, port))
    classpath = ":".join(str(jar) for jar in _jars())
    return [
        str(find_java()),
        *JVM_OPTIONS,
        f"-Dlog4j2.configurationFile={log4j2}",
        "-cp",
        classpath,
        MAIN_CLASS,
        str(config),
    ]


def answers(host: str, port: int, *, timeout_s: float = 1.0) -> bool:
    """True when the server says `imok` to `ruok`."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"
    except OSError:
        return False


def _config(data: Path, port: int) -> str:
    lines = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": HOST,
        "tickTime": TICK_MS,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        # Old snapshots would grow without end: keep three, look once an hour.
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 1,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def _jars() -> list[Path]:
    wheel = importlib.util.find_spec("pyspark")
    if wheel is None or not wheel.submodule_search_locations:
        raise RuntimeError(
            "ZooKeeper's jars come from the pyspark wheel, which is not installed: `make up` installs it."
        )
    folder = Path(wheel.submodule_search_locations[0]) / "jars"
    return sorted(jar for jar in folder.glob("*.jar") if jar.name.startswith(JARS))
