"""Where somebody may go, by what they type: the list below the palette's box, or a page of its own without scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console import palette
from controlplane.console.listing import searched
from controlplane.console.page import tenant_page

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


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
