"""How private keys are sealed: in the rows with the installation's keys, in ZooKeeper with the cluster's secret.

That secret is replaced now and then. Of the node in ZooKeeper brokers know earlier ones as long as they are named; here it is
enough that what the present one does not open is written again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.certificates.models import Authority, RouteCertificate
from controlplane.core import sealed as rows
from controlplane.core.errors import Unavailable
from quota.contracts.sealing import NONCE_BYTES, route_key_purpose, sealed, unsealed

if TYPE_CHECKING:
    from quota.contracts.certificates import RouteCertificate as Shown


def route_key_sealed(key: bytes, instance_id: str, route: str) -> bytes:
    """For the row of a route. Raises Unavailable."""
    return rows.sealed(RouteCertificate, "key", key, instance_id=instance_id, route=route)


def authority_key_sealed(key: bytes, instance_id: str) -> bytes:
    """For the row of an instance's authority. Raises Unavailable."""
    return rows.sealed(Authority, "key", key, instance_id=instance_id)


def opened(row: RouteCertificate | Authority) -> bytes:
    """The private key of a row; empty: it has none. Raises Unavailable."""
    if isinstance(row, RouteCertificate):
        lost = Unavailable(f"the private key of route {row.route} cannot be read: tell the operators of the service")
    else:
        lost = Unavailable(
            "the private key of the instance's authority cannot be read: tell the operators of the service"
        )
    return rows.opened(row, "key", lost)


def cluster_secret() -> str:
    """Raises Unavailable."""
    secret = settings.ENVIRONMENT.secret("cluster_secret")
    if not secret:
        raise Unavailable("there is no cluster_secret to seal private keys with")
    return str(secret)


def sealed_for_brokers(key: bytes, instance_id: str, route: str, secret: str) -> bytes:
    """For the node in ZooKeeper."""
    return sealed(key, secret=secret, purpose=route_key_purpose(instance_id, route), nonce=_nonce())


def opened_as_brokers(item: Shown, instance_id: str, secret: str) -> bytes | None:
    """The private key that brokers have; None: not one that we have given them, or not with this secret."""
    if not item.key:
        return b""
    try:
        return unsealed(item.key, secret=secret, purpose=route_key_purpose(instance_id, item.route))
    except ValueError:
        return None


def _nonce() -> bytes:
    return os.urandom(NONCE_BYTES)
