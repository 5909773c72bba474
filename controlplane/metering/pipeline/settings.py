"""The environment of the job, read once and typed.

===================== ========================================================= ================================
variable              meaning                                                   default
===================== ========================================================= ================================
SLUICE_METERED_CLUSTER  whose usage the job reads, by the name it is registered with  ``default``
SLUICE_BROKERS        internal listeners of its brokers, ``host:port,host:port``  ``127.0.0.1:20011``
SLUICE_SECRETS_FILE   JSON with ``credentials``: ``{"metering": "…"}``          ``<stack dir>/secrets.json``
SLUICE_CLUSTER_SECURITY, SLUICE_CLUSTER_TLS  as of controlplane/env.py; the folder has to be  ``sasl_plaintext``
                      where Spark's executors are as well
SLUICE_STACK_DIR      checkpoint, lake and Ivy's folder lie below it            ``var``
DATABASE_URL          where usage goes; see controlplane/env.py                 ``var/db.sqlite3``
SPARK_MASTER          a Spark cluster; unset: threads of this process           ``local[2]``
SLUICE_LAKE           where tables go, any URL that Spark writes to            ``<stack dir>/lake``
SLUICE_USAGE_TRIGGER_S  seconds between micro-batches                           ``5``
SLUICE_SPARK_SUBMIT   how the runner starts jobs, in words of a shell:          this Python
                      ``spark-submit --master yarn --deploy-mode client``
===================== ========================================================= ================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.env import Environment, EnvironmentProblem
from controlplane.spark.identification import by_certificate, by_credential
from quota.contracts.identity import METERING
from quota.tls.material import AUTHORITIES, COMBINED

USER = METERING.name
DEFAULT_CLUSTER = "default"
"""The one of an installation that has registered no other; and of rows from before there were several."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Settings:
    """What one job is told by its environment."""

    cluster: str
    brokers: str
    environment: Environment = field(repr=False)
    master: str
    lake: str
    trigger_s: int
    home: Path  # the job's own files

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Settings:
        environment = Environment.read(variables)
        return cls(
            cluster=_cluster(variables),
            brokers=variables.get("SLUICE_BROKERS") or "127.0.0.1:20011",
            environment=environment,
            master=variables.get("SPARK_MASTER") or "local[2]",
            lake=variables.get("SLUICE_LAKE") or str(environment.stack_dir / "lake"),
            trigger_s=int(variables.get("SLUICE_USAGE_TRIGGER_S") or 5),
            home=environment.stack_dir / "metering",
        )

    @property
    def checkpoint(self) -> Path:
        """Spark's, of this cluster's stream."""
        return self.home / ("checkpoint" if self.cluster == DEFAULT_CLUSTER else f"checkpoint-{self.cluster}")

    def kafka_options(self) -> dict[str, str]:
        """For Spark's Kafka source. The credential goes from the file into the JVM's memory; no command line sees it.

        Over TLS the JVM reads the files itself, when a client of Kafka is made.
        """
        folder = self._tls_folder()
        if folder is not None:
            chosen = by_certificate(folder / AUTHORITIES, folder / COMBINED)
        else:
            chosen = by_credential(USER, self.environment.keys().own(METERING) or "")
        chosen = {"bootstrap.servers": self.brokers, **chosen}
        return {f"kafka.{name}": value for name, value in chosen.items()}

    def tls_files(self) -> tuple[bytes, ...] | None:
        """What is in the files of TLS now; None: there is none, or they cannot be read. Clients keep what they have read."""
        folder = self._tls_folder()
        if folder is None:
            return None
        try:
            return tuple((folder / name).read_bytes() for name in (COMBINED, AUTHORITIES))
        except OSError:
            return None

    def _tls_folder(self) -> Path | None:
        return self.environment.cluster_tls if self.environment.cluster_security.connects_with_tls else None


def _cluster(variables: Mapping[str, str]) -> str:
    name = variables.get("SLUICE_METERED_CLUSTER") or DEFAULT_CLUSTER
    if not _NAME.fullmatch(name):
        raise EnvironmentProblem(f"SLUICE_METERED_CLUSTER must be the name of a cluster, not {name!r}")
    return name
