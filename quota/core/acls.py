"""Who may do what by an instance's ACLs, as Kafka's `AclAuthorizer` decides it, with the reason.

A decision is about a principal, the address he asks from, an operation, and one resource by its name, as the tenant calls it:

1. A super user may do everything.
2. The ACLs of a resource are those of its type whose pattern fits its name: the name itself, a prefix of it, or the literal
   ``*``. Where there are none, whomever they would be for, `allow_everyone_if_no_acl_found` decides.
3. One of them that denies the operation (or ALL) to the principal or to ``User:*``, from his address, denies.
4. One that allows it to him allows. READ, WRITE, DELETE and ALTER allow to DESCRIBE, ALTER_CONFIGS allows DESCRIBE_CONFIGS;
   nothing is denied in that way.
5. Otherwise he may not.

Beyond Kafka a host may be a CIDR. An IPv4 address in an IPv6 one (``::ffff:10.0.0.7``) is the IPv4 address, on both sides.

**The index.** An `AclBook` finds the patterns of a name by one look for the name, one for ``*`` and one for each length that a
prefix of the type has; then the principal, the operation, and the host likewise by one look for each length of a network.
So a decision costs the same with one ACL as with thousands of other resources, principals or hosts; the last few thousand
are remembered. Building it takes
a few microseconds an ACL: `building` pauses on the way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple, TypeAlias

from quota.contracts.acls import ANYTHING, Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.instance import Authorizer
from quota.contracts.networks import network_of

EVERYBODY: Final = "User:*"
PER_STEP: Final = 16
"""ACLs between two pauses of `building`: 50 to 100 microseconds."""
_REMEMBERED: Final = 4_096
"""Addresses and networks of all instances, and decisions of each: clients ask the same again and again."""
_IPV4_MAPPED: Final = 96  # bits in front of an IPv4 address in an IPv6 one

_Op: TypeAlias = AclOperation
IMPLIED_BY: Final = {
    _Op.DESCRIBE: (_Op.DESCRIBE, _Op.READ, _Op.WRITE, _Op.DELETE, _Op.ALTER),
    _Op.DESCRIBE_CONFIGS: (_Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS),
}
"""By which operations, when they are allowed, an operation is allowed as well."""
_ALLOWED_BY: Final = {one: (*IMPLIED_BY.get(one, (one,)), _Op.ALL) for one in AclOperation}
_DENIED_BY: Final = {one: (one, _Op.ALL) for one in AclOperation}


class Reason(StrEnum):
    """Why it was decided so, in words."""

    ACL = "an ACL says so"
    SUPER_USER = "super user"
    EVERYONE = "everyone is allowed where there is none"
    NO_ACL = "no ACL for the resource"
    NONE_ALLOWS = "no ACL for the resource allows it"


class Decision(NamedTuple):
    """Whether, and why; `acl` is the one that decided, where the reason is `Reason.ACL`."""

    allowed: bool
    reason: Reason
    acl: Acl | None = None


_SUPER_USER: Final = Decision(allowed=True, reason=Reason.SUPER_USER)
_EVERYONE: Final = Decision(allowed=True, reason=Reason.EVERYONE)
_NO_ACL: Final = Decision(allowed=False, reason=Reason.NO_ACL)
_NONE_ALLOWS: Final = Decision(allowed=False, reason=Reason.NONE_ALLOWS)

_Address: TypeAlias = tuple[int, int]  # version, and the address as a number


@lru_cache(_REMEMBERED)
def _address(text: str) -> _Address:
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.version, int(address)


@lru_cache(_REMEMBERED)
def _network(text: str) -> tuple[int, int, int]:
    """Version, how many bits of an address do not count, and the others as a number."""
    network = network_of(text)
    address = network.network_address
    if isinstance(address, IPv6Address) and network.prefixlen >= _IPV4_MAPPED and address.ipv4_mapped is not None:
        network = ip_network((address.ipv4_mapped, network.prefixlen - _IPV4_MAPPED))
    ignored = network.max_prefixlen - network.prefixlen
    return network.version, ignored, int(network.network_address) >> ignored


class _Hosts:
    """ACLs that differ in their hosts only."""

    __slots__ = ("_anywhere", "_networks")

    def __init__(self) -> None:
        self._anywhere: Acl | None = None
        self._networks: dict[tuple[int, int], dict[int, Acl]] = {}  # by version and bits that do not count

    def add(self, acl: Acl) -> None:
        if acl.host == ANYTHING:
            self._anywhere = acl
            return
        version, ignored, prefix = _network(acl.host)
        self._networks.setdefault((version, ignored), {})[prefix] = acl

    def of(self, host: str) -> Acl | None:
        """One that an address is in."""
        if self._anywhere is not None or not self._networks:
            return self._anywhere
        version, number = _address(host)
        for (of_version, ignored), networks in self._networks.items():
            if of_version == version and (acl := networks.get(number >> ignored)) is not None:
                return acl
        return None


_Rules: TypeAlias = dict[AclOperation, _Hosts]


@dataclass(slots=True)
class _Rights:
    """What one principal is allowed and denied by the ACLs of one pattern."""

    denies: _Rules = field(default_factory=dict)
    allows: _Rules = field(default_factory=dict)

    def add(self, acl: Acl) -> None:
        rules = self.denies if acl.permission is Permission.DENY else self.allows
        rules.setdefault(acl.operation, _Hosts()).add(acl)


def _found(rules: _Rules, operations: tuple[AclOperation, ...], host: str) -> Acl | None:
    if rules:
        for operation in operations:
            hosts = rules.get(operation)
            if hosts is not None and (acl := hosts.of(host)) is not None:
                return acl
    return None


_Pattern: TypeAlias = dict[str, _Rights]  # by principal


class _Patterns:
    """The ACLs of one type of resource."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _Pattern] = {}
        self.prefixed: dict[str, _Pattern] = {}
        self.lengths: list[int] = []  # of the prefixes, the longest first

    def add(self, acl: Acl) -> None:
        patterns = self.literal if acl.pattern_type is PatternType.LITERAL else self.prefixed
        patterns.setdefault(acl.resource_name, {}).setdefault(acl.principal, _Rights()).add(acl)

    def complete(self) -> None:
        self.lengths = sorted({len(prefix) for prefix in self.prefixed}, reverse=True)

    def of(self, name: str) -> list[_Pattern]:
        """Those that fit a name, the nearest first."""
        found = []
        if (pattern := self.literal.get(name)) is not None:
            found.append(pattern)
        if self.lengths:
            size, prefixed = len(name), self.prefixed
            found += [
                pattern
                for length in self.lengths
                if length <= size and (pattern := prefixed.get(name[:length])) is not None
            ]
        if name != ANYTHING and (pattern := self.literal.get(ANYTHING)) is not None:
            found.append(pattern)
        return found


class AclBook:
    """The ACLs of one instance, to be asked."""

    def __init__(self, acls: Iterable[Acl], authorizer: Authorizer) -> None:
        self._super_users = frozenset(authorizer.super_users)
        self._without = _EVERYONE if authorizer.allow_everyone_if_no_acl_found else _NO_ACL
        self._types: dict[ResourceType, _Patterns] = {}
        self._decisions: dict[tuple[str, str, AclOperation, ResourceType, str], Decision] = {}
        for _ in self._taking(acls):
            continue

    @classmethod
    def building(cls, acls: Iterable[Acl], authorizer: Authorizer) -> Generator[None, None, AclBook]:
        """The same in steps of `PER_STEP` ACLs."""
        book = cls((), authorizer)
        yield from book._taking(acls)
        return book

    def _taking(self, acls: Iterable[Acl]) -> Iterator[None]:
        types = self._types
        for count, acl in enumerate(acls, 1):
            patterns = types.get(acl.resource_type)
            if patterns is None:
                patterns = types[acl.resource_type] = _Patterns()
            patterns.add(acl)
            if not count % PER_STEP:
                yield
        for patterns in types.values():
            patterns.complete()

    def letting_go(self) -> Generator[None, None, None]:
        """Empty it in steps, when nobody is to ask it any more: freed at once 5,000 ACLs take over a millisecond.

        Who asks all the same is refused.
        """
        types, decisions, self._types, self._decisions, self._without = self._types, self._decisions, {}, {}, _NO_ACL
        count = 0
        while decisions:
            decisions.popitem()
            count += 1
            if not count % PER_STEP:
                yield
        for patterns in types.values():
            for table in (patterns.literal, patterns.prefixed):
                while table:
                    pattern = table.popitem()[1]
                    while pattern:
                        pattern.popitem()
                        count += 1
                        if not count % PER_STEP:
                            yield

    @property
    def allows_everything(self) -> bool:
        """Whether nobody can be refused anything: there is no ACL, and everyone is allowed."""
        return self._without is _EVERYONE and not self._types

    def decide(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Whether a principal may, from an address. Raises ValueError for a host that is none, where it matters."""
        asked = (principal, host, operation, resource_type, name)
        decision = self._decisions.get(asked)
        if decision is None:
            if len(self._decisions) >= _REMEMBERED:
                self._decisions.clear()
            decision = self._decisions[asked] = self._decided(*asked)
        return decision

    def _decided(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Decision:
        if principal in self._super_users:
            return _SUPER_USER
        of_type = self._types.get(resource_type)
        found = of_type.of(name) if of_type is not None else None
        if not found:
            return self._without
        rights = [one for pattern in found for who in (principal, EVERYBODY) if (one := pattern.get(who)) is not None]
        for one in rights:
            if (acl := _found(one.denies, _DENIED_BY[operation], host)) is not None:
                return Decision(allowed=False, reason=Reason.ACL, acl=acl)
        for one in rights:
            if (acl := _found(one.allows, _ALLOWED_BY[operation], host)) is not None:
                return Decision(allowed=True, reason=Reason.ACL, acl=acl)
        return _NONE_ALLOWS

    def decide_by_type(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Whether a principal may for at least one resource of a type, whether it exists or not (KIP-679).

        Kafka's `authorizeByResourceType`: it looks for patterns that allow just this operation or ALL, and are not
        within one that denies it. With `allow_everyone_if_no_acl_found` only a DENY of all resources refuses.
        """
        if principal in self._super_users:
            return _SUPER_USER
        of_type = self._types.get(resource_type)
        if of_type is None:
            return self._without
        asked = _Asked((principal, EVERYBODY), host, _DENIED_BY[operation])
        everything = of_type.literal.get(ANYTHING)
        if everything is not None and (acl := asked.denied_by(everything)) is not None:
            return Decision(allowed=False, reason=Reason.ACL, acl=acl)
        if self._without is _EVERYONE:
            return _EVERYONE
        return _one_allowed(of_type, asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who asks for what, of pattern after pattern."""

    principals: tuple[str, str]
    host: str
    operations: tuple[AclOperation, ...]

    def denied_by(self, pattern: _Pattern) -> Acl | None:
        for principal in self.principals:
            if (rights := pattern.get(principal)) is not None:
                acl = _found(rights.denies, self.operations, self.host)
                if acl is not None:
                    return acl
        return None

    def allowed_by(self, pattern: _Pattern) -> Acl | None:
        for principal in self.principals:
            if (rights := pattern.get(principal)) is not None:
                acl = _found(rights.allows, self.operations, self.host)
                if acl is not None:
                    return acl
        return None


def _one_allowed(of_type: _Patterns, asked: _Asked) -> Decision:
    denied = _outermost(prefix for prefix, pattern in of_type.prefixed.items() if asked.denied_by(pattern) is not None)
    for prefix, pattern in of_type.prefixed.items():
        if (acl := asked.allowed_by(pattern)) is not None and not _is_within(prefix, denied):
            return Decision(allowed=True, reason=Reason.ACL, acl=acl)
    for name, pattern in of_type.literal.items():
        if (acl := asked.allowed_by(pattern)) is None:
            continue
        if name == ANYTHING or (asked.denied_by(pattern) is None and not _is_within(name, denied)):
            return Decision(allowed=True, reason=Reason.ACL, acl=acl)
    return _NONE_ALLOWS


def _outermost(prefixes: Iterable[str]) -> list[str]:
    """Sorted, without those that are within another: of the rest at most the one before a name can be a prefix of it."""
    outermost: list[str] = []
    for prefix in sorted(prefixes):
        if not outermost or not prefix.startswith(outermost[-1]):
            outermost.append(prefix)
    return outermost


def _is_within(name: str, outermost: list[str]) -> bool:
    at = bisect_right(outermost, name)
    return at > 0 and name.startswith(outermost[at - 1])
