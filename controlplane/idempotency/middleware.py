"""Around every mutating call of REST that carries an `Idempotency-Key`. Whoever may not make a call may not repeat it either.

The role and the limits of the key are looked at here as they are behind: a viewer's call goes on to be refused. What only a
view knows (that owners alone may make the call) is not: so an answer is for the role in which the call was made. An answer that
forbids to be stored (`Cache-Control: no-store`) holds a secret, and is not kept. A dry run does nothing that could be done twice,
and keeps no key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.urls import Resolver404, resolve

from controlplane.accounts.authentication import ApiKeyAuthentication
from controlplane.api import dry_runs, problems
from controlplane.api.idempotency_keys import HEADER
from controlplane.api.parsers import MOST_BYTES
from controlplane.core.errors import SluiceError
from controlplane.idempotency import services
from controlplane.idempotency.services import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from controlplane.accounts.selectors import Caller
    from controlplane.idempotency.models import RepeatableCall

REPLAYED = "Idempotency-Replayed"
MUTATING = ("POST", "PUT", "PATCH", "DELETE")
PREFIX = "/api/"


class IdempotencyMiddleware:
    """Answers a repeated call with the first one's answer, before any view is reached."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer what was answered before, or pass on and keep what is answered."""
        text = request.headers.get(HEADER)
        if text is None or request.method not in MUTATING or not request.path.startswith(PREFIX):
            return self._get_response(request)
        caller = _caller(request)
        if caller is None or not caller.may_change or _size(request) > MOST_BYTES:
            return self._get_response(request)  # which refuses it
        try:
            key = services.key_digest(text)
            if dry_runs.is_asked(request):
                return self._get_response(request)  # whose view makes it, or refuses it
            claim = services.call_begin(
                caller=caller,
                key=key,
                request=services.request_digest(str(request.method), request.get_full_path(), request.body),
            )
        except SluiceError as error:
            return problems.answer(error)
        if isinstance(claim, Answer):
            return _again(claim)
        response = self._get_response(request)
        _end(claim, response)
        return response


def _caller(request: HttpRequest) -> Caller | None:
    """None: nobody that is known, or may act."""
    try:
        found = ApiKeyAuthentication().authenticate(request)  # type: ignore[arg-type]  # it reads headers alone
        if found is None:
            return None
        found[0].admit(changes=True)
        place = resolve(request.path_info)
        found[0].limits.admit(place.route, place.kwargs, changes=True, deletes=request.method == "DELETE")
    except (SluiceError, Resolver404):
        return None
    return found[0]


def _size(request: HttpRequest) -> int:
    text = request.META.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isdigit() else 0


def _again(answer: Answer) -> HttpResponse:
    """As the first call was answered: a program that repeats one goes on with the same `ETag`."""
    response = HttpResponse(
        answer.body, status=answer.status, content_type="application/json", headers={REPLAYED: "true"}
    )
    if answer.etag:
        response.headers["ETag"] = answer.etag
    if not answer.body:
        del response.headers["Content-Type"]
    return response


def _end(claim: RepeatableCall, response: HttpResponse) -> None:
    if not 200 <= response.status_code < 300:
        services.call_give_back(claim=claim)
        return
    services.call_end(
        claim=claim,
        status=response.status_code,
        body=response.content.decode(),
        is_secret="no-store" in response.headers.get("Cache-Control", ""),
        etag=response.headers.get("ETag", ""),
    )
