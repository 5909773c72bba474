"""The environment, read once and typed: every setting that differs from one installation to the next.

===================== ==================================================================== ===========================
variable              meaning                                                              default
===================== ==================================================================== ===========================
DATABASE_URL          ``sqlite:///path`` (three slashes + path) or ``postgresql://…``      ``var/db.sqlite3``
REDIS_URL             Celery's broker                                                      ``redis://127.0.0.1:20002/0``
ZOOKEEPER_HOSTS       ``host:port,host:port`` with an optional ``/chroot``                 ``127.0.0.1:20001``
SLUICE_ZOOKEEPER_ACL  ``on``: nodes are for those only whom `quota.contracts.zookeeper` names;  ``on``
                      ``off``: for everybody (docs/runbooks/zookeeper-access.md)
SLUICE_ZOOKEEPER_CA   file with the authority of the ensemble's certificates: TLS to ZooKeeper  none
SLUICE_ZOOKEEPER_CERTIFICATE, SLUICE_ZOOKEEPER_KEY  what to show to it, where it asks         none
SLUICE_STACK_DIR      where this installation keeps its files                              ``var``
SLUICE_SECRETS_FILE   JSON with ``cluster_secret`` or what was made of it for this process  ``<stack dir>/secrets.json``
                      (`quota.contracts.identity`), ``django_secret_key``, ``metrics_token``,
                      ``access_key_secret``; ``accepted_django_secret_keys``, a list of earlier ones, while it
                      is being replaced
SLUICE_ENCRYPTION_KEYS_FILE  keys that seal secrets in the database, one a line: the first  ``<stack dir>/encryption.keys``
                      seals, each opens (``sealing/keyring.py``, docs/runbooks/encryption-keys.md)
SLUICE_SHARED_SECRET  ``said``: brokers or masters run that know no identities             ``refused``
SLUICE_CLUSTER_SECURITY  whether it speaks TLS to brokers and masters: ``ssl``, or a step on the  ``sasl_plaintext``
                      way there (`quota.contracts.internal_security`)
SLUICE_CLUSTER_TLS    folder of this process's certificate for that (`quota.tls.material`)  none
SLUICE_PORT_RANGE     ports for tenants' listeners, both ends included                     ``20100-21999``
SLUICE_PORT_REST_S    seconds that a port is given to nobody after its last use           ``604800`` (7 days)
SLUICE_DELETION_GRACE_S  seconds that a deleted instance can be restored; 0: deleting destroys  ``604800`` (7 days)
SLUICE_LISTEN_HOST    address brokers bind tenants' listeners to; empty: broker's own      ``127.0.0.1``
SLUICE_ADVERTISED_HOST  address tenants are told; empty: as bound                          empty
SLUICE_ALLOWED_HOSTS  host names this web server answers to, comma-separated               loopback names
SLUICE_SECRET_KEY     Django's secret key, before the one in the secrets file              none
SLUICE_METERING_ABSENT  why this installation runs without metering; empty: it has it      empty
SLUICE_METERING_KEEP_DAYS  days that are kept by topic, boot and hour before they are folded into instance-hours and  ``3``
                      topic-days, 2 or more (docs/decisions/0036-usage-is-folded.md)
SLUICE_BROKER_ROOM    what a broker has to sell, and how many times: ``bandwidth_mib_per_s=300*2,storage_gib=500*1.5``;
                      names and defaults of what is left out in ``admission/rules.py``      empty
SLUICE_CAPS           what a new organisation may have: ``instances=20,price_per_month=30000,price_per_month_usd=4300``  empty
SLUICE_PRICE_CONFIRMED_ABOVE  a price a month above which a purchase must be confirmed, in CNY; or ``CNY=5000,USD=700``  ``5000``
SLUICE_REBALANCE_APPROVAL  ``1``: somebody other than who proposed it has to approve a rebalance before it begins  ``0``
SLUICE_OPERATORS_CONTACT  whom tenants write to who need higher caps, such as an address   empty
SLUICE_SELLER         who sells, on invoices                                               ``Sluice``
SLUICE_TOKEN_ISSUER_HOSTS  from where keys of tenants' token issuers may be fetched, comma-separated;  empty
                      what an entry is says ``token_issuers/allowed.py``. Empty: no instance can have one
SLUICE_TOKEN_KEYS_EVERY_S  how often they are fetched anew                                 ``300``
SLUICE_SMTP           ``host:port`` of a mail server. Empty: no e-mail is sent, and alarms take no address  empty
SLUICE_SMTP_SECURITY  ``starttls``, ``tls`` (from the first byte) or ``off``              ``starttls``
SLUICE_SMTP_USER      whom to log in as there, with ``smtp_password`` of the secrets file; empty: nobody  empty
SLUICE_EMAIL_FROM     the address that e-mail is sent from; needed with SLUICE_SMTP         none
SLUICE_CONSOLE_URL    where people reach the console, such as ``https://kafka.example.com``: links in e-mails  empty
                      begin with it. Without it, or without SLUICE_SMTP, nobody confirms an address or
                      gets a forgotten password back by e-mail
SLUICE_SCRAPE_URL     where tenants' Prometheus reads their figures, if that is not SLUICE_CONSOLE_URL: pages and  empty
                      REST tell it. Without both, the address by which they are asked
METRICS_URL           a store of the history: Prometheus with ``--web.enable-remote-write-receiver``, or what speaks  empty
                      as it does; the address before ``/api/v1/query_range``. Empty: the history is in the
                      database (docs/subsystems/history.md). Log in by ``metrics_store_token`` of the secrets
                      file, or as METRICS_USER with ``metrics_store_password``
METRICS_WRITE_URL     the whole address that takes remote write, if it is not METRICS_URL with ``/api/v1/write``  empty
METRICS_USER          whom to log in as there; empty: nobody                               empty
SLUICE_WEBHOOK_NETWORKS  networks to which webhooks go though they are not public, over http as well:  empty
                      ``127.0.0.0/8,10.3.0.0/16``. For development, and for receivers inside
SLUICE_LAKE_FOLDERS   URI below which loads of topics have folders, for each organisation its own:  empty
                      ``file:/lake``, ``hdfs://…``. Empty: nothing can be loaded (docs/subsystems/loads.md)
SLUICE_LAKE_BUCKETS   ``aws``, or the endpoint of the store in which tenants have buckets of their own, which  empty
                      get copies: ``https://s3.example.com``. Empty: no copies
SLUICE_LAKE_LOADS_AT_ONCE  loads that one runner runs at the same time                     ``1``
SLUICE_TLS            ``1``: reached through a proxy that speaks TLS. Cookies are Secure, who comes by  ``0``
                      http is sent to https, browsers are told to stay there (HSTS); the proxy's ``X-Forwarded-Proto``
                      and the last of ``X-Forwarded-For`` are believed: it must set both, drop
                      headers with underscores in their names, and be the only way in
SLUICE_CLIENT_CERTIFICATES_FROM  networks of those proxies, such as ``10.3.0.0/24``: they are believed which client  empty
                      certificate a caller has shown, by which a tenant's Prometheus reads figures. They must set the
                      header anew, or take it away, in every request (docs/runbooks/client-certificates.md).
                      Empty: an API key is the only way
SLUICE_CLIENT_CERTIFICATE_HEADER  the header in which they tell it                         ``Client-Cert``
SLUICE_DEBUG          ``1`` shows tracebacks in the browser                                ``0``
SLUICE_REST_LIMITS    requests by REST in a minute: ``key_reads=3000,key_changes=600``; names and defaults  empty
                      of what is left out in REST_LIMITS below; 0: no limit
SLUICE_WORKERS        Celery's processes                                                   ``2``
SLUICE_LEASE_S        how long a worker owns an operation without a sign of life           ``20``
===================== ==================================================================== ===========================
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from quota.contracts.identity import Keys, SharedSecret
from quota.contracts.instance import ContractError
from quota.contracts.internal_security import InternalSecurity, internal_security
from quota.contracts.zookeeper import Party
from quota.zookeeper.settings import access_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quota.contracts.zookeeper_login import Access

ROOT = Path(__file__).resolve().parent.parent
HIGHEST_PORT = 32767
"""Above it the operating system hands out ports to outgoing connections, which would collide with listeners."""

PORT_REST_S = 7 * 24 * 3600
DELETION_GRACE_S = 7 * 24 * 3600
REST_LIMITS = MappingProxyType(
    {"key_reads": 3_000, "key_changes": 600, "organisation_reads": 12_000, "organisation_changes": 2_400}
)
"""Requests in a minute by an API key, and by all of an organisation: api/rates.py."""
MAIL_SECURITY = ("starttls", "tls", "off")
MAIL_WITHIN_S = 5
"""For each answer of the mail server."""
_HEADER = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
MOST_DIGITS = 10
"""Of a number in a list."""


class EnvironmentProblem(Exception):  # noqa: N818  # reads as what it is in the one sentence an operator sees
    """A variable that cannot be used; the text names it."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The settings of one installation."""

    database_url: str
    redis_url: str
    zookeeper_hosts: str
    zookeeper: Mapping[str, object]  # as `[zookeeper]` of a broker's file: `quota.zookeeper.settings`
    stack_dir: Path
    secrets_file: Path
    encryption_keys_file: Path  # read by sealing/installed.py
    port_range: tuple[int, int]  # both included
    port_rest_s: int
    deletion_grace_s: int  # 0: none
    listen_host: str
    advertised_host: str
    allowed_hosts: tuple[str, ...]
    metering_absent: str
    metering_keep_days: int  # read by metering/folding.py
    secret_key: str | None
    shared_secret: str
    cluster_security: InternalSecurity
    cluster_tls: Path | None
    broker_room: str  # read by admission/installed.py, as the next two
    caps: str
    price_confirmed_above: str
    operators_contact: str
    rebalance_approval: bool
    seller: str  # on invoices
    token_issuer_hosts: str  # read by token_issuers/installed.py
    token_keys_every_s: int
    smtp: str  # host:port; empty: no e-mail
    smtp_security: str
    smtp_user: str
    email_from: str
    console_url: str  # without a slash at its end; empty: no links by e-mail
    scrape_url: str  # likewise; empty: console_url
    metrics_url: str  # likewise; read by history/store/client.py, as the next two; empty: no store
    metrics_write_url: str
    metrics_user: str
    webhook_networks: str  # read by alarms/delivery/posting.py
    lake_folders: str  # read by loads/installed.py, as the next two
    lake_buckets: str
    lake_loads_at_once: int
    tls: bool
    client_certificates_from: tuple[IPv4Network | IPv6Network, ...]  # read by core/client_certificate.py, as the next
    client_certificate_header: str
    debug: bool
    rest_limits: Mapping[str, int]  # every one of REST_LIMITS; 0: none
    workers: int
    lease_s: int

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Environment:
        """From the process environment. Raises EnvironmentProblem."""
        stack_dir = Path(variables.get("SLUICE_STACK_DIR") or ROOT / "var").absolute()
        hosts = variables.get("SLUICE_ALLOWED_HOSTS") or "127.0.0.1,localhost,[::1]"
        return cls(
            database_url=variables.get("DATABASE_URL") or f"sqlite:///{quote(str(stack_dir))}/db.sqlite3",
            redis_url=variables.get("REDIS_URL") or "redis://127.0.0.1:20002/0",
            zookeeper_hosts=variables.get("ZOOKEEPER_HOSTS") or "127.0.0.1:20001",
            zookeeper=zookeeper_table(variables),
            stack_dir=stack_dir,
            secrets_file=Path(variables.get("SLUICE_SECRETS_FILE") or stack_dir / "secrets.json").absolute(),
            encryption_keys_file=Path(
                variables.get("SLUICE_ENCRYPTION_KEYS_FILE") or stack_dir / "encryption.keys"
            ).absolute(),
            port_range=_port_range(variables.get("SLUICE_PORT_RANGE") or "20100-21999"),
            port_rest_s=_positive(variables, "SLUICE_PORT_REST_S", PORT_REST_S),
            deletion_grace_s=_whole(variables, "SLUICE_DELETION_GRACE_S", DELETION_GRACE_S, least=0),
            listen_host=variables.get("SLUICE_LISTEN_HOST", "127.0.0.1"),
            advertised_host=variables.get("SLUICE_ADVERTISED_HOST", ""),
            allowed_hosts=tuple(host.strip() for host in hosts.split(",") if host.strip()),
            metering_absent=variables.get("SLUICE_METERING_ABSENT", ""),
            metering_keep_days=_whole(variables, "SLUICE_METERING_KEEP_DAYS", 3, least=2),
            secret_key=variables.get("SLUICE_SECRET_KEY") or None,
            shared_secret=_shared(variables.get("SLUICE_SHARED_SECRET") or SharedSecret.REFUSED),
            cluster_security=_cluster_security(variables),
            cluster_tls=Path(variables["SLUICE_CLUSTER_TLS"]) if variables.get("SLUICE_CLUSTER_TLS") else None,
            broker_room=variables.get("SLUICE_BROKER_ROOM", ""),
            caps=variables.get("SLUICE_CAPS", ""),
            price_confirmed_above=variables.get("SLUICE_PRICE_CONFIRMED_ABOVE") or "5000",
            operators_contact=variables.get("SLUICE_OPERATORS_CONTACT", "").strip(),
            rebalance_approval=variables.get("SLUICE_REBALANCE_APPROVAL", "0") == "1",
            seller=variables.get("SLUICE_SELLER", "").strip() or "Sluice",
            token_issuer_hosts=variables.get("SLUICE_TOKEN_ISSUER_HOSTS", ""),
            token_keys_every_s=_positive(variables, "SLUICE_TOKEN_KEYS_EVERY_S", 300),
            **_mail(variables),
            console_url=_base_url(variables, "SLUICE_CONSOLE_URL"),
            **_metrics(variables),
            webhook_networks=variables.get("SLUICE_WEBHOOK_NETWORKS", ""),
            lake_folders=variables.get("SLUICE_LAKE_FOLDERS", "").strip().rstrip("/"),
            lake_buckets=variables.get("SLUICE_LAKE_BUCKETS", "").strip().rstrip("/"),
            lake_loads_at_once=_positive(variables, "SLUICE_LAKE_LOADS_AT_ONCE", 1),
            tls=variables.get("SLUICE_TLS", "0") == "1",
            client_certificates_from=_proxies(variables),
            client_certificate_header=_client_certificate_header(variables),
            debug=variables.get("SLUICE_DEBUG", "0") == "1",
            rest_limits=_rest_limits(variables.get("SLUICE_REST_LIMITS", "")),
            workers=_positive(variables, "SLUICE_WORKERS", 2),
            lease_s=_positive(variables, "SLUICE_LEASE_S", 20),
        )

    def secret(self, name: str) -> str | None:
        """One member of the secrets file, read anew each time: the file may be written after this process began."""
        value = self._secrets().get(name)
        return None if value is None else str(value)

    def accepted_secret_keys(self) -> list[str]:
        """Earlier secret keys of Django's that are good until what they have signed has run out."""
        found = self._secrets().get("accepted_django_secret_keys", [])
        if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
            raise EnvironmentProblem(
                f"SLUICE_SECRETS_FILE {self.secrets_file}: accepted_django_secret_keys is not a list of strings"
            )
        return found

    def keys(self) -> Keys:
        """What this process has of the cluster's secrets, read anew each time. Raises EnvironmentProblem."""
        try:
            return Keys.from_document(self._secrets(), self.shared_secret)
        except ContractError as error:
            raise EnvironmentProblem(f"SLUICE_SECRETS_FILE {self.secrets_file}: {error}") from error

    def zookeeper_access(self, party: Party = Party.CONTROL_PLANE) -> Access:
        """What a client of ZooKeeper says of itself, read anew each time. Raises EnvironmentProblem."""
        secrets = self._secrets()
        try:
            keys = Keys.from_document(secrets)
            return access_of(self.zookeeper, (keys.secret, *keys.accepted), party, secrets.get("zookeeper"))
        except ContractError as error:
            raise EnvironmentProblem(f"SLUICE_ZOOKEEPER_…, SLUICE_SECRETS_FILE {self.secrets_file}: {error}") from error

    def _secrets(self) -> dict[str, Any]:
        try:
            document: dict[str, Any] = json.loads(self.secrets_file.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise EnvironmentProblem(f"SLUICE_SECRETS_FILE {self.secrets_file} is not JSON: {error}") from error
        return document

    def mail(self) -> dict[str, Any]:
        """Django's settings of e-mail, by name without ``EMAIL_``."""
        host, _, port = self.smtp.rpartition(":")
        return {
            "HOST": host.strip("[]"),
            "PORT": int(port or 0),
            "HOST_USER": self.smtp_user,
            "HOST_PASSWORD": (self.secret("smtp_password") or "") if self.smtp_user else "",
            "USE_TLS": self.smtp_security == "starttls",
            "USE_SSL": self.smtp_security == "tls",
            "TIMEOUT": MAIL_WITHIN_S,
        }

    def database(self) -> dict[str, Any]:
        """Django's DATABASES entry for DATABASE_URL."""
        url = urlsplit(self.database_url)
        if url.scheme == "sqlite":
            return _sqlite(url.path)
        if url.scheme in ("postgres", "postgresql"):
            return {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": unquote(url.path.removeprefix("/")),
                "USER": unquote(url.username or ""),
                "PASSWORD": unquote(url.password or ""),
                "HOST": url.hostname or "",
                "PORT": str(url.port or ""),
                "CONN_MAX_AGE": 60,
                "CONN_HEALTH_CHECKS": True,
                "OPTIONS": dict(parse_qsl(url.query)),
            }
        raise EnvironmentProblem(f"DATABASE_URL must begin with sqlite:/// or postgresql://, not {url.scheme!r}")


def _sqlite(path: str) -> dict[str, Any]:
    # sqlite:///relative and sqlite:////absolute, as elsewhere. The default above gives an absolute path.
    name = unquote(path.removeprefix("/"))
    if name != ":memory:":
        name = str((ROOT / name).absolute())
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": name,
        # IMMEDIATE: a transaction that will write takes the lock at its start and waits for it there; a deferred one
        # that read first fails at once ("database is locked") whatever the timeout, because its snapshot is stale.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def _port_range(text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    if not dash or not low.isdigit() or not high.isdigit() or not 0 < int(low) <= int(high) <= HIGHEST_PORT:
        raise EnvironmentProblem(f"SLUICE_PORT_RANGE must be LOW-HIGH within 1-{HIGHEST_PORT}, not {text!r}")
    return int(low), int(high)


def zookeeper_table(variables: Mapping[str, str]) -> dict[str, object]:
    """What the environment says of ACLs and TLS there, as brokers' and masters' files have it."""
    names = {"ca": "SLUICE_ZOOKEEPER_CA", "certificate": "SLUICE_ZOOKEEPER_CERTIFICATE", "key": "SLUICE_ZOOKEEPER_KEY"}
    tls = {member: variables[name] for member, name in names.items() if variables.get(name)}
    table: dict[str, object] = {"acl": variables.get("SLUICE_ZOOKEEPER_ACL") or "on"}
    return {**table, "tls": tls} if tls else table


def _mail(variables: Mapping[str, str]) -> dict[str, str]:
    smtp, security = variables.get("SLUICE_SMTP", "").strip(), variables.get("SLUICE_SMTP_SECURITY") or "starttls"
    sender = variables.get("SLUICE_EMAIL_FROM", "").strip()
    host, _, port = smtp.rpartition(":")
    if smtp and not (host and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise EnvironmentProblem(f"SLUICE_SMTP must be host:port, not {smtp!r}")
    if security not in MAIL_SECURITY:
        raise EnvironmentProblem(f"SLUICE_SMTP_SECURITY must be one of {', '.join(MAIL_SECURITY)}, not {security!r}")
    if smtp and "@" not in sender:
        raise EnvironmentProblem("SLUICE_SMTP is set: SLUICE_EMAIL_FROM has to say the address that e-mail comes from")
    return {
        "smtp": smtp,
        "smtp_security": security,
        "smtp_user": variables.get("SLUICE_SMTP_USER", ""),
        "email_from": sender,
    }


def _base_url(variables: Mapping[str, str], name: str) -> str:
    """Without a slash at its end."""
    text = variables.get(name, "")
    if "@" in text.strip().partition("://")[2].partition("/")[0]:  # what stands there may be a password
        raise EnvironmentProblem(f"{name} must be without a user or a password, such as https://kafka.example.com")
    url = urlsplit(text.strip())
    is_one = url.scheme in ("http", "https") and url.hostname and not (url.query or url.fragment or url.username)
    if text.strip() and not is_one:
        raise EnvironmentProblem(f"{name} must be such as https://kafka.example.com, not {text!r}")
    return text.strip().rstrip("/")


def _metrics(variables: Mapping[str, str]) -> dict[str, str]:
    """METRICS_URL was the address that tenants' Prometheus scrapes: where it must be that one, it is refused."""
    urls = {name: _base_url(variables, name) for name in ("SLUICE_CONSOLE_URL", "SLUICE_SCRAPE_URL", "METRICS_URL")}
    store = urls["METRICS_URL"]
    url = urlsplit(store)
    ours = [host.strip() for host in variables.get("SLUICE_ALLOWED_HOSTS", "").split(",")]
    is_ours = store in (urls["SLUICE_CONSOLE_URL"], urls["SLUICE_SCRAPE_URL"])
    if store and (is_ours or (url.hostname in ours and url.port is None and not url.path)):
        raise EnvironmentProblem(
            f"METRICS_URL is where the history is stored: a Prometheus, not this service at {store}. "
            "Where tenants' Prometheus reads their figures is SLUICE_SCRAPE_URL now"
        )
    write_url, user = _base_url(variables, "METRICS_WRITE_URL"), variables.get("METRICS_USER", "")
    if (write_url or user) and not store:
        raise EnvironmentProblem("METRICS_WRITE_URL and METRICS_USER belong to a METRICS_URL, and there is none")
    return {
        "scrape_url": urls["SLUICE_SCRAPE_URL"],
        "metrics_url": store,
        "metrics_write_url": write_url,
        "metrics_user": user,
    }


def _client_certificate_header(variables: Mapping[str, str]) -> str:
    header = variables.get("SLUICE_CLIENT_CERTIFICATE_HEADER") or "Client-Cert"
    if not _HEADER.fullmatch(header):
        raise EnvironmentProblem(f"SLUICE_CLIENT_CERTIFICATE_HEADER must be such as Client-Cert, not {header!r}")
    return header


def _proxies(variables: Mapping[str, str]) -> tuple[IPv4Network | IPv6Network, ...]:
    name = "SLUICE_CLIENT_CERTIFICATES_FROM"
    try:
        networks = tuple(ip_network(each.strip()) for each in variables.get(name, "").split(",") if each.strip())
    except ValueError as error:
        raise EnvironmentProblem(f"{name} must be networks such as 10.3.0.0/24: {error}") from error
    if any(not each.prefixlen for each in networks):
        raise EnvironmentProblem(
            f"{name} must be the networks of the proxies, not everybody's: anybody could write the header"
        )
    if networks and variables.get("SLUICE_TLS", "0") != "1":
        raise EnvironmentProblem(f"{name} names proxies that speak TLS: SLUICE_TLS has to be 1")
    return networks


def _rest_limits(text: str) -> Mapping[str, int]:
    found = dict(REST_LIMITS)
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        name, _, number = (part.strip() for part in entry.partition("="))
        if name not in REST_LIMITS or not (number.isascii() and number.isdigit() and len(number) < MOST_DIGITS):
            names = ", ".join(REST_LIMITS)
            raise EnvironmentProblem(f"SLUICE_REST_LIMITS takes {names}, each as NAME=NUMBER, not {entry!r}")
        found[name] = int(number)
    return MappingProxyType(found)


def _shared(text: str) -> str:
    if text not in tuple(SharedSecret):
        raise EnvironmentProblem(f"SLUICE_SHARED_SECRET must be one of {', '.join(SharedSecret)}, not {text!r}")
    return text


def _cluster_security(variables: Mapping[str, str]) -> InternalSecurity:
    try:
        found = internal_security(variables.get("SLUICE_CLUSTER_SECURITY") or InternalSecurity.SASL_PLAINTEXT)
    except ValueError as error:
        raise EnvironmentProblem(f"SLUICE_CLUSTER_SECURITY: {error}") from error
    if found.has_tls and not variables.get("SLUICE_CLUSTER_TLS"):
        raise EnvironmentProblem(f"SLUICE_CLUSTER_SECURITY is {found}: SLUICE_CLUSTER_TLS has to name a folder")
    return found


def _positive(variables: Mapping[str, str], name: str, default: int) -> int:
    return _whole(variables, name, default, least=1)


def _whole(variables: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = variables.get(name) or str(default)
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise EnvironmentProblem(f"{name} must be a whole number of {least} or more, not {text!r}")
    return int(text)
