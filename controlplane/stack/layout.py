"""Where one stack lives: its folder and its ports, all from one base port.

Ports of base P (default 20000): console and API P, ZooKeeper P+1, Redis P+2, broker n P+10+n (internal listener),
master n P+20+n (reports) and P+30+n (its HTTP), tenants' listeners P+100 to P+1999. A stack uses no other, so two with
bases 2000 apart run side by side; all stay below 32768, above which the system lends ports to outgoing connections.

A stack of several physical clusters (`make up CLUSTERS=2`) has three brokers and two masters for each, numbered on from those of
the clusters before, and a ZooKeeper for each: P+3 and P+4 beside P+1.

The folder is `var/` for the default base and `var/stack-<P>/` for any other, so that two stacks of one checkout share
nothing:

    stack.json  secrets.json  encryption.keys  encryption.drawn  demo.json  up.lock  welcomed
    db.sqlite3
    secrets/{cluster,metering}.json   tls/authority/   tls/<identity>/
    config/{broker,master}-N.toml   data/broker-N/   zookeeper/   redis/   log/<process>.log   reports/   backups/
"""

from dataclasses import dataclass
from pathlib import Path

from quota.contracts.identity import Identity

PROJECT = Path(__file__).resolve().parent.parent.parent
HOST = "127.0.0.1"

DEFAULT_BASE = 20_000
SPAN = 2_000
LOWEST_BASE = 1_024
HIGHEST_BASE = 32_768 - SPAN

BROKERS = (1, 2, 3)
MASTERS = (1, 2)
"""Of a cluster. The second one has 4 to 6, and 3 and 4."""
CLUSTERS = ("default", "second", "third")
"""What they are called, from number 1 on."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Folder, ports and clusters of one stack."""

    directory: Path
    base: int
    clusters: int = 1

    @classmethod
    def of(cls, base: int, directory: Path | None = None, clusters: int = 1) -> "Layout":
        """The stack with this base port, in `directory` or where such a stack lives by default.

        Raises:
            ValueError: with a sentence, when the ports would not all fit between 1024 and 32767, or the clusters not
                between them.
        """
        if not 1 <= clusters <= len(CLUSTERS):
            raise ValueError(f"CLUSTERS must be between 1 and {len(CLUSTERS)}.")
        if not LOWEST_BASE <= base <= HIGHEST_BASE:
            raise ValueError(
                f"PORT must be between {LOWEST_BASE} and {HIGHEST_BASE}: a stack uses PORT to PORT+{SPAN - 1}."
            )
        var = PROJECT / "var"
        default = var if base == DEFAULT_BASE else var / f"stack-{base}"
        return cls((directory or default).absolute(), base, clusters)

    @property
    def numbers(self) -> range:
        """Of the clusters, from 1."""
        return range(1, self.clusters + 1)

    def brokers_of(self, cluster: int) -> tuple[int, ...]:
        """Ids of the brokers of a cluster; no other cluster has them."""
        return tuple(len(BROKERS) * (cluster - 1) + n for n in BROKERS)

    def masters_of(self, cluster: int) -> tuple[int, ...]:
        """The same of its masters."""
        return tuple(len(MASTERS) * (cluster - 1) + n for n in MASTERS)

    @property
    def brokers(self) -> tuple[int, ...]:
        """Of all clusters."""
        return tuple(n for cluster in self.numbers for n in self.brokers_of(cluster))

    @property
    def masters(self) -> tuple[int, ...]:
        """Of all clusters."""
        return tuple(n for cluster in self.numbers for n in self.masters_of(cluster))

    @property
    def zookeeper_port(self) -> int:
        return self.zookeeper_port_of(1)

    def zookeeper_port_of(self, cluster: int) -> int:
        """Of the ZooKeeper of a cluster."""
        return self.base + (1 if cluster == 1 else 1 + cluster)

    def zookeeper_directory(self, cluster: int) -> Path:
        """Where its data are."""
        return self.directory / ("zookeeper" if cluster == 1 else f"zookeeper-{cluster}")

    @property
    def redis_port(self) -> int:
        return self.base + 2

    def broker_port(self, broker: int) -> int:
        return self.base + 10 + broker

    def report_port(self, master: int) -> int:
        """Where a master takes the brokers' reports."""
        return self.base + 20 + master

    def master_http_port(self, master: int) -> int:
        return self.base + 30 + master

    @property
    def tenant_ports(self) -> str:
        """The range of the tenants' listeners, both ends included."""
        return f"{self.base + 100}-{self.base + SPAN - 1}"

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.base}"

    @property
    def config(self) -> Path:
        """Folder of the rendered configuration files."""
        return self.directory / "config"

    @property
    def log(self) -> Path:
        """Folder with one log file for each process."""
        return self.directory / "log"

    def secrets_of(self, process: str) -> Path:
        """What a process is given of the secrets, and no more of them."""
        return self.directory / "secrets" / f"{process}.json"

    @property
    def tls(self) -> Path:
        """The authority of what the processes say to each other, and a folder for each of them."""
        return self.directory / "tls"

    def tls_of(self, identity: Identity) -> Path:
        """A process's certificate, its key, and whom it believes."""
        return self.tls / identity.name

    @property
    def secrets_file(self) -> Path:
        """Cluster secret, admin password, API keys, Django's secret key; mode 0600."""
        return self.directory / "secrets.json"

    @property
    def encryption_keys_file(self) -> Path:
        """What seals secrets in the database; mode 0600."""
        return self.directory / "encryption.keys"

    @property
    def encryption_drawn_file(self) -> Path:
        """Exists once the first of these keys was drawn; empty."""
        return self.directory / "encryption.drawn"

    @property
    def stack_file(self) -> Path:
        """What runs where, while it runs; mode 0600."""
        return self.directory / "stack.json"

    @property
    def demo_file(self) -> Path:
        """What the demo step found or made: tenants and their instances."""
        return self.directory / "demo.json"

    @property
    def welcomed_file(self) -> Path:
        """Exists once the admin's password was shown."""
        return self.directory / "welcomed"

    @property
    def lock_file(self) -> Path:
        """Held by the one `make up` of this folder."""
        return self.directory / "up.lock"
