"""What a route may be: the one list of its rules, for its members one by one and as they go together. Pure."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from controlplane.core.errors import FieldProblem
from controlplane.core.whitelist import whitelist_problems
from quota.contracts.instance import OAUTHBEARER, PLAIN, SECRETS_ARE_SENT, ClientCertificates, Security
from quota.core.principal_rules import rules_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

MOST_ROUTES = 5
"""Of an instance; one of them may be public. As CKafka's."""
MECHANISMS = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
SECURITIES = tuple(security.value for security in Security)
WITH_SASL = (Security.SASL_PLAINTEXT.value, Security.SASL_SSL.value)
WITH_TLS = (Security.SSL.value, Security.SASL_SSL.value)
CLIENT_CERTIFICATES = tuple(each.value for each in ClientCertificates)
MOST_CONNECTIONS = 50_000
MOST_MAPPING_RULES, LONGEST_MAPPING_RULE = 10, 200
MOST_ADVERTISED_HOSTS = 100
_HOST = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*",
    re.IGNORECASE | re.ASCII,  # or the sign of the kelvin would be a k
)
_MAPPING_RULE = re.compile(r"DEFAULT|RULE:.+/.*/[LU]?")

DEFAULTS: Mapping[str, Any] = {
    "security": Security.PLAINTEXT.value,
    "mechanisms": [],
    "allow_plain_in_clear": False,
    "client_certificates": ClientCertificates.NONE.value,
    "principal_mapping": [],
    "proxy_protocol": False,
    "whitelist": None,
    "connections": None,
    "connections_per_address": None,
    "advertised_host": "",
    "advertised_hosts": {},
    "public": False,
    "closes_at": None,
}
"""Every member that a tenant can choose, and what a route has that does not say."""


def route_problems(route: Mapping[str, Any], *, changed: Sequence[str], now: datetime) -> list[FieldProblem]:
    """What is wrong with a route of all the members of DEFAULTS; `changed` are those that were asked for just now.

    An end that has passed is wrong only where it is asked for: a route that has closed can be changed in other things.
    """
    found = [FieldProblem(name, problem) for name, rule in _RULES.items() if (problem := rule(route[name])) is not None]
    if route["whitelist"] is not None:
        found += whitelist_problems(route["whitelist"], field="whitelist")
    if found:
        return found
    if "closes_at" in changed and route["closes_at"] is not None and route["closes_at"] <= now:
        found.append(FieldProblem("closes_at", "must be in the future"))
    return [*found, *_together(route)]


def _together(route: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Members that are right by themselves."""
    security, mechanisms = route["security"], route["mechanisms"]
    if security in WITH_SASL and not mechanisms:
        yield FieldProblem("mechanisms", f"a route of {security} needs one or more of {', '.join(MECHANISMS)}")
    if security not in WITH_SASL and mechanisms:
        yield FieldProblem("mechanisms", f"on a route of {security} nobody logs in: leave it empty")
    shown = [name for name in mechanisms if name in SECRETS_ARE_SENT]
    if security == Security.SASL_PLAINTEXT and shown and not route["allow_plain_in_clear"]:
        what = "passwords" if PLAIN in shown else "tokens"
        yield FieldProblem(
            "mechanisms",
            f"{shown[0]} without TLS shows {what} to whoever listens: use sasl_ssl or SCRAM, or set allow_plain_in_clear",
        )
    if route["allow_plain_in_clear"] and (security != Security.SASL_PLAINTEXT or not shown):
        yield FieldProblem("allow_plain_in_clear", "is for PLAIN or OAUTHBEARER on a route of sasl_plaintext")
    if security not in WITH_TLS and route["client_certificates"] != ClientCertificates.NONE:
        yield FieldProblem("client_certificates", f"a route of {security} has no TLS to show a certificate in")
    if route["principal_mapping"] and route["client_certificates"] == ClientCertificates.NONE:
        yield FieldProblem("principal_mapping", "is for names in certificates: set client_certificates as well")


def _one_of(values: Sequence[str]) -> Callable[[object], str | None]:
    return lambda value: None if value in values else f"must be one of {', '.join(values)}"


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _connections(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_CONNECTIONS:
        return f"must be a whole number from 0 to {MOST_CONNECTIONS}, or null for no limit of its own"
    return None


def _mechanisms(value: Any) -> str | None:
    unknown = [each for each in value if each not in MECHANISMS]
    if unknown:
        return f"{unknown[0]!r} is none of {', '.join(MECHANISMS)}"
    return "names a mechanism twice" if len(set(value)) < len(value) else None


def _principal_mapping(value: Any) -> str | None:
    if len(value) > MOST_MAPPING_RULES:
        return f"has {len(value)} rules; at most {MOST_MAPPING_RULES} are allowed"
    for rule in value:
        if len(rule) > LONGEST_MAPPING_RULE:
            return f"a rule may have {LONGEST_MAPPING_RULE} characters"
        if not _MAPPING_RULE.fullmatch(rule):
            return f"{rule!r} is no rule: DEFAULT, or RULE:pattern/replacement/ with L or U behind it for case"
    return rules_problem(value)  # brokers would not open the route


def _host(value: Any) -> str | None:
    """Of a name or an address, without a port."""
    if value == "" or _HOST.fullmatch(value):
        return None
    try:
        ip_address(value)
        has_zone = "%" in value  # names a network card of one machine
    except ValueError:
        return f"{value!r} is neither a host name nor an address; the port is given out"
    return f"{value!r} has a zone, which means nothing to clients" if has_zone else None


def _hosts(value: Any) -> str | None:
    if len(value) > MOST_ADVERTISED_HOSTS:
        return f"has {len(value)} entries; at most {MOST_ADVERTISED_HOSTS} are allowed"
    for broker, host in value.items():
        if not re.fullmatch(r"[0-9]{1,9}", broker) or not host:
            return "must have ids of brokers, each with its host"
        problem = _host(host)
        if problem:
            return problem
    return None


_RULES: Mapping[str, Callable[[Any], str | None]] = {
    "security": _one_of(SECURITIES),
    "mechanisms": _mechanisms,
    "allow_plain_in_clear": _flag,
    "client_certificates": _one_of(CLIENT_CERTIFICATES),
    "principal_mapping": _principal_mapping,
    "proxy_protocol": _flag,
    "connections": _connections,
    "connections_per_address": _connections,
    "advertised_host": _host,
    "advertised_hosts": _hosts,
    "public": _flag,
}
