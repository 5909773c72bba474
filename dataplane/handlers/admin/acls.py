"""DescribeAcls, CreateAcls, DeleteAcls: an instance's ACLs, of which each element of a request is judged by itself.

Kafka answers an element that no ACL can be (ANY, MATCH, a code that it does not know) by failing the whole request, or by
closing the connection; here that element is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dataplane.handlers.admin.access_nodes import put_in_force, spec_of
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import in_slices
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.security import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from dataplane.protocol.release import released
from dataplane.records.steps import Pace, Steps, each
from dataplane.security.acl_draft import AclDraft
from dataplane.security.many_filters import matching
from dataplane.tenancy.access import Operation
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_path
from quota.contracts.instance import InstanceSpec
from quota.core.acl_filters import MATCH, AclFilter

T = TypeVar("T")
_ANY, _MATCH = 1, 2
"""Kafka's codes in filters."""
_CREATION_US, _FILTER_US, _ANSWER_US = 15, 6, 3
_CREATED = AclCreationResult(error_message=None)
_NOTHING_DELETED = DeleteAclsFilterResult(error_message=None)


async def handle_describe_acls(ctx: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Those that the filter means, by resource."""
    try:
        acls = spec_of(ctx, Operation.DESCRIBE).acls
        found = await in_slices(ctx, matching(_filter_of(request), acls.items if acls is not None else ()))
    except ApiError as refusal:
        return DescribeAclsResponse(error_code=refusal.code, error_message=refusal.message)
    return DescribeAclsResponse(error_message=None, resources=await in_slices(ctx, _by_resource(found)))


def _by_resource(acls: Iterable[Acl]) -> Steps[tuple[DescribeAclsResource, ...]]:
    pace = Pace()
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in acls:
        if pace.over(_ANSWER_US):
            yield None
        said = resources.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), [])
        said.append(AclDescription(acl.principal, acl.host, acl.operation, acl.permission))
    described = yield from each(
        resources.items(), lambda item: DescribeAclsResource(*item[0], tuple(item[1])), _ANSWER_US, pace
    )
    return tuple(described)


async def handle_create_acls(ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Each by itself; one that is there already is no error."""
    results: list[AclCreationResult] = []

    def create(draft: AclDraft) -> Steps[None]:
        pace = Pace()
        yield from released(results)
        for creation in request.creations:
            if pace.over(_CREATION_US):
                yield None
            try:
                draft.add(_acl_of(creation))
            except ApiError as refusal:
                results.append(AclCreationResult(refusal.code, refusal.message))
            else:
                results.append(_CREATED)

    everybodys = await _changed(ctx, create)
    if everybodys is None:
        return CreateAclsResponse(results=tuple(results))
    await in_slices(ctx, released(results))
    result = AclCreationResult(everybodys.code, everybodys.message)
    return CreateAclsResponse(results=(result,) * len(request.creations))


async def handle_delete_acls(ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """What a filter means, unless an earlier one means it too and has told it."""
    results: list[DeleteAclsFilterResult] = []

    def delete(draft: AclDraft) -> Steps[None]:
        filters: dict[int, AclFilter] = {}
        pace = Pace()
        yield from released(results)
        for place, one in enumerate(request.filters):
            if pace.over(_FILTER_US):
                yield None
            try:
                filters[place] = _filter_of(one)
            except ApiError as refusal:
                results.append(DeleteAclsFilterResult(refusal.code, refusal.message))
            else:
                results.append(_NOTHING_DELETED)
        deleted = yield from draft.delete(filters)
        for place, acls in deleted.items():
            told = yield from each(acls, _matching_acl, _ANSWER_US, pace)
            results[place] = DeleteAclsFilterResult(error_message=None, matching_acls=tuple(told))
        held: list[Any] = [*filters.values(), *deleted.values()]
        filters.clear()
        deleted.clear()
        yield from released(held)

    everybodys = await _changed(ctx, delete)
    if everybodys is None:
        return DeleteAclsResponse(filter_results=tuple(results))
    await in_slices(ctx, released(results))
    result = DeleteAclsFilterResult(everybodys.code, everybodys.message)
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))


def _matching_acl(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


async def _changed(ctx: RequestContext, alter: Callable[[AclDraft], Steps[None]]) -> ApiError | None:
    """Put in force what `alter`, which may be called again, makes of the ACLs; why that could not be."""
    version = 0

    def altered(before: bytes | None) -> Steps[bytes | None]:
        nonlocal version
        draft = yield from AclDraft.of(before)
        yield from alter(draft)
        version = draft.version
        data = yield from draft.written()
        yield from draft.dismissed()
        return data

    async def decide(before: bytes | None) -> bytes | None:
        return await in_slices(ctx, altered(before))

    def is_there(spec: InstanceSpec) -> bool:
        return spec.acls is not None and spec.acls.version >= version

    try:
        instance = spec_of(ctx, Operation.ALTER).id
        await put_in_force(ctx, instance, acls_path(instance), decide, is_there)
    except ApiError as refusal:
        return refusal
    return None


# --- from Kafka's codes -----------------------------------------------------------------------------------------------


def _acl_of(creation: AclCreation) -> Acl:
    """Raises ApiError."""
    try:
        return Acl(
            ResourceType(creation.resource_type),
            PatternType(creation.resource_pattern_type),
            creation.resource_name,
            creation.principal,
            creation.host,
            AclOperation(creation.operation),
            Permission(creation.permission_type),
        )
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Failed to create ACL: {error}") from error


def _filter_of(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Raises ApiError."""
    try:
        return AclFilter(
            _unless_any(asked.resource_type_filter, ResourceType),
            MATCH if asked.pattern_type_filter == _MATCH else _unless_any(asked.pattern_type_filter, PatternType),
            asked.resource_name_filter,
            asked.principal_filter,
            asked.host_filter,
            _unless_any(asked.operation, AclOperation),
            _unless_any(asked.permission_type, Permission),
        )
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The filter contains UNKNOWN elements: {error}") from error


def _unless_any(code: int, kind: Callable[[Any], T]) -> T | None:
    return None if code == _ANY else kind(code)
