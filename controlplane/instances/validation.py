"""What may be bought: the one list of rules for an instance's members. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from controlplane.core.errors import FieldProblem, Invalid
from controlplane.core.text import name_problem
from controlplane.instances.windows import window_problem
from quota.contracts.users import LONGEST_NAME, RESERVED_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_BANDWIDTH_MIB_PER_S = 100_000
MOST_STORAGE_GIB = 1_000_000
MOST_PARTITIONS = 40_000
MOST_DEFAULT_PARTITIONS = 3_000
MOST_REPLICAS = 9
LEAST_MESSAGE_BYTES, MOST_MESSAGE_BYTES = 1024, 12 * 2**20
"""As CKafka's ModifyInstanceAttributes; brokers let tenants have no more."""
MOST_SUPER_USERS = 50
MOST_OF_AN_OPERATORS_LIMIT = 10_000_000
PLACEMENT_MEMBERS = ("zones", "apart_from")
MOST_WISHED, LONGEST_WISHED = 20, 63


def _amount(most: int, *, whole: bool) -> Callable[[object], str | None]:
    def problem(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            return "must be a whole number" if whole else "must be a number"
        if not math.isfinite(value) or not 0 < value <= most:
            return f"must be more than 0 and at most {most}"
        return None

    return problem


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


RULES: Mapping[str, Callable[[object], str | None]] = {
    "name": name_problem,
    "bandwidth_mib_per_s": _amount(MOST_BANDWIDTH_MIB_PER_S, whole=False),
    "storage_gib": _amount(MOST_STORAGE_GIB, whole=False),
    "partitions": _amount(MOST_PARTITIONS, whole=True),
    "deletion_protection": _flag,
    "maintenance_window": window_problem,
}


def _between(least: int, most: int) -> Callable[[object], str | None]:
    def problem(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number"
        return None if least <= value <= most else f"must be at least {least} and at most {most}"

    return problem


def _super_users(value: object) -> str | None:
    if not isinstance(value, list) or len(value) > MOST_SUPER_USERS:
        return f"must be a list of at most {MOST_SUPER_USERS} principals"
    for principal in value:
        kind, _, name = principal.partition(":") if isinstance(principal, str) else ("", "", "")
        if kind != "User" or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name in RESERVED_NAMES:
            return f'must hold principals, such as "User:admin", with names of 1 to {LONGEST_NAME} characters, not {principal!r}'
    return None


CONFIG_RULES: Mapping[str, Callable[[object], str | None]] = {
    "auto_create_topics": _flag,
    "default_partitions": _between(1, MOST_DEFAULT_PARTITIONS),
    "default_replication_factor": _between(1, MOST_REPLICAS),
    "max_message_bytes": _between(LEAST_MESSAGE_BYTES, MOST_MESSAGE_BYTES),
    "allow_everyone_if_no_acl_found": _flag,
    "super_users": _super_users,
    "audit": _flag,
}


def config_problems(config: Mapping[str, object], *, brokers: int) -> list[FieldProblem]:
    """Every member of a `config` that breaks its rule; there can be no more replicas than brokers."""
    problems = [
        FieldProblem(f"config.{name}", problem)
        for name, value in config.items()
        if (problem := CONFIG_RULES[name](value)) is not None
    ]
    replicas = config.get("default_replication_factor")
    if not problems and brokers and isinstance(replicas, int) and replicas > brokers:
        detail = f"must be at most {brokers}: the cluster has {brokers} brokers"
        problems.append(FieldProblem("config.default_replication_factor", detail))
    return problems


def placement_problems(placement: object) -> list[FieldProblem]:
    """Every member of a `placement` that breaks its rule. Whether zones and instances are there is not looked at."""
    if not isinstance(placement, Mapping):
        return [FieldProblem("placement", "must be an object")]
    problems = [FieldProblem(f"placement.{name}", "is no wish") for name in placement if name not in PLACEMENT_MEMBERS]
    for name in PLACEMENT_MEMBERS:
        wished = placement.get(name, [])
        if not isinstance(wished, list | tuple) or len(wished) > MOST_WISHED:
            problems.append(FieldProblem(f"placement.{name}", f"must be a list of at most {MOST_WISHED}"))
        elif not all(isinstance(each, str) and 0 < len(each) <= LONGEST_WISHED for each in wished):
            problems.append(FieldProblem(f"placement.{name}", f"must hold names of 1 to {LONGEST_WISHED} characters"))
    return problems


def check(members: Mapping[str, object], *, others: Sequence[FieldProblem] = ()) -> None:
    """Raises Invalid naming every member that breaks its rule, and `others` that were found besides."""
    problems = [
        FieldProblem(name, problem) for name, value in members.items() if (problem := RULES[name](value)) is not None
    ]
    problems += others
    if problems:
        raise Invalid("; ".join(f"{problem.field} {problem.detail}" for problem in problems), errors=problems)
