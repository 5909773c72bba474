"""Identifiers: a prefix that says what it names, and letters from a random source that is handed in.

========= =================================== ======
prefix    names                               letters
========= =================================== ======
``ins-``  an instance; the letters are its key    8
``op-``   an operation                           12
``org-``  an organisation                        12
``key-``  an API key (not its secret)            12
``rule-`` a throttle rule of an instance         12
``iss-``  a token issuer of an instance          12
``prp-``  a proposal of an instance               12
``join-`` an invitation into an organisation     12
``alm-``  an alarm of an instance                 12
``rcv-``  a receiver of an instance's alarms      12
``dlv-``  a message to a receiver                 12
``mail-`` an e-mail of the service itself         12
``bud-``  a budget of an organisation              12
``reb-``  a proposal to rebalance a cluster       12
``load-`` a load of a topic into a lake           12
``pky-``  a passkey of a person                   12
``svc-``  a service account of an organisation    12
``rol-``  a role of an organisation's own         12
========= =================================== ======

The instance key is part of every physical topic name (quota.contracts.namespace), hence its fixed length.
"""

from __future__ import annotations

import string
from typing import Protocol

from quota.contracts.namespace import INSTANCE_ID_PREFIX, KEY_LENGTH

ALPHABET = string.ascii_lowercase + string.digits


class RandomSource(Protocol):
    """`random.Random`, or `random.SystemRandom` outside tests."""

    def choice(self, seq: str, /) -> str: ...


def letters(source: RandomSource, count: int) -> str:
    """`count` random letters and digits."""
    return "".join(source.choice(ALPHABET) for _ in range(count))


def instance_id(source: RandomSource) -> str:
    """Such as ``ins-k3v9x2qa``."""
    return INSTANCE_ID_PREFIX + letters(source, KEY_LENGTH)


def operation_id(source: RandomSource) -> str:
    """Such as ``op-8zk2m4x0q1ab``."""
    return "op-" + letters(source, 12)


def organisation_id(source: RandomSource) -> str:
    """Such as ``org-8zk2m4x0q1ab``."""
    return "org-" + letters(source, 12)


def api_key_id(source: RandomSource) -> str:
    """Such as ``key-8zk2m4x0q1ab``."""
    return "key-" + letters(source, 12)


def service_account_id(source: RandomSource) -> str:
    """Such as ``svc-8zk2m4x0q1ab``."""
    return "svc-" + letters(source, 12)


def role_id(source: RandomSource) -> str:
    """Such as ``rol-8zk2m4x0q1ab``."""
    return "rol-" + letters(source, 12)


def proposal_id(source: RandomSource) -> str:
    """Such as ``prp-8zk2m4x0q1ab``."""
    return "prp-" + letters(source, 12)


def throttle_rule_id(source: RandomSource) -> str:
    """Such as ``rule-8zk2m4x0q1ab``."""
    return "rule-" + letters(source, 12)


def token_issuer_id(source: RandomSource) -> str:
    """Such as ``iss-8zk2m4x0q1ab``."""
    return "iss-" + letters(source, 12)


def invitation_id(source: RandomSource) -> str:
    """Such as ``join-8zk2m4x0q1ab``."""
    return "join-" + letters(source, 12)


def alarm_id(source: RandomSource) -> str:
    """Such as ``alm-8zk2m4x0q1ab``."""
    return "alm-" + letters(source, 12)


def receiver_id(source: RandomSource) -> str:
    """Such as ``rcv-8zk2m4x0q1ab``."""
    return "rcv-" + letters(source, 12)


def delivery_id(source: RandomSource) -> str:
    """Such as ``dlv-8zk2m4x0q1ab``."""
    return "dlv-" + letters(source, 12)


def mail_id(source: RandomSource) -> str:
    """Such as ``mail-8zk2m4x0q1ab``."""
    return "mail-" + letters(source, 12)


def budget_id(source: RandomSource) -> str:
    """Such as ``bud-8zk2m4x0q1ab``."""
    return "bud-" + letters(source, 12)


def passkey_id(source: RandomSource) -> str:
    """Such as ``pky-8zk2m4x0q1ab``."""
    return "pky-" + letters(source, 12)


def scheduled_change_id(source: RandomSource) -> str:
    """Such as ``chg-8zk2m4x0q1ab``."""
    return "chg-" + letters(source, 12)


def rebalance_id(source: RandomSource) -> str:
    """Such as ``reb-8zk2m4x0q1ab``."""
    return "reb-" + letters(source, 12)


def load_id(source: RandomSource) -> str:
    """Such as ``load-8zk2m4x0q1ab``."""
    return "load-" + letters(source, 12)
