"""The master's configuration file.

TOML::

[master]
id = 1
report = "127.0.0.1:20021"            # brokers connect here
http = "127.0.0.1:20031"              # the read API
zookeeper = "127.0.0.1:20001"         # several with commas
chroot = ""
secrets_file = "/…/var/secrets/cluster.json"  # {"cluster_secret": …}: `quota.contracts.identity`
shared_secret = "refused"             # what the secret itself is good for; while brokers know nothing else: "accepted"
internal_security = "sasl_plaintext"  # or "ssl": both ports speak TLS, and brokers and readers show certificates
tls_folder = "/…/var/tls/master-1"    # where the certificate for that is: `quota.tls.material`
tls_identities = ["RULE:…"]           # from a certificate's subject to an identity; without: CN=<identity>
metrics = "identified"                # or "open": without a credential; instances are named there, clients are not
session_timeout_ms = 2000
period_ms = 1000
lease_ms = 10000
data_dir = "/…/var/data/master-1"     # where throttled intervals are kept; without it, they are not

[zookeeper]                           # ACLs and TLS there: `quota.zookeeper.settings`
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quota.contracts.identity import Keys, SharedSecret, master
from quota.contracts.instance import ContractError, parse_address
from quota.contracts.internal_security import InternalSecurity
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import NOBODY, Access
from quota.tls.current import Current
from quota.tls.shown import DEFAULT_RULES
from quota.zookeeper.settings import access_of


class ConfigError(Exception):
    """The configuration cannot be used; the text is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Config:
    """What a master is told at start."""

    id: int
    report: tuple[str, int]
    http: tuple[str, int]
    zookeeper: str
    keys: Keys = field(repr=False)
    zookeeper_access: Access = NOBODY
    metrics: str = "identified"
    chroot: str = ""
    session_timeout_ms: int = 2000
    period_ms: int = 1000
    lease_ms: int = 10_000
    data_dir: Path | None = None
    tls: Current | None = field(default=None, repr=False)  # None: both ports speak plaintext


def load(path: Path) -> Config:
    """Read and check the file and the secret it points to. Raises ConfigError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        table = document["master"]
        secrets = json.loads(Path(table["secrets_file"]).read_text(encoding="utf-8"))
        keys = Keys.from_document(secrets, str(table.get("shared_secret", SharedSecret.REFUSED)))
        if not keys.secret:
            raise ConfigError(f"{table['secrets_file']}: cluster_secret is empty")
        config = Config(
            id=int(table["id"]),
            report=parse_address(table["report"]),
            http=parse_address(table["http"]),
            zookeeper=str(table["zookeeper"]),
            keys=keys,
            zookeeper_access=access_of(document.get("zookeeper", {}), (keys.secret, *keys.accepted), Party.MASTERS),
            metrics=str(table.get("metrics", "identified")),
            chroot=str(table.get("chroot", "")).rstrip("/"),
            session_timeout_ms=int(table.get("session_timeout_ms", 2000)),
            period_ms=int(table.get("period_ms", 1000)),
            lease_ms=int(table.get("lease_ms", 10_000)),
            data_dir=Path(table["data_dir"]) if table.get("data_dir") else None,
            tls=_tls(table),
        )
    except KeyError as error:
        raise ConfigError(f"{path}: {error} is missing") from error
    except (OSError, ValueError, ContractError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    if config.metrics not in ("identified", "open"):
        raise ConfigError(f'{path}: metrics must be "identified" or "open", not {config.metrics!r}')
    if config.period_ms <= 0 or config.lease_ms < 3 * config.period_ms:
        raise ConfigError(f"{path}: lease_ms must be at least 3 periods, and a period more than 0 ms")
    return config


def _tls(table: Mapping[str, Any]) -> Current | None:
    """Raises OSError, ValueError."""
    security = table.get("internal_security", InternalSecurity.SASL_PLAINTEXT)
    if security == InternalSecurity.SASL_PLAINTEXT:
        return None
    if security != InternalSecurity.SSL or not table.get("tls_folder"):
        raise ValueError('internal_security of a master is "sasl_plaintext", or "ssl" with a tls_folder')
    rules = tuple(table.get("tls_identities", DEFAULT_RULES))
    return Current(table["tls_folder"], master(int(table["id"])), lambda path: Path(path).read_bytes(), rules)
