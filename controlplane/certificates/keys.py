"""How private keys are sealed: in the rows with the control plane's secret key, in ZooKeeper with the cluster's secret.

Both secrets are replaced now and then. What an earlier one of the control plane's has sealed is opened as long as that one is
named (`Environment.accepted_secret_keys`), and sealed anew meanwhile (`services.seal_anew`). Of the node in ZooKeeper brokers
know earlier secrets likewise; here it is enough that what the present one does not open is written again.
"""

from __future__ import annotations

import os

from django.conf import settings

from controlplane.core.errors import Unavailable
from quota.contracts.certificates import RouteCertificate
from quota.contracts.sealing import NONCE_BYTES, opened_by_any, route_key_purpose, sealed, unsealed

AUTHORITY = ""
"""In place of a route: the instance's own authority."""


def sealed_here(key: bytes, instance_id: str, route: str) -> bytes:
    """For a row."""
    return sealed(key, secret=settings.SECRET_KEY, purpose=_purpose(instance_id, route), nonce=_nonce())


def opened_here(data: bytes, instance_id: str, route: str) -> bytes:
    """What stands in a row. Raises Unavailable: no secret key that is known has sealed it."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    try:
        return opened_by_any(data, secrets=secrets, purpose=_purpose(instance_id, route))
    except ValueError as error:
        raise Unavailable(
            f"a private key cannot be opened: {error}. Was the control plane's secret key changed, "
            "and the earlier one not named among the accepted ones?"
        ) from error


def sealed_anew(data: bytes, instance_id: str, route: str) -> bytes | None:
    """What an earlier secret key has sealed, sealed with the present one; None: it is already. Raises Unavailable."""
    try:
        unsealed(data, secret=settings.SECRET_KEY, purpose=_purpose(instance_id, route))
    except ValueError:
        return sealed_here(opened_here(data, instance_id, route), instance_id, route)
    return None


def cluster_secret() -> str:
    """Raises Unavailable."""
    secret = settings.ENVIRONMENT.secret("cluster_secret")
    if not secret:
        raise Unavailable("there is no cluster_secret to seal private keys with")
    return str(secret)


def sealed_for_brokers(key: bytes, instance_id: str, route: str, secret: str) -> bytes:
    """For the node in ZooKeeper."""
    return sealed(key, secret=secret, purpose=route_key_purpose(instance_id, route), nonce=_nonce())


def opened_as_brokers(item: RouteCertificate, instance_id: str, secret: str) -> bytes | None:
    """The private key that brokers have; None: not one that we have given them, or not with this secret."""
    if not item.key:
        return b""
    try:
        return unsealed(item.key, secret=secret, purpose=route_key_purpose(instance_id, item.route))
    except ValueError:
        return None


def _purpose(instance_id: str, route: str) -> str:
    return f"sluice control plane {instance_id}/{route}"


def _nonce() -> bytes:
    return os.urandom(NONCE_BYTES)
