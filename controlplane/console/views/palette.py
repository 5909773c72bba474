"""Where somebody may go, by what they type: the list below the palette's box, and pages of results that need no scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console import palette
from controlplane.console.listing import searched
from controlplane.console.page import staff_page, tenant_page
from controlplane.core.errors import Invalid, NotFound
from controlplane.search import matching
from controlplane.search.kinds import BY_NAME

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

OF_EACH, OF_ONE = 10, 50
"""On a page of results: of each kind, and of a kind that is shown alone."""


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller) -> HttpResponse:
    """What fits, by kind."""
    text = searched(request)[: palette.LONGEST_TEXT]
    instance_id = request.GET.get("instance", "").replace("\x00", "")[:32]
    kinds = palette.found(caller=caller, text=text, instance_id=instance_id)
    context = {
        "text": text,
        "here": instance_id,
        "kinds": kinds,
        "count": sum(len(each.hits) for each in kinds),
    }
    part = request.htmx  # type: ignore[attr-defined]
    return render(request, "console/parts/palette_hits.html" if part else "console/palette.html", context)


@require_safe
@tenant_page
def results(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The same as a page, with more of each kind; `kind`: one kind alone. What cannot be looked for is said beside the box."""
    kind, text = request.GET.get("kind", ""), request.GET.get("q", "")
    if kind and kind not in BY_NAME:
        raise NotFound("there is no such kind of things")
    context: dict[str, Any] = {"text": text, "kind": kind, "kind_title": BY_NAME[kind].title if kind else ""}
    if not text.strip():
        return render(request, "console/search.html", context)
    try:
        wanted = matching.asked(text)
    except Invalid as error:
        return render(request, "console/search.html", context | {"problem": error.errors[0].detail}, status=422)
    most = OF_ONE if kind else OF_EACH
    context["kinds"] = palette.found_of(caller=caller, wanted=wanted, kind=kind, most=most)
    return render(request, "console/search.html", context)


@require_safe
@staff_page
def of_fleet(request: HttpRequest) -> HttpResponse:
    """What operators find: the list below their palette's box, or the same as a page."""
    text = request.GET.get("q", "")
    if request.htmx:  # type: ignore[attr-defined]
        kinds = palette.found_in_fleet(text=searched(request)[: palette.LONGEST_TEXT])
        context: dict[str, Any] = {"kinds": kinds, "count": sum(len(each.hits) for each in kinds)}
        return render(request, "console/parts/palette_hits.html", context)
    context = {"text": text}
    if not text.strip():
        return render(request, "console/fleet_search.html", context)
    try:
        matching.asked(text)
    except Invalid as error:
        return render(request, "console/fleet_search.html", context | {"problem": error.errors[0].detail}, status=422)
    context["kinds"] = palette.found_in_fleet(text=text, most=OF_EACH)
    return render(request, "console/fleet_search.html", context)
