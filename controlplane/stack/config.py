"""The files that the processes of a stack read, and their environment.

broker-N.toml, master-N.toml, secrets.json, secrets/, encryption.keys.
Configuration files are written anew at each start, from the layout alone. Secrets are made once and then kept: what is
missing is added, so that a first run that was interrupted leaves nothing to repair. Brokers and masters, and the Spark job, are
given files of their own with what they need of them, written anew at each start. Certificates for what they say to each other are
issued by an authority of the stack's own, and renewed at a start when less than a third of their time is left.
"""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controlplane.env import zookeeper_table
from controlplane.sealing.keyring import drawn
from controlplane.stack import metering
from controlplane.stack.layout import CLUSTERS, HOST, Layout
from controlplane.stack.ports import own_stores
from quota.contracts import identity
from quota.contracts.identity import METERING, Keys
from quota.contracts.internal_security import InternalSecurity
from quota.tls.store import Store

SESSION_TIMEOUT_MS = 2_000
REPORT_PERIOD_MS = 1_000
LEASE_MS = 10_000
LEAST_STORAGE_GIB = 300
CERTIFICATES_FOR = timedelta(days=365)
LONGEST_COMMON_NAME = 64  # of a certificate (X.520)
PORT_REST_S = "3600"
"""One machine's tenants are one person's: a week would use up the ports of a stack that is tried out with vigour."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the three stores are; `own` names those that this stack starts itself."""

    zookeeper: str  # host:port,host:port
    chroot: str  # "" or "/path"
    redis_url: str
    database_url: str
    own: frozenset[str]
    zookeeper_access: Mapping[str, object]  # [zookeeper] of brokers and masters

    @classmethod
    def of(cls, layout: Layout, environment: Mapping[str, str]) -> "Stores":
        """The user's own (ZOOKEEPER_HOSTS, REDIS_URL, DATABASE_URL) before ours."""
        hosts = environment.get("ZOOKEEPER_HOSTS", "")
        zookeeper, slash, path = (hosts or f"{HOST}:{layout.zookeeper_port}").partition("/")
        if hosts and not path and layout.clusters > 1:
            raise ValueError(
                "ZOOKEEPER_HOSTS must end with a chroot, such as /sluice, where there are several CLUSTERS."
            )
        redis_url = environment.get("REDIS_URL", "")
        return cls(
            zookeeper=zookeeper,
            chroot=slash + path,
            redis_url=redis_url or f"redis://{HOST}:{layout.redis_port}/0",
            database_url=environment.get("DATABASE_URL") or f"sqlite:///{layout.directory}/db.sqlite3",
            own=own_stores(environment),
            zookeeper_access=zookeeper_table(environment),
        )

    def zookeeper_of(self, layout: Layout, cluster: int) -> tuple[str, str]:
        """Servers and chroot of a cluster: a ZooKeeper of its own, or on the user's a chroot beside that of the first."""
        if cluster == 1:
            return self.zookeeper, self.chroot
        if "zookeeper" in self.own:
            return f"{HOST}:{layout.zookeeper_port_of(cluster)}", ""
        return self.zookeeper, f"{self.chroot}-{cluster}"


def write_configuration(layout: Layout, stores: Stores) -> None:
    """Render every broker's and master's file."""
    layout.config.mkdir(parents=True, exist_ok=True)
    for cluster in layout.numbers:
        for broker in layout.brokers_of(cluster):
            (layout.config / f"broker-{broker}.toml").write_text(broker_toml(layout, stores, broker, cluster))
        for master in layout.masters_of(cluster):
            (layout.config / f"master-{master}.toml").write_text(master_toml(layout, stores, master, cluster))


def broker_toml(layout: Layout, stores: Stores, broker: int, cluster: int = 1) -> str:
    """What `python -m dataplane` reads."""
    zookeeper, chroot = stores.zookeeper_of(layout, cluster)
    return _toml(
        "broker",
        {
            "id": broker,
            "data_dirs": [str(layout.directory / "data" / f"broker-{broker}")],
            "internal": f"{HOST}:{layout.broker_port(broker)}",
            "zookeeper": zookeeper,
            "chroot": chroot,
            "secrets_file": str(layout.secrets_of("cluster")),
            "internal_security": str(InternalSecurity.SSL),
            "tls_folder": str(layout.tls_of(identity.broker(broker))),
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "rack": "",
            **({} if cluster == 1 else {"cluster": CLUSTERS[cluster - 1]}),  # as usage records name it
        },
    ) + "".join(
        _toml(table, members)
        for table, members in (("settings", {"changes_topic_enable": True}), ("zookeeper", stores.zookeeper_access))
    )


def master_toml(layout: Layout, stores: Stores, master: int, cluster: int = 1) -> str:
    """What `python -m quota` reads."""
    zookeeper, chroot = stores.zookeeper_of(layout, cluster)
    return _toml(
        "master",
        {
            "id": master,
            "report": f"{HOST}:{layout.report_port(master)}",
            "http": f"{HOST}:{layout.master_http_port(master)}",
            "zookeeper": zookeeper,
            "chroot": chroot,
            "secrets_file": str(layout.secrets_of("cluster")),
            "internal_security": str(InternalSecurity.SSL),
            "tls_folder": str(layout.tls_of(identity.master(master))),
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "period_ms": REPORT_PERIOD_MS,
            "lease_ms": LEASE_MS,
            "data_dir": str(layout.directory / "data" / f"master-{master}"),
        },
    ) + _toml("zookeeper", stores.zookeeper_access)


def process_environment(layout: Layout, stores: Stores, environment: Mapping[str, str]) -> dict[str, str]:
    """What every process of the stack finds in its environment."""
    return {
        **environment,
        "DATABASE_URL": stores.database_url,
        "REDIS_URL": stores.redis_url,
        "ZOOKEEPER_HOSTS": stores.zookeeper + stores.chroot,
        "SLUICE_STACK_DIR": str(layout.directory),
        "SLUICE_SECRETS_FILE": str(layout.secrets_file),
        "SLUICE_ENCRYPTION_KEYS_FILE": str(layout.encryption_keys_file),
        "SLUICE_CLUSTER_SECURITY": str(InternalSecurity.SSL),
        "SLUICE_CLUSTER_TLS": str(layout.tls_of(identity.CONTROL_PLANE)),
        "SLUICE_PORT_RANGE": layout.tenant_ports,
        "SLUICE_PORT_REST_S": environment.get("SLUICE_PORT_REST_S") or PORT_REST_S,
        "SLUICE_LISTEN_HOST": HOST,
        "SLUICE_BROKERS": internal_listeners(layout, 1),
        "SLUICE_BROKER_ROOM": environment.get("SLUICE_BROKER_ROOM") or broker_room(layout),
        "SLUICE_METERING_ABSENT": metering.absence(),
        "SLUICE_LAKE_FOLDERS": environment.get("SLUICE_LAKE_FOLDERS") or f"file:{layout.directory}/lake/loads",
        "PYTHONUNBUFFERED": "1",
    }


def environment_of(port: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The same of a stack that has run on this machine, for commands beside it. Raises ValueError with a sentence."""
    if not (port.isascii() and port.isdigit()):
        raise ValueError(f"{port!r} is not a stack's PORT, such as 20000.")
    layout = Layout.of(int(port))
    if not layout.secrets_file.exists():
        raise ValueError(f"{layout.directory} has no stack: make up PORT={port} makes one.")
    return process_environment(layout, Stores.of(layout, environment), environment)


def internal_listeners(layout: Layout, cluster: int) -> str:
    """Of the brokers of a cluster, for who reads its `__usage`."""
    return ",".join(f"{HOST}:{layout.broker_port(broker)}" for broker in layout.brokers_of(cluster))


def broker_room(layout: Layout) -> str:
    """What a broker of this machine has to sell: its part of the disk, and twice that is sold. Of the rest, the defaults.

    However small the disk, each can hold a few of the instances that the console suggests (100 GiB).
    """
    layout.directory.mkdir(parents=True, exist_ok=True)
    share_gib = shutil.disk_usage(layout.directory).total // len(layout.brokers) // 2**30
    return f"storage_gib={max(LEAST_STORAGE_GIB, share_gib)}*2"


def ensure_secrets(path: Path) -> dict[str, Any]:
    """The stack's secrets; those that do not exist yet are drawn now."""
    document = read_json(path)
    known = dict(document)
    document.setdefault("cluster_secret", secrets.token_urlsafe(32))
    document.setdefault("django_secret_key", secrets.token_urlsafe(48))
    document.setdefault("access_key_secret", secrets.token_urlsafe(32))
    document.setdefault("metrics_token", secrets.token_urlsafe(32))
    document.setdefault("admin_password", secrets.token_urlsafe(12))
    document.setdefault("api_keys", {})
    if document != known:
        write_private_json(path, document)
    return document


def ensure_encryption_keys(layout: Layout) -> None:
    """What seals secrets in the database; one key is drawn the first time.

    One that is gone is not replaced in silence, since the database holds what it has sealed. A file that is empty or broken
    stays as it is, and the processes say so. Raises ValueError with a sentence.
    """
    path, once = layout.encryption_keys_file, layout.encryption_drawn_file
    if not path.exists():
        if once.exists():
            raise ValueError(
                f"{path} is gone, and secrets in the database are sealed with its keys: put a copy back, or delete {once} to "
                "go on without these secrets (docs/runbooks/encryption-keys.md)."
            )
        write_private(path, f"# Seals secrets in the database: docs/runbooks/encryption-keys.md\n{drawn()}\n")
    once.touch()


def give_secrets(layout: Layout, document: Mapping[str, Any]) -> None:
    """Each process its own part of the stack's secrets."""
    layout.secrets_of("cluster").parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    cluster = {name: document[name] for name in ("cluster_secret", "accepted_cluster_secrets") if name in document}
    write_private_json(layout.secrets_of("cluster"), cluster)
    own = Keys.from_document(document).own(METERING)
    write_private_json(layout.secrets_of("metering"), {"credentials": {METERING.name: own}})


def give_certificates(layout: Layout) -> None:
    """Each process its own; all are for this machine's address."""
    store = Store(layout.tls, lambda: datetime.now(UTC))
    store.ensure_authority(f"Sluice CA of {layout.directory}"[:LONGEST_COMMON_NAME])
    servers = [*map(identity.broker, layout.brokers), *map(identity.master, layout.masters)]
    for each in (*servers, identity.CONTROL_PLANE, METERING, identity.OPERATOR, identity.MONITORING):
        store.ensure(each, [HOST] if each in servers else [], CERTIFICATES_FOR)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file, {} when there is none."""
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    assert isinstance(document, dict)
    return document


def write_private_json(path: Path, document: Mapping[str, Any]) -> None:
    """As `write_private`."""
    write_private(path, json.dumps(document, indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replace a file as a whole; readable by its owner only, from its first byte."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _toml(table: str, values: Mapping[str, object]) -> str:
    # JSON's strings, numbers and arrays of strings are TOML's too. A table within it comes last.
    within = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    lines = [
        f"[{table}]",
        *(f"{name} = {json.dumps(value)}" for name, value in values.items() if name not in within),
    ]
    return "\n".join(lines) + "\n" + "".join(_toml(f"{table}.{name}", inner) for name, inner in within.items())
