"""Changing the ACLs of an instance. The request itself writes them to ZooKeeper: they are in force within 2 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.access import records
from controlplane.access.presets import Preset, preset_acls
from controlplane.core import audit
from controlplane.core.errors import FieldProblem, Invalid, LimitReached
from quota.contracts.acls import ANYTHING, MOST_ACLS, PatternType, acl_fault, acls_problem
from quota.core.acl_filters import AclFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.tenants.models import Organisation
    from quota.contracts.acls import Acl

MOST_AT_ONCE = 1_000
NAMED_IN_AUDIT = 50
"""Of the ACLs of one call; of more than these the record says how many there were."""


def acls_create(
    *, organisation: Organisation, actor: str, instance_id: str, acls: Sequence[Acl], is_batch: bool = False
) -> list[Acl]:
    """All of them, or none; one that is there already stays. Raises NotFound, Invalid, LimitReached, Conflict.

    Of a batch, problems are told with the place of the ACL that has them.
    """
    if not 0 < len(acls) <= MOST_AT_ONCE:
        raise Invalid.field("items", f"must be 1 to {MOST_AT_ONCE} ACLs")
    faults = [(f"items.{at}." if is_batch else "", acl_fault(acl)) for at, acl in enumerate(acls)]
    problems = list(dict.fromkeys(FieldProblem(place + fault[0], fault[1]) for place, fault in faults if fault))
    if problems:
        raise Invalid("; ".join(dict.fromkeys(problem.detail for problem in problems)), errors=problems)

    def decide(present: Sequence[Acl]) -> Sequence[Acl]:
        after = list(dict.fromkeys([*present, *acls]))
        problem = acls_problem(after)
        if problem:
            raise LimitReached(problem, code="too_many_acls" if len(after) > MOST_ACLS else "too_large")
        return after

    records.acls_write(organisation, instance_id, decide)
    _audit(organisation, actor, "acl.create", instance_id, acls)
    return list(acls)


def acls_preset(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    preset: str,
    principal: str,
    topic: str,
    group: str | None = None,
    host: str = ANYTHING,
    pattern_type: PatternType = PatternType.LITERAL,
) -> list[Acl]:
    """What a producer of a topic needs, or a consumer of a topic in a group. Raises as `acls_create`."""
    acls = preset_wanted(
        preset=preset, principal=principal, topic=topic, group=group, host=host, pattern_type=pattern_type
    )
    return acls_create(organisation=organisation, actor=actor, instance_id=instance_id, acls=acls)


def preset_wanted(
    *,
    preset: str,
    principal: str,
    topic: str,
    group: str | None = None,
    host: str = ANYTHING,
    pattern_type: PatternType = PatternType.LITERAL,
) -> list[Acl]:
    """The ACLs that `acls_preset` makes. Raises Invalid."""
    wanted = Preset(preset)
    if (group is not None) != (wanted is Preset.CONSUMER):
        raise Invalid.field("group", "belongs to a consumer: it needs one, and a producer has none")
    return list(
        preset_acls(wanted, principal=principal, host=host, topic=topic, group=group, pattern_type=pattern_type)
    )


def acls_delete(*, organisation: Organisation, actor: str, instance_id: str, wanted: AclFilter) -> list[Acl]:
    """Those that a filter takes, and no others. Raises NotFound, Conflict, ClusterUnavailable."""
    gone: list[Acl] = []

    def decide(present: Sequence[Acl]) -> Sequence[Acl]:
        gone[:] = [acl for acl in present if wanted.takes(acl)]
        return [acl for acl in present if not wanted.takes(acl)]

    records.acls_write(organisation, instance_id, decide)
    if gone:
        _audit(organisation, actor, "acl.delete", instance_id, gone)
    return gone


def _audit(organisation: Organisation, actor: str, action: str, instance_id: str, acls: Sequence[Acl]) -> None:
    detail = {"count": len(acls), "acls": [acl.document() for acl in acls[:NAMED_IN_AUDIT]]}
    audit.record(organisation=organisation, actor=actor, action=action, target=instance_id, detail=detail)
