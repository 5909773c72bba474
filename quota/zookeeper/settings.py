"""What a process is told about ZooKeeper's ACLs and TLS.

TOML::

[zookeeper]
acl = "on"                            # nodes are for those only whom the table names; "off": for everybody, as before
[zookeeper.tls]                       # without: no TLS
ca = "/…/zookeeper-ca.pem"            # the authority that is trusted, and no other
certificate = "/…/broker-1.pem"       # both where the ensemble asks for one (`ssl.clientAuth=need`)
key = "/…/broker-1.key"

The control plane has environment variables for the same members (`controlplane/env.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quota.contracts.instance import ContractError
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import Access, Tls, access_by_secret, access_given
from quota.zookeeper.tls import context_of

_ACL = {"on": True, "off": False}
_TLS_MEMBERS = frozenset(("ca", "certificate", "key"))


def access_of(table: object, secrets: Sequence[str], party: Party, given: object = None) -> Access:
    """Of `[zookeeper]`, by the cluster's secrets, or where there are none by what was `given`. Raises ContractError."""
    if not isinstance(table, Mapping) or set(table) - {"acl", "tls"}:
        raise ContractError("zookeeper: it has acl and tls, and nothing else")
    setting = table.get("acl", "on")
    if not isinstance(setting, str) or setting not in _ACL:
        raise ContractError(f'zookeeper.acl must be "on" or "off", not {setting!r}')
    closed, tls = _ACL[setting], _tls(table.get("tls"))
    if any(secrets):
        return access_by_secret(secrets, party, closed=closed, tls=tls)
    if isinstance(given, Mapping):
        return access_given(given, closed=closed, tls=tls)
    if closed:
        raise ContractError(
            'secrets: neither cluster_secret nor zookeeper is there; with zookeeper.acl = "off" none is needed'
        )
    return Access(tls=tls)


def _tls(table: object) -> Tls | None:
    if table is None:
        return None
    if (
        not isinstance(table, Mapping)
        or set(table) - _TLS_MEMBERS
        or not all(isinstance(v, str) for v in table.values())
    ):
        raise ContractError("zookeeper.tls: it has ca, certificate and key, names of files, and nothing else")
    tls = Tls(**table) if table.get("ca") else None
    if tls is None or (tls.key and not tls.certificate):
        raise ContractError("zookeeper.tls needs ca, and a certificate where there is a key")
    try:
        context_of(tls)
    except OSError as error:
        raise ContractError(f"zookeeper.tls: {error}") from error
    return tls
