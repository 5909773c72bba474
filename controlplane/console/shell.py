"""The frame of every page: organisation, its neighbours in the switcher, the theme, what does the same by the command line.

Handed to every template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from controlplane.accounts.standing import is_unconfirmed
from controlplane.console.commandline import CHANGING, command_of
from controlplane.console.page import SSO
from controlplane.console.places import first_page, menu_of, tabs_of
from controlplane.tenants.selectors import organisation_list

if TYPE_CHECKING:
    from django.http import HttpRequest

    from controlplane.accounts.models import User
    from controlplane.tenants.models import Organisation

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "theme"
MOST_IN_SWITCHER = 50


def shell(request: HttpRequest) -> dict[str, Any]:
    """What console/base.html draws around a page; it leads nowhere that the caller's role does not open.

    Costs one query, and none on pages that show no switcher.
    """
    caller = getattr(request, "caller", None)
    user = getattr(request, "user", None)
    context: dict[str, Any] = {"theme": theme_of(request), "themes": THEMES, "caller": caller}
    if caller is not None:
        context["org"] = caller.organisation
        context["by_cli"] = _command(request) if caller.organisation.is_in_use else None  # its keys are refused
        context["first_page"] = f"console:{first_page(caller.limits)}"
        context["menu_open"], context["tabs_open"] = frozenset(), frozenset()
        if caller.organisation.is_in_use:
            context["menu_open"], context["tabs_open"] = menu_of(caller.limits), tabs_of(caller.limits)
        if caller.organisation.is_in_use:  # the page of results has what each may see; the palette leads to instances
            context["results_at"] = reverse("console:search", args=[caller.organisation.id])
        if "instances" in context["menu_open"]:
            context["palette_at"] = reverse("console:palette", args=[caller.organisation.id])
    elif user is not None and user.is_authenticated and user.is_staff:
        context["by_cli"] = _operators_command(request)
        if _is_of_the_fleet(request):
            context["palette_at"] = context["results_at"] = reverse("console:fleet_search")
    if user is not None:
        context["user"] = user
        context["is_unconfirmed"] = user.is_authenticated and is_unconfirmed(user)
        context["organisations"] = SimpleLazyObject(lambda: _switcher(request, user) if user.is_authenticated else [])
    return context


def _is_of_the_fleet(request: HttpRequest) -> bool:
    """Whether the page is one of operators' own."""
    name = request.resolver_match.url_name if request.resolver_match else None
    return (name or "").startswith("fleet")


def _command(request: HttpRequest) -> str | None:
    """What does the same by the command line, and may be done."""
    match = request.resolver_match
    if match is None or (match.url_name in CHANGING and not request.caller.may_change):  # type: ignore[attr-defined]
        return None
    return command_of(match.url_name, match.kwargs, request.GET)


def _operators_command(request: HttpRequest) -> str | None:
    """The same of an operator's page."""
    match = request.resolver_match
    return None if match is None else command_of(match.url_name, match.kwargs, request.GET)


def theme_of(request: HttpRequest) -> str:
    """What the person chose; "auto" follows the system."""
    chosen = request.COOKIES.get(THEME_COOKIE, "auto")
    return chosen if chosen in THEMES else "auto"


def _switcher(request: HttpRequest, user: User) -> list[Organisation]:
    """A session that one organisation's provider has begun shows no other."""
    mark = request.session.get(SSO)
    rows = organisation_list(user=user)
    return list((rows if mark is None else rows.filter(pk=mark["organisation"]))[:MOST_IN_SWITCHER])
