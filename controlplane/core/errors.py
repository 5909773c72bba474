"""Every error that a caller may be told, as one tree. Each carries the decision: HTTP status, stable code, retriable.

::

    SluiceError
    ├── Invalid                  400  invalid              a field is wrong; `errors` names each
    ├── Unauthenticated          401  unauthenticated
    ├── Forbidden                403  forbidden            the role does not allow it
    ├── NotFound                 404  not_found            missing, or another organisation's: the two look alike
    │   └── NotForCaller         404  not_found            nor does this one look otherwise, which goes on record
    ├── Conflict                 409  conflict             the state does not allow it now
    │   ├── AlreadyExists        409  already_exists
    │   ├── LimitReached         409  limit_reached        something bought is used up
    │   ├── CapacityExhausted    409  capacity_exhausted   something the service gives out has run out, such as ports
    │   │   ├── ClusterFull      409  cluster_full         too much of the cluster is sold; `members` says what, and how much
    │   │   └── NoPlace          409  no_place             no cluster that takes new instances is where the tenant wishes
    │   ├── OrganisationCapReached  409  organisation_cap  more than the organisation may have; `members` as above
    │   ├── PriceUnconfirmed     409  price_unconfirmed    dear enough to be asked for twice
    │   └── ConcurrentChange     409  concurrent_change    another writer was faster; retriable
    ├── PreconditionFailed       412  precondition_failed  it is no longer as the caller has seen it (If-Match)
    ├── TooManyAttempts          429  too_many_attempts    `retry_after_s` says how long to wait; retriable
    ├── TooManyRequests          429  too_many_requests    the same, of a key or an organisation by REST; retriable
    ├── BandwidthUsedUp          429  bandwidth_used_up    what was read or written is to be paid for first; retriable
    ├── Unsupported              501  unsupported          the cluster cannot do it yet
    ├── OperationFailed          500  operation_failed     a step ended an operation for good
    └── Unavailable              503  unavailable          something behind us is away; retriable
        ├── ClusterUnavailable   503  cluster_unavailable
        └── MasterUnavailable    503  master_unavailable

UnscopedQueryError stands outside: it is a bug, never an answer.
"""

# ruff: noqa: N818  # the tree reads as the answers it stands for: NotFound, Conflict

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one member of a request."""

    field: str  # dotted path; empty for the document as a whole
    detail: str


class SluiceError(Exception):
    """Base of the tree; `str()` is the sentence shown to the caller, `members` is the same for programs."""

    http_status = 500
    code = "internal"
    title = "Internal error"
    retriable = False

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: Sequence[FieldProblem] = (),
        members: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.code
        self.errors = tuple(errors)
        self.members = dict(members)


class Invalid(SluiceError):
    """A request that can never succeed as it is."""

    http_status, code, title = 400, "invalid", "The request is not valid"

    @classmethod
    def field(cls, field: str, detail: str) -> Invalid:
        """The common case: one field."""
        return cls.fields([FieldProblem(field, detail)])

    @classmethod
    def fields(cls, problems: Sequence[FieldProblem]) -> Invalid:
        """Everything that is wrong, in one sentence."""
        return cls("; ".join(f"{each.field}: {each.detail}" for each in problems), errors=problems)


def in_one_pass(*asked: Callable[[], Any]) -> list[Any]:
    """What each finds. Raises one Invalid with everything that is wrong with all of them."""
    found: list[Any] = []
    problems: list[FieldProblem] = []
    for ask in asked:
        try:
            found.append(ask())
        except Invalid as error:
            problems += error.errors
    if problems:
        raise Invalid.fields(problems)
    return found


class Unauthenticated(SluiceError):
    """No API key, or one that is not valid."""

    http_status, code, title = 401, "unauthenticated", "A valid API key is needed"


class Forbidden(SluiceError):
    """The caller is known, and may not."""

    http_status, code, title = 403, "forbidden", "Not allowed"


class NotFound(SluiceError):
    """Nothing of this name belongs to the caller."""

    http_status, code, title = 404, "not_found", "Not found"


class NotForCaller(NotFound):
    """The caller's key or role is for other instances than this one. The answer is that of one that is not there."""


class Conflict(SluiceError):
    """The state of things does not allow it now."""

    http_status, code, title = 409, "conflict", "Conflict"


class AlreadyExists(Conflict):
    """The name is taken."""

    code, title = "already_exists", "Already exists"


class LimitReached(Conflict):
    """More than was bought."""

    code, title = "limit_reached", "Limit reached"


class CapacityExhausted(Conflict):
    """No room in the physical cluster."""

    code, title = "capacity_exhausted", "No capacity"


class ClusterFull(CapacityExhausted):
    """More of the cluster would be sold than operators allow."""

    code, title = "cluster_full", "The cluster is full"


class NoPlace(CapacityExhausted):
    """No cluster takes new instances, or none that does is as the tenant wishes."""

    code, title = "no_place", "There is no place for it"


class OrganisationCapReached(Conflict):
    """More than the organisation may have."""

    code, title = "organisation_cap", "The organisation may not have so much"


class PriceUnconfirmed(Conflict):
    """A purchase above the threshold, without a word that its price is known."""

    code, title = "price_unconfirmed", "The price must be confirmed"


class ConcurrentChange(Conflict):
    """Compare-and-set lost too often."""

    code, title, retriable = "concurrent_change", "Changed by someone else", True


class PreconditionFailed(SluiceError):
    """Someone has changed it since the caller has looked."""

    http_status, code, title = 412, "precondition_failed", "Changed since it was read"


class TooManyAttempts(SluiceError):
    """Someone guesses, or looks like it."""

    http_status, code, title, retriable = 429, "too_many_attempts", "Too many attempts", True

    def __init__(self, retry_after_s: int, detail: str = "") -> None:
        minutes = -(-retry_after_s // 60)
        super().__init__(detail or f"too many attempts: try again in {minutes} minute{'s' if minutes != 1 else ''}")
        self.retry_after_s = retry_after_s


class TooManyRequests(SluiceError):
    """A program asks more often than it may."""

    http_status, code, title, retriable = 429, "too_many_requests", "Too many requests", True

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(f"{detail}: try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class BandwidthUsedUp(SluiceError):
    """The instance has used its bandwidth, and waits as its clients do."""

    http_status, code, title, retriable = 429, "bandwidth_used_up", "The instance's bandwidth is used up", True

    def __init__(self, wait_s: float) -> None:
        self.retry_after_s = max(1, math.ceil(wait_s))
        super().__init__(f"the instance's bandwidth is used up: try again in {self.retry_after_s} s")


class Unsupported(SluiceError):
    """The cluster does not offer it."""

    http_status, code, title = 501, "unsupported", "Not supported by this cluster"


class OperationFailed(SluiceError):
    """A step ended its operation; trying again would end the same way."""

    code, title = "operation_failed", "The operation failed"


class Unavailable(SluiceError):
    """Something this service stands on does not answer."""

    http_status, code, title, retriable = 503, "unavailable", "Temporarily unavailable", True


class ClusterUnavailable(Unavailable):
    """ZooKeeper or the brokers of a cluster do not answer, or not in time."""

    code = "cluster_unavailable"


class MasterUnavailable(Unavailable):
    """No flow master is active, or it does not answer in time."""

    code = "master_unavailable"


class UnscopedQueryError(RuntimeError):
    """Tenant data was about to be read without saying whose: a bug, found before it leaks."""
