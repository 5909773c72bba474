"""What can grow of an instance stands in nodes of its own, since one of ZooKeeper's holds less than a MiB.

::

    /sluice/whitelists/<id>   {"version": 1, "generation": 7, "whitelist": ["10.0.0.0/8"],
                               "topics": {"orders": ["10.1.2.3/32"]}}                     the control plane writes them
    /sluice/rules/<id>        {"version": 4, "items": [...]}: `quota.contracts.rules`     so do tenants' AdminClients
    /sluice/acls/<id>         the same: `quota.contracts.acls`                            likewise
    /sluice/users/<id>        the same: `quota.contracts.users`                           likewise
    /sluice/token_issuers/<id>  the same: `quota.contracts.token_issuers`                 the control plane alone

Whitelists are written in one transaction with the specification that needs them. A reader reads the specification first, so
what it finds behind it is of the same generation or a later one; anything else (no node, one that is not legible, an older
one) means that it does not know who may connect, and then nobody may. Rules, ACLs and users are written by compare-and-set on
their own nodes, at a version of the specification that has been seen, and so are token issuers. A node of them that is
missing is none of them. ACLs, users and token issuers that are not legible are not known, and then nobody may connect; rules
that are not stay what they were.

Sizes are bounded here and checked before anything is stored elsewhere: a write that ZooKeeper does not take costs the
connection, and looks as if ZooKeeper were away.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from quota.contracts.acls import AclSet
from quota.contracts.instance import (
    ACLS_PATH,
    CERTIFICATES_PATH,
    INSTANCES_PATH,
    RULES_PATH,
    TOKEN_ISSUERS_PATH,
    USERS_PATH,
    WHITELISTS_PATH,
    ContractError,
    InstanceSpec,
    UnreadAccessError,
    UnreadWhitelistsError,
    cidrs_of,
    to_bytes,
    topics_of,
)
from quota.contracts.rules import RuleSet
from quota.contracts.token_issuers import TokenIssuerSet
from quota.contracts.users import UserSet

VERSION = 1
LARGEST_WHITELISTS = 900_000
LARGEST_WRITE = 1_040_000
"""Bytes of a transaction: ZooKeeper takes 1,048,575 of a request (`jute.maxbuffer`), with its paths and headers."""


def spec_path(instance: str) -> str:
    """Where an instance's specification proper stands."""
    return f"{INSTANCES_PATH}/{instance}"


def whitelists_path(instance: str) -> str:
    """Where the whitelists of an instance stand."""
    return f"{WHITELISTS_PATH}/{instance}"


def rules_path(instance: str) -> str:
    """Where the throttle rules of an instance stand."""
    return f"{RULES_PATH}/{instance}"


def acls_path(instance: str) -> str:
    """Where the ACLs of an instance stand."""
    return f"{ACLS_PATH}/{instance}"


def users_path(instance: str) -> str:
    """Where the users of an instance stand."""
    return f"{USERS_PATH}/{instance}"


def token_issuers_path(instance: str) -> str:
    """Where the token issuers of an instance stand."""
    return f"{TOKEN_ISSUERS_PATH}/{instance}"


def certificates_path(instance: str) -> str:
    """Where the certificates of an instance's routes stand."""
    return f"{CERTIFICATES_PATH}/{instance}"


def beside_paths(instance: str) -> tuple[str, ...]:
    """All nodes that an instance may have beside its specification: they go with it."""
    paths = (whitelists_path, rules_path, acls_path, users_path, token_issuers_path, certificates_path)
    return tuple(path(instance) for path in paths)


def whitelists_json(generation: int, whitelist: Sequence[str], topic_whitelists: Mapping[str, Sequence[str]]) -> bytes:
    """The document of the whitelists."""
    topics = {topic: list(cidrs) for topic, cidrs in topic_whitelists.items()}
    return to_bytes({"version": VERSION, "generation": generation, "whitelist": list(whitelist), "topics": topics})


def whitelists_problem(whitelist: Sequence[str], topic_whitelists: Mapping[str, Sequence[str]]) -> str | None:
    """Why these are too many, in a sentence with the limit and the size; None: they are not."""
    size = len(whitelists_json(2**63, whitelist, topic_whitelists))
    if size <= LARGEST_WHITELISTS:
        return None
    return f"the whitelists of an instance and its topics may take {LARGEST_WHITELISTS} bytes, not {size}"


def nodes_of(spec: InstanceSpec) -> dict[str, bytes]:
    """What stands where, by path; the rules only where there have been any."""
    nodes = {
        spec_path(spec.id): spec.head_json(),
        whitelists_path(spec.id): whitelists_json(spec.generation, spec.whitelist, spec.topic_whitelists),
    }
    if spec.rules.version:
        nodes[rules_path(spec.id)] = spec.rules.to_json()
    return nodes


def rules_node(spec: InstanceSpec) -> tuple[str, bytes]:
    """Where the throttle rules of a specification stand, and what is there with them: of version 1, the specification itself."""
    if spec.whitelists_of is None:
        return spec_path(spec.id), spec.to_json()
    return rules_path(spec.id), spec.rules.to_json()


def joined(spec: InstanceSpec, whitelists: bytes | None, rules: bytes | None) -> InstanceSpec:
    """A specification with what its other nodes hold (None: there is no such node); of version 1, as it is.

    Raises UnreadWhitelistsError, and ContractError for the rules.
    """
    if spec.whitelists_of is None:
        return spec
    return with_rules(_with_whitelists(spec, whitelists, spec.whitelists_of), rules)


def with_rules(spec: InstanceSpec, rules: bytes | None) -> InstanceSpec:
    """`joined` for callers that do not need the whitelists. Raises ContractError."""
    if spec.whitelists_of is None or rules is None:
        return spec
    return replace(spec, rules=rules_from_json(rules))


def with_access(
    spec: InstanceSpec, acls: bytes | None, users: bytes | None, token_issuers: bytes | None = None
) -> InstanceSpec:
    """A specification with the ACLs, users and token issuers of its other nodes (None: there is no such node).

    Raises UnreadAccessError.
    """
    return replace(
        spec,
        acls=acls_from_json(acls),
        users=users_from_json(users),
        token_issuers=token_issuers_from_json(token_issuers),
    )


def acls_from_json(data: bytes | None) -> AclSet:
    """Those of a node; None: there is none. Raises UnreadAccessError."""
    try:
        return AclSet() if data is None else AclSet.from_document(json.loads(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadAccessError(f"its ACLs are not legible: {type(error).__name__}: {error}") from error


def acls_in_steps(data: bytes | None) -> Generator[None, None, AclSet]:
    """The same with pauses (`AclSet.reading`)."""
    try:
        return AclSet() if data is None else (yield from AclSet.reading(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadAccessError(f"its ACLs are not legible: {type(error).__name__}: {error}") from error


def users_from_json(data: bytes | None) -> UserSet:
    """Those of a node; None: there is none. Raises UnreadAccessError."""
    try:
        return UserSet() if data is None else UserSet.from_document(json.loads(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadAccessError(f"its users are not legible: {type(error).__name__}: {error}") from error


def users_in_steps(data: bytes | None) -> Generator[None, None, UserSet]:
    """The same with pauses (`UserSet.reading`)."""
    try:
        return UserSet() if data is None else (yield from UserSet.reading(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadAccessError(f"its users are not legible: {type(error).__name__}: {error}") from error


def token_issuers_from_json(data: bytes | None) -> TokenIssuerSet:
    """Those of a node; None: there is none. Raises UnreadAccessError. There are so few that it takes no steps."""
    try:
        return TokenIssuerSet() if data is None else TokenIssuerSet.from_document(json.loads(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadAccessError(f"its token issuers are not legible: {type(error).__name__}: {error}") from error


def rules_from_json(data: bytes) -> RuleSet:
    """Raises ContractError."""
    try:
        return RuleSet.from_document(json.loads(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ContractError(f"throttle rules: {type(error).__name__}: {error}") from error


def _with_whitelists(spec: InstanceSpec, data: bytes | None, needed: int) -> InstanceSpec:
    if data is None:
        raise UnreadWhitelistsError("its whitelists are missing")
    try:
        document = json.loads(data)
        version, generation = document["version"], document["generation"]
        if version > VERSION:
            raise UnreadWhitelistsError(f"whitelists: version {version} is newer than {VERSION}")
        if generation < needed:
            raise UnreadWhitelistsError(f"whitelists: generation {generation} is older than {needed}, which it needs")
        return replace(spec, whitelist=cidrs_of(document["whitelist"]), topic_whitelists=topics_of(document["topics"]))
    except ContractError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadWhitelistsError(f"whitelists: {type(error).__name__}: {error}") from error
