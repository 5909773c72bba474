"""Errors as pages; under /api/ as problem documents. Each says what happened and where to go from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render

from controlplane.api import problems
from controlplane.console.advice import said
from controlplane.console.page import SSO
from controlplane.core.errors import Forbidden, Invalid, NotFound, SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

API_PREFIX = "/api/"
TITLES = {
    400: "That request could not be understood",
    403: "That is not yours to do",
    404: "There is nothing here",
    409: "That is not possible now",
    503: "The cluster does not answer",
}


def error_page(request: HttpRequest, error: SluiceError, *, explanation: str | None = None) -> HttpResponse:
    """The page for one of our errors."""
    context = {
        "title": TITLES.get(error.http_status, "Something went wrong"),
        "explanation": explanation or said(error),
        "status": error.http_status,
        "code": error.code,
        "retriable": error.retriable and request.method == "GET",
        "is_by_sso": error.code == "second_factor_needed" and SSO in request.session,  # others touch no session
    }
    return render(request, "console/error.html", context, status=error.http_status)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for an address that leads nowhere, or to what is another organisation's."""
    if request.path.startswith(API_PREFIX):
        return problems.not_found(request, exception)
    return error_page(request, NotFound("there is nothing at this address"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400: a request it would not even route."""
    if request.path.startswith(API_PREFIX):
        return problems.bad_request(request, exception)
    return error_page(request, Invalid("the request cannot be understood"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's 500: a bug of ours. Nothing of the request is touched to draw it but its path."""
    if request.path.startswith(API_PREFIX):
        return problems.server_error(request)
    try:
        return error_page(request, SluiceError("an error of ours stopped this page; it has been logged"))
    except Exception:  # noqa: BLE001  # a broken frame (the database is away) must not hide the first error
        return problems.server_error(request)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: most often one that was left open for weeks."""
    del reason
    text = "This form has expired, so nothing was changed. Go back, load the page again, and repeat it."
    return error_page(request, Forbidden("the form has expired"), explanation=text)
