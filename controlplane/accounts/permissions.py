"""What a role may do by REST: one rule, since every endpoint acts within the caller's organisation.

What a key may do within the role: scopes.py.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rest_framework.permissions import SAFE_METHODS, BasePermission

from controlplane.accounts.scopes import PREFIX
from controlplane.accounts.selectors import Caller
from controlplane.api import dry_runs, parameters
from controlplane.core.dry_runs import stays
from controlplane.core.errors import Forbidden, NotFound, SluiceError, Unauthenticated
from controlplane.core.origin import without_sums
from controlplane.core.staff_views import view_note
from controlplane.tenants.operators import organisation_any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request
    from rest_framework.views import APIView

    from controlplane.core.scope import Tenant
    from controlplane.tenants.models import Organisation


def caller_of(request: Request) -> Caller:
    """Who asks by REST. Raises Unauthenticated where no key was presented."""
    caller: object = request.user  # whoever ApiKeyAuthentication has found; Django's types know only its own users
    if not isinstance(caller, Caller):
        raise Unauthenticated("this needs the header Authorization: Bearer <API key>")
    return caller


def owner_of(request: Request) -> dict[str, Any]:
    """Of whom, by whom and with which key: what services take that only owners may call. Raises Forbidden for no person."""
    caller = caller_of(request)
    return {"organisation": caller.organisation, "by": caller.person, "with_key": caller.key}


def organisation_asked(request: Request, organisation_id: str, refusal: str) -> Organisation:
    """For what operators decide about an organisation: they may name any.

    Others learn of no organisation but their own, and that this is not for them. Raises NotFound, Forbidden.
    """
    caller = caller_of(request)
    if caller.is_operator:
        organisation = organisation_any(organisation_id)
        staff_note(request, organisation, looked_at=_looked_at(request))
        return organisation
    if organisation_id != caller.organisation.id:
        raise NotFound(f"no organisation {organisation_id}")
    raise Forbidden(refusal)


def staff_note(request: Request, organisation: Tenant, *, looked_at: str) -> None:
    """An operator is shown something of an organisation that they do not ask for as its member: it is told so.

    What an operator changes has entries of its own; a dry run tells how things are, and changes nothing.
    """
    if request.method in SAFE_METHODS or dry_runs.is_dry_run(request):
        _note(request, organisation, looked_at)


def list_note(request: Request, organisation_id: str) -> None:
    """Of a list of all that an operator has narrowed to one organisation; nothing where there is no such organisation."""
    if not organisation_id:
        return
    with suppress(NotFound):
        organisation = organisation_any(organisation_id)
        staff_note(request, organisation, looked_at=f"{organisation.pk}/{request.path.rpartition('/')[2]}")


@contextmanager
def told_if_refused(request: Request, organisation: Organisation) -> Iterator[None]:
    """Around a change that an operator makes: a refusal has no entry of its own, and tells how things are."""
    try:
        yield
    except SluiceError:
        _note(request, organisation, _looked_at(request))
        raise


def _looked_at(request: Request) -> str:
    """An address within an organisation, from its id on."""
    return request.path.removeprefix(f"/{PREFIX}organisations/")


def _note(request: Request, organisation: Tenant, looked_at: str) -> None:
    caller = caller_of(request)
    if organisation.pk != caller.organisation.pk:
        place = f"{request.method} {request.path}"
        stays(lambda: view_note(organisation=organisation, by=caller.actor, looked_at=looked_at, place=place))


def _place_of(request: Request) -> tuple[str, dict[str, Any]]:
    """The address as urls.py has it, and the ids in it."""
    found = request.resolver_match
    return (found.route, found.kwargs) if found else ("", {})


class RolePermission(BasePermission):
    """Everyone looks; viewers change nothing.

    Refused here, too, is a change of which a dry run is asked for that it has not, and a parameter that a call has not.
    """

    looks_only = False

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what is to be answered; True otherwise."""
        caller = caller_of(request)
        changes = request.method not in SAFE_METHODS and not self.looks_only
        caller.admit(changes=changes)
        if not caller.limits.sees_sums:
            without_sums()
        caller.limits.admit(*_place_of(request), changes=changes, deletes=request.method == "DELETE")
        if changes and not caller.may_change:
            raise Forbidden("viewers may look, but not change anything")
        if request.method not in SAFE_METHODS:
            dry_runs.refuse_unknown(request, view)
        parameters.refuse_undeclared(request, view)
        return True


class LookingPermission(RolePermission):
    """For a POST that changes nothing: viewers may, too."""

    looks_only = True


class OwnerPermission(RolePermission):
    """Everyone looks; owners change."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what is to be answered; True otherwise."""
        super().has_permission(request, view)
        if request.method not in SAFE_METHODS and not caller_of(request).may_manage:
            raise Forbidden("only owners of the organisation decide this")
        return True


class BillingPermission(RolePermission):
    """Everyone looks who may; owners and billing change."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what is to be answered; True otherwise."""
        super().has_permission(request, view)
        if request.method not in SAFE_METHODS and not caller_of(request).may_manage_billing:
            raise Forbidden("only owners of the organisation and its billing role decide this")
        return True


class OwnersAlonePermission(RolePermission):
    """Owners alone, looking included."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what is to be answered; True otherwise."""
        super().has_permission(request, view)
        if not caller_of(request).may_manage:
            raise Forbidden("only owners of the organisation decide this")
        return True


class OperatorPermission(RolePermission):
    """Operators of the service alone, whatever their role in an organisation."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what is to be answered; True otherwise."""
        super().has_permission(request, view)
        if not caller_of(request).is_operator:
            raise Forbidden("this is for operators of the service")
        return True
