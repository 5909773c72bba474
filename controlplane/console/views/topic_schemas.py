"""Schemas by which a topic's keys and values are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.console.forms.schemas import SchemaForm
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.core.errors import SluiceError
from controlplane.instances.selectors import instance_get
from controlplane.schemas import selectors, services
from controlplane.schemas.decoding import Part, Schema

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: "remove" in request.POST)
def schema(request: HttpRequest, caller: Caller, instance_id: str, topic: str, part: str) -> HttpResponse:
    """Give the keys or the values one, look at it, or remove it."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    found = selectors.schema_list(organisation=caller.organisation, instance_id=instance.id, topic=topic)
    view = next((each for each in found if each.part == part), None)
    form = SchemaForm(request.POST or None, schema=None if view is None else view.schema)
    where = {**caller.place(instance.id), "topic": topic, "part": Part(part)}
    if "remove" in request.POST:
        services.schema_delete(**where)
        messages.success(request, f"Messages of {topic} are shown without a schema of their {part}s.")
        return redirect("console:topic_schema", caller.organisation.id, instance.id, topic, part)
    if request.method == "POST" and form.is_valid():
        try:
            services.schema_set(**where, schema=Schema.of(form.cleaned_data))
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"Messages of {topic} are shown by the schema of their {part}s.")
            return redirect("console:topic_messages", caller.organisation.id, instance.id, topic)
    context = {"instance": instance, "tab": "topics", "topic": topic, "part": part, "view": view, "form": form}
    return render(request, "console/topic_schema.html", context, status=422 if form.errors else 200)
