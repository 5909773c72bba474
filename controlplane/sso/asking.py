"""The provider's server is asked, by the one door to issuers' servers: only what operators have listed, in bounds."""

from __future__ import annotations

import threading
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from controlplane.sso.oidc import Endpoints, ProviderProblem, document_url, endpoints_of, object_of
from controlplane.token_issuers import fetching, installed
from controlplane.token_issuers.allowed import key_address
from controlplane.token_issuers.keys import KeySetProblem, keys_of

if TYPE_CHECKING:
    from controlplane.token_issuers.allowed import KeyAddress
    from quota.contracts.token_issuers import TokenKey

AT_ONCE, PATIENCE_S = 2, 1.0
_doors = threading.BoundedSemaphore(AT_ONCE)
"""A web process has four threads for everybody (stack/plan.py), and strangers have it ask: providers that answer slowly, or not
at all, take two of them and no more."""


def endpoints_at(issuer: str) -> Endpoints:
    """What the provider publishes; every address of it is one that may be asked. Raises ProviderProblem."""
    found = endpoints_of(_asked(document_url(issuer)), issuer=issuer)
    for url in (found.authorization, found.token, found.keys):
        _allowed(url)
    return found


def keys_at(endpoints: Endpoints) -> tuple[TokenKey, ...]:
    """The keys that it signs with now. Raises ProviderProblem."""
    try:
        return keys_of(_asked(endpoints.keys))
    except KeySetProblem as error:
        raise ProviderProblem(str(error)) from error


def token_for(
    endpoints: Endpoints, *, code: str, redirect_uri: str, verifier: str, client_id: str, client_secret: str
) -> str:
    """The ID token of a code. Raises ProviderProblem."""
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
    basic = b64encode(f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}".encode()).decode()
    answer = object_of(_asked(endpoints.token, urlencode(form).encode(), f"Basic {basic}"))
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise ProviderProblem("it gives no ID token")
    return token


def _allowed(url: str) -> KeyAddress:
    try:
        return key_address(url, installed.places())
    except ValueError as error:
        raise ProviderProblem(str(error)) from error


def _asked(url: str, form: bytes | None = None, authorization: str = "") -> bytes:
    address = _allowed(url)
    if not _doors.acquire(timeout=PATIENCE_S):
        raise ProviderProblem("others wait for providers that do not answer: try again in a moment")
    try:
        return fetching.fetched(address, form=form, authorization=authorization)
    except KeySetProblem as error:
        raise ProviderProblem(str(error)) from error
    finally:
        _doors.release()
