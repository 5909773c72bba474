"""The ACLs of an instance while a request adds some or takes some away. What one costs does not grow with what there is. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.release import released
from dataplane.security.many_filters import by_first_filter
from quota.contracts.acls import CLUSTER_NAME, LARGEST_ACLS, MOST_ACLS, Acl, ResourceType, acl_problem
from quota.contracts.items import item_bytes, joined_items, read_items, size_of_items
from quota.core.acl_filters import AclFilter
from quota.steps import Steps

T = TypeVar("T")
_ACLS_PER_STEP, _CHOSEN_PER_STEP = 10, 60


class AclDraft:
    """Begins with what stands in their node."""

    def __init__(self, version: int, acls: list[Acl]) -> None:
        self._version, self._acls = version, acls  # sorted, as they are kept
        self._items: dict[Acl, bytes] = {}
        self._size = 0  # of the items
        self._is_changed = False

    @classmethod
    def of(cls, data: bytes | None) -> Steps[AclDraft]:
        """None: there are none yet. Raises ValueError, KeyError, TypeError: the node is not legible."""
        version, acls = (0, []) if data is None else (yield from read_items(data, Acl.from_document))
        draft = cls(version, [])
        for place, acl in enumerate(acls, 1):
            if place % _ACLS_PER_STEP == 0:
                yield None
            if acl not in draft._items:  # two that differed in what is not read any more are one
                draft._keep(acl)
                draft._acls.append(acl)
        return draft

    @property
    def version(self) -> int:
        """Of the ACLs as they are now."""
        return self._version + self._is_changed

    def add(self, acl: Acl) -> None:
        """One more, or one that is there already. Raises ApiError, and nothing is changed."""
        if acl in self._items:
            return
        _check(acl)
        if len(self._items) >= MOST_ACLS:
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"an instance may have {MOST_ACLS} ACLs, and has them")
        self._keep(acl)
        if size_of_items(len(self._items), self._size) > LARGEST_ACLS:
            self._drop(acl)
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"the ACLs of an instance may take {LARGEST_ACLS} bytes")
        self._acls.insert(bisect_left(self._acls, acl), acl)
        self._is_changed = True

    def delete(self, filters: Mapping[int, AclFilter]) -> Steps[dict[int, list[Acl]]]:
        """Take away all that any of them, by their places, means; by the place of the first that does."""
        deleted = yield from by_first_filter(filters, self._acls)
        for found in deleted.values():
            for place, acl in enumerate(found):
                if place % _ACLS_PER_STEP == 0:
                    yield None
                self._drop(acl)
        if deleted:
            self._is_changed = True
            self._acls = yield from _chosen(self._acls, lambda acl: acl if acl in self._items else None)
        return deleted

    def written(self) -> Steps[bytes | None]:
        """What shall stand in their node; None: what stands there."""
        if not self._is_changed:
            return None
        return joined_items(self.version, (yield from _chosen(self._acls, self._items.get)))

    def dismissed(self) -> Steps[None]:
        """Let go of all of it, with pauses; nothing may be asked of it any more."""
        held: list[Any] = [self._acls, self._items]
        self._acls, self._items = [], {}
        yield from released(held)

    def _keep(self, acl: Acl) -> None:
        item = self._items[acl] = item_bytes(acl.document())
        self._size += len(item)

    def _drop(self, acl: Acl) -> None:
        self._size -= len(self._items.pop(acl))


def _chosen(acls: Iterable[Acl], choose: Callable[[Acl], T | None]) -> Steps[list[T]]:
    chosen: list[T] = []
    for place, acl in enumerate(acls, 1):
        if place % _CHOSEN_PER_STEP == 0:
            yield None
        found = choose(acl)
        if found is not None:
            chosen.append(found)
    return chosen


def _check(acl: Acl) -> None:
    """Kafka's refusals in its words, then ours. Raises ApiError."""
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    problem = acl_problem(acl)
    if problem:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
