"""HTTP of the vendor's API: POST with JSON, errors with status 200 in `Response.Error`, an id with each answer."""

from __future__ import annotations

import io
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import ParseError

from controlplane.accounts.denials import denial_note
from controlplane.accounts.selectors import SigningCaller, access_key_get, access_key_used
from controlplane.api.parsers import MOST_BYTES, BoundedJSONParser
from controlplane.ckafka_api import dispatch, limits, replay, shapes, tc3
from controlplane.ckafka_api.errors import CkafkaError, Code, ckafka_error
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Forbidden, SluiceError
from controlplane.core.origin import current

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.http import HttpRequest

    from controlplane.accounts.selectors import Caller
    from controlplane.ckafka_api.tc3 import Signature

LOG = logging.getLogger(__name__)
VERSION = "2019-08-19"


@csrf_exempt  # a signature stands for the caller, and no cookie does
def ckafka(request: HttpRequest) -> JsonResponse:
    """/compat/ckafka."""
    request_id = current().request_id
    try:
        members = _answer(request, SYSTEM_CLOCK)
    except SluiceError as error:
        members = _refused(ckafka_error(error))
    except CkafkaError as error:
        members = _refused(error)
    except Exception:
        LOG.exception("request %s of the vendor's API failed", request_id)
        members = _refused(CkafkaError(Code.INTERNAL, "The service has failed; its operators can look the request up."))
    return JsonResponse({"Response": {**members, "RequestId": request_id}})


def _refused(error: CkafkaError) -> dict[str, Any]:
    return {"Error": {"Code": error.code.value, "Message": error.message}}


def _answer(request: HttpRequest, clock: Clock) -> dict[str, Any]:
    body = _body(request)
    signature, signing = _signed_by(request, body, clock)
    signed_at_s = int(request.headers["X-TC-Timestamp"])
    name = request.headers.get("X-TC-Action", "")
    if request.headers.get("X-TC-Version") != VERSION:
        raise CkafkaError(Code.INVALID_PARAMETER, f"X-TC-Version must be {VERSION}.")
    counted = name if name in shapes.ACTIONS else "others"
    limits.request_count(secret_id=signature.secret_id, action=counted, clock=clock)
    action = dispatch.action_of(name)
    with _refusals_told(signing.caller, name):
        call = dispatch.call_of(name, action, signing.caller, _document(body))
        changes = action.changes and not call.parameters.get("DryRun", False)
        replay.action_bind(signature, name, changes=changes, age_s=clock.now().timestamp() - signed_at_s)
        if not changes:
            return dispatch.answered(name, dispatch.carried_out(name, action, call))
        result = replay.once(signing.caller, signature, name, body, lambda: dispatch.carried_out(name, action, call))
        return dispatch.answered(name, result)


@contextmanager
def _refusals_told(caller: Caller, name: str) -> Iterator[None]:
    """What the caller may not do goes on record in their organisation."""
    try:
        yield
    except Forbidden as error:
        denial_note(caller, error, way="POST", target=f"ckafka/{name}")
        raise
    except CkafkaError as error:
        if error.code is Code.UNAUTHORIZED:
            denial_note(caller, Forbidden(error.message), way="POST", target=f"ckafka/{name}")
        raise


def _body(request: HttpRequest) -> bytes:
    if request.method != "POST" or request.content_type != "application/json":
        raise CkafkaError(Code.UNSUPPORTED, "Requests are sent by POST, as application/json.")
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > MOST_BYTES:
        raise CkafkaError(Code.INVALID_PARAMETER, f"A request has at most {MOST_BYTES} bytes.")
    return request.body


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        return BoundedJSONParser().parse(io.BytesIO(body))
    except ParseError as error:
        raise CkafkaError(Code.INVALID_PARAMETER, str(error.detail)) from error


def _signed_by(request: HttpRequest, body: bytes, clock: Clock) -> tuple[Signature, SigningCaller]:
    """Who has signed it. Raises CkafkaError, with one sentence for an unknown SecretId and for a wrong signature."""
    signature = tc3.signature_of(request.headers.get("Authorization", ""))
    if signature is None:
        raise CkafkaError(Code.AUTH_FAILURE, f"Authorization must be a signature by {tc3.ALGORITHM}.")
    if "X-TC-Token" in request.headers:
        raise CkafkaError(Code.AUTH_FAILURE, "There are no temporary keys here: leave X-TC-Token out.")
    received = tc3.Received(
        method=str(request.method),
        path=request.path,
        query=request.META.get("QUERY_STRING", ""),
        headers={name.lower(): value for name, value in request.headers.items()},
        body=body,
        timestamp=request.headers.get("X-TC-Timestamp", ""),
    )
    problem = tc3.problem_of(signature, received, clock.now().timestamp())
    if problem:
        raise CkafkaError(Code.AUTH_FAILURE, f"{problem}.")
    signing = access_key_get(signature.secret_id)
    if signing is None or not tc3.is_right(signature, received, signing.secret):
        raise CkafkaError(Code.AUTH_FAILURE, "The signature is not right: look at SecretId, SecretKey and the host.")
    access_key_used(signing.key, clock=clock)
    return signature, signing
