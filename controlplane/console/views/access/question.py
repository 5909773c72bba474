"""May somebody do something? The answer, and the rule that says so. It changes nothing, so its address can be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.access import selectors
from controlplane.console.advice import sentence
from controlplane.console.forms.access import QuestionForm
from controlplane.console.page import tenant_page
from controlplane.core.errors import Conflict, SluiceError, Unavailable
from controlplane.instances.selectors import instance_get
from quota.core.explain_access import Rule

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


DECIDED_BY = {
    Rule.INSTANCE: "the state of the instance",
    Rule.ROUTE: "the route",
    Rule.INSTANCE_WHITELIST: "the whitelist of the instance",
    Rule.ROUTE_WHITELIST: "the whitelist of the route",
    Rule.LOGIN: "how clients log in on the route",
    Rule.SERVICE: "what nobody may",
    Rule.TOPIC_WHITELIST: "the whitelist of the topic",
    Rule.SUPER_USER: "super users of the instance",
    Rule.ACL: "an ACL",
    Rule.NO_ACL: "no ACL",
}


@require_safe
@tenant_page
def asked(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The form, and the answer to what stands in the address."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    at = {"organisation": caller.organisation, "instance_id": instance.id}
    away, answer = None, None
    routes: list[str] = []
    try:
        routes = selectors.route_ids(**at)
    except (Unavailable, Conflict) as error:
        away = error
    form = QuestionForm(request.GET if "source" in request.GET else None, routes=routes)
    if away is None and form.is_valid():
        try:
            answer = selectors.access_explain(**at, **form.cleaned_data)
        except SluiceError as error:
            form.refuse(error)
    context = {
        "instance": instance,
        "tab": "access",
        "part": "question",
        "form": form,
        "answer": answer,
        "reason": sentence(answer.reason) if answer else "",
        "decided_by": DECIDED_BY[answer.rule] if answer else "",
        "away": away,
    }
    status = 503 if isinstance(away, Unavailable) else 422 if form.errors and away is None else 200
    return render(request, "console/access_question.html", context, status=status)
