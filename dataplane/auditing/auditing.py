"""What happens at the instances that are audited (`InstanceSpec.audit`), as records on their way to each one's topic.

Of every instance, audited or not, what its clients have changed goes to the cluster's own topic as well (`CHANGES_TOPIC`), where
the broker is told so (`tells_changes`): fewer records, since one partition has those of all instances.

Whoever knows of something says it: admission of connections, `tenancy.logins` of logins, `handlers.context` of what access
refused, `requests.dispatch` of requests that have changed something. Callers ask `spec.audit` first where it would cost
something; an instance that is not audited, or to which nothing happens, has nothing here, and no timer runs for it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.auditing.outcomes import code_name, outcomes_of
from dataplane.auditing.trail import AT_ONCE, PER_S, Trail
from dataplane.tasks import Task
from dataplane.tenancy.access import is_kept_from
from quota.contracts.acls import READING
from quota.contracts.audit import CHANGES_TOPIC, AuditKind, AuditRecord
from quota.contracts.namespace import AUDIT_TOPIC, is_kept_by_the_service
from quota.core.acls import Reason
from quota.core.explain_access import acl_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataplane.doors import Doors, Timer
    from dataplane.protocol.errors import ErrorCode
    from dataplane.tenancy.access import Operation, Resource
    from dataplane.tenancy.instance import Instance
    from dataplane.tenancy.session import Session

EVERY_S = 1.0
_TRAILS_AT_ONCE = 4
"""Each of them may begin to write: a tenth of a millisecond or more."""
PORTION = 64
"""Records in one request. Of the largest that clients can cause (256 characters outside the BMP in each text that they choose)
these are less than `message.max.bytes`: what is larger would never be taken, and nothing behind it written."""
CHANGES_PER_S, CHANGES_AT_ONCE = 2, 100
"""Of one instance to the cluster's topic: what is beyond is counted."""
_OF_CHANGES = "/changes"
MOST_OF_A_REQUEST = 20
"""Things that one request names and that are told one by one; then how many more there were."""


class Sink(Protocol):
    """Where records go (`topics`)."""

    async def write(self, physical: str, records: Sequence[AuditRecord]) -> bool:
        """Whether they have been written."""
        ...


class Asked(Protocol):
    """The request that was refused something (`handlers.context.RequestContext`)."""

    @property
    def session(self) -> Session: ...

    @property
    def api_key(self) -> Any: ...

    @property
    def client_id(self) -> str | None: ...


class Auditing:
    """Of one broker."""

    def __init__(self, doors: Doors, broker: int, sink: Sink, *, tells_changes: bool = False) -> None:
        self._doors, self._broker, self._sink = doors, broker, sink
        self.tells_changes = tells_changes  # of every instance, in the cluster's topic
        # By instance key, that of changes with _OF_CHANGES behind it: those to which something has happened.
        self._trails: dict[str, tuple[Instance, Trail]] = {}
        self._writing: set[str] = set()  # keys of those whose records are on their way
        self._timer: Timer | None = None

    def stop(self) -> None:
        """What waits is not written any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._trails.clear()

    def forget(self, instance: Instance) -> None:
        """It is gone from this broker."""
        self._trails.pop(instance.names.key, None)
        self._trails.pop(instance.names.key + _OF_CHANGES, None)

    # --- what happens -------------------------------------------------------------------------------------------------

    def connected(self, instance: Instance, route: str, source: str, refusal: str | None) -> None:
        """A connection has come; a sentence why it was not let in, or None."""
        outcome = "accepted" if refusal is None else "refused"
        record = self._record(AuditKind.CONNECTION, outcome, source, route, reason=refusal)
        self._trail(instance).add(record, self._now())

    def authenticated(self, session: Session, user: str, is_right: bool, why: str | None) -> None:
        """Somebody has said who he is; a sentence why that is not so, where one is known."""
        instance = session.instance
        if instance is None or not instance.spec.audit:
            return
        outcome = "success" if is_right else "failure"
        mechanism = session.mechanism if session.login is None else session.login.exchange.mechanism
        record = self._of(
            session, AuditKind.AUTHENTICATION, outcome, principal=f"User:{user}", mechanism=mechanism, reason=why
        )
        self._trail(instance).add(record, self._now())

    def identified(self, session: Session, problem: str | None) -> None:
        """A client has shown a certificate: who it is by that, or a sentence why it is nobody."""
        instance = session.instance
        if instance is None or not instance.spec.audit:
            return
        outcome = "success" if problem is None else "failure"
        record = self._of(session, AuditKind.AUTHENTICATION, outcome, reason=problem)
        self._trail(instance).add(record, self._now())

    def denied(self, asked: Asked, operation: Operation, resource: Resource, code: ErrorCode) -> None:
        """Access was refused. Asked for by a tenant's session only."""
        session = asked.session
        instance = session.instance
        assert instance is not None
        alike = (session.principal, session.peer, asked.api_key, operation, resource)
        self._trail(instance).add_denial(
            alike, lambda: self._denial(asked, instance, operation, resource, code), self._now()
        )

    def _denial(
        self, asked: Asked, instance: Instance, operation: Operation, resource: Resource, code: ErrorCode
    ) -> AuditRecord:
        kind = resource.kind.name
        return self._of(
            asked.session,
            AuditKind.DENIAL,
            code.name,
            client_id=asked.client_id,
            api=asked.api_key.name,
            operation=operation.name,
            resource=f"{kind}:{_tenants(instance, kind, resource.name)}",
            reason=_reason(asked.session, instance, operation, resource),
        )

    def answered(self, session: Session, api_key: Any, client_id: str | None, answer: Any) -> None:
        """A request of `AUDITED` has its answer."""
        instance = session.instance
        assert instance is not None
        own = self._trail(instance) if instance.spec.audit else None
        now = self._now()
        outcomes, more = outcomes_of(api_key, answer, MOST_OF_A_REQUEST)
        changes = None
        for kind, name, code in outcomes:
            resource = f"{kind}:{_tenants(instance, kind, name)}" if kind else None
            record = self._of(
                session,
                AuditKind.REQUEST,
                code_name(code),
                client_id=client_id,
                api=api_key.name,
                resource=resource,
            )
            if own is not None:
                own.add(record, now)
            if self.tells_changes and not code:
                changes = self._changes(instance)
                changes.add(replace(record, instance=instance.spec.id), now)
        if own is not None:
            own.leave_out(more)
        if changes is not None:
            changes.leave_out(more)

    # --- records ------------------------------------------------------------------------------------------------------

    def _of(self, session: Session, kind: AuditKind, outcome: str, **members: Any) -> AuditRecord:
        members.setdefault("principal", session.principal)
        return self._record(kind, outcome, session.peer, session.route, **members)

    def _record(self, kind: AuditKind, outcome: str, source: str, route: str, **members: Any) -> AuditRecord:
        return AuditRecord(self._doors.clock.now_ms(), self._broker, kind, outcome, source, route, **members)

    def _now(self) -> float:
        return self._doors.clock.monotonic()

    def _trail(self, instance: Instance) -> Trail:
        return self._known(instance.names.key, instance, PER_S, AT_ONCE)

    def _changes(self, instance: Instance) -> Trail:
        return self._known(instance.names.key + _OF_CHANGES, instance, CHANGES_PER_S, CHANGES_AT_ONCE)

    def _known(self, key: str, instance: Instance, per_s: int, at_once: int) -> Trail:
        known = self._trails.get(key)
        if known is None:
            known = self._trails[key] = (instance, Trail(self._now(), per_s=per_s, at_once=at_once))
            if self._timer is None:
                self._timer = self._doors.loop.call_later(EVERY_S, self._look)
        return known[1]

    # --- on their way -------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """At those to which something has happened, a few in each turn; no more timer when there is none."""
        self._look_on(iter(list(self._trails)))

    def _look_on(self, keys: Iterator[str]) -> None:
        now, some = self._now(), list(islice(keys, _TRAILS_AT_ONCE))
        try:
            for key in some:
                if key in self._trails:
                    self._look_at(key, now)
        finally:
            if len(some) == _TRAILS_AT_ONCE:
                self._doors.loop.call_soon(lambda: self._look_on(keys))
            else:
                self._timer = self._doors.loop.call_later(EVERY_S, self._look) if self._trails else None

    def _look_at(self, key: str, now: float) -> None:
        instance, trail = self._trails[key]
        try:
            trail.turn(now)
            if trail.waits and key not in self._writing:
                Task(self._write(key, instance, trail), "audit records")
            elif trail.is_idle and key not in self._writing:
                del self._trails[key]
        except Exception:
            self._trails.pop(key, None)  # what it holds is lost: else it would keep all behind it from being written
            raise

    async def _write(self, key: str, instance: Instance, trail: Trail) -> None:
        records, is_written = trail.take(PORTION), False
        self._writing.add(key)
        try:
            of_changes = key.endswith(_OF_CHANGES)
            physical = CHANGES_TOPIC if of_changes else instance.names.topic_in(AUDIT_TOPIC)
            is_written = await self._sink.write(physical, records)
        finally:
            self._writing.discard(key)
            if not is_written:
                trail.put_back(records)


def _tenants(instance: Instance, kind: str, name: str) -> str:
    """A name as the tenant has it."""
    if kind == "TOPIC":
        return instance.names.topic_out(name) if instance.names.owns(name) else ""
    if kind == "GROUP":
        return instance.names.group_out(name) if instance.names.owns(name) else ""
    if kind == "TRANSACTIONAL_ID":
        return instance.names.transactional_id_out(name) if instance.names.owns(name) else ""
    return name


def _reason(session: Session, instance: Instance, operation: Operation, resource: Resource) -> str | None:
    """Which rule has decided, where that is one of the tenant's."""
    if resource.kind.name == "TOPIC" and is_kept_from(session, resource.name):
        return "the topic's whitelist does not hold the address"
    if resource.kind.name == "TOPIC" and operation not in READING and is_kept_by_the_service(resource.name):
        return "the topic is the service's to change"
    if instance.acls is None:
        return None
    name = _tenants(instance, resource.kind.name, resource.name)
    decision = instance.acls.decide(session.principal, session.peer, operation, resource.kind, name)
    if decision.acl is not None:
        return acl_text(decision.acl)
    return _WHY.get(decision.reason)


_WHY = {
    Reason.NO_ACL: "no ACL is about it",
    Reason.NONE_ALLOWS: "no ACL permits it",
}
