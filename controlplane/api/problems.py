"""Errors as ``application/problem+json`` (RFC 9457): the one mapping from an exception to an answer.

::

    {"type": "urn:sluice:problem:invalid", "title": "The request is not valid", "status": 400, "code": "invalid",
     "detail": "partitions must be more than 0", "retriable": false, "errors": [{"field": "partitions", "detail": "…"}]}

`code` is stable; `detail` is for people. `retriable` says whether the same request may succeed later.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from controlplane.core.errors import FieldProblem, Invalid, NotFound, SluiceError, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = "2"

_DRF = {  # DRF's own exceptions: title and code
    exceptions.ParseError: ("The body cannot be read", "malformed"),
    exceptions.UnsupportedMediaType: ("The body must be application/json", "unsupported_media_type"),
    exceptions.MethodNotAllowed: ("Method not allowed", "method_not_allowed"),
    exceptions.Throttled: ("Too many requests", "too_many_requests"),
}


def document(
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    retriable: bool = False,
    errors: Sequence[FieldProblem] = (),
    members: Mapping[str, object] = MappingProxyType({}),
) -> dict[str, Any]:
    """The body of an answer. `members` are those that only some codes have."""
    body: dict[str, Any] = {
        **members,
        "type": f"urn:sluice:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "retriable": retriable,
    }
    if errors:
        body["errors"] = [{"field": problem.field, "detail": problem.detail} for problem in errors]
    return body


def of_error(error: SluiceError) -> dict[str, Any]:
    """The body for one of our errors."""
    return document(
        status=error.http_status,
        code=error.code,
        title=error.title,
        detail=error.detail,
        retriable=error.retriable,
        errors=error.errors,
        members=error.members,
    )


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook. What is not foreseen goes on to Django, which logs it and calls `server_error`."""
    body = _body(error)
    if body is None:
        return None
    set_rollback()
    headers = {}
    if body["status"] == Unauthenticated.http_status:
        headers["WWW-Authenticate"] = 'Bearer realm="sluice"'
    if body["retriable"]:
        headers["Retry-After"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return Response(body, status=body["status"], headers=headers, content_type=MEDIA_TYPE)


def _body(error: Exception) -> dict[str, Any] | None:
    if isinstance(error, SluiceError):
        return of_error(error)
    if isinstance(error, exceptions.ValidationError):
        problems = list(_flatten(error.detail, ""))
        detail = "; ".join(f"{problem.field}: {problem.detail}".removeprefix(": ") for problem in problems)
        return of_error(Invalid(detail, errors=problems))
    if isinstance(error, Http404):
        return of_error(NotFound("there is nothing at this address"))
    if isinstance(error, exceptions.APIException):
        title, code = _DRF.get(type(error), ("Error", "error"))
        return document(status=error.status_code, code=code, title=title, detail=str(error.detail))
    return None


def _flatten(detail: Any, path: str) -> Iterator[FieldProblem]:
    """DRF's nested error lists as (dotted path, sentence) pairs."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            inner_path = path if name == "non_field_errors" else f"{path}.{name}".removeprefix(".")
            yield from _flatten(inner, inner_path)
    elif isinstance(detail, list):
        for inner in detail:
            yield from _flatten(inner, path)
    else:
        yield FieldProblem(path, str(detail))


def _answer(body: dict[str, Any]) -> HttpResponse:
    return HttpResponse(json.dumps(body), status=body["status"], content_type=MEDIA_TYPE)


def answer(error: SluiceError) -> HttpResponse:
    """One of our errors, of a request that reached no view."""
    response = _answer(of_error(error))
    if error.retriable:
        response.headers["Retry-After"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    return response


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 404 for an address that no route has."""
    del request, exception
    return _answer(of_error(NotFound("there is nothing at this address")))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's 500: a bug of ours. The log has it; the answer tells nothing."""
    del request
    return _answer(of_error(SluiceError("an internal error; the log has the details")))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400: a request it would not even route."""
    del request, exception
    return _answer(of_error(Invalid("the request cannot be understood", code="malformed")))
