"""The provider's own configuration: `endpoint` and `api_key`, or SLUICE_URL and SLUICE_API_KEY as `sluice` has them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from controlplane.cli.operations import PREFIX
from controlplane.terraform.diagnostics import Diagnostic, ProviderError
from controlplane.terraform.rest import Client
from controlplane.terraform.schema import STRING, Attribute
from controlplane.terraform.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.terraform.rest import Waits

URL, API_KEY = "SLUICE_URL", "SLUICE_API_KEY"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
ATTRIBUTES = (
    Attribute("endpoint", STRING, f"address of the service, such as https://sluice.example.com; by default {URL}"),
    Attribute("api_key", STRING, f"an API key of the organisation; by default {API_KEY}", sensitive=True),
)


def warnings(config: Mapping[str, Any]) -> list[Diagnostic]:
    """What is to be said of a configuration that works."""
    url = config.get("endpoint")
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts and parts.scheme == "http" and parts.hostname not in LOOPBACK:
        return [Diagnostic("The API key goes unencrypted", f"{url} is not https.", ("endpoint",), is_warning=True)]
    return []


def client_of(config: Mapping[str, Any], waits: Waits) -> Client | None:
    """The connection; None: an address or a key is known only when something else has been made. Raises ProviderError."""
    if UNKNOWN in (config.get("endpoint"), config.get("api_key")):
        return None
    url = _endpoint(config.get("endpoint") or os.environ.get(URL, ""))
    key = (config.get("api_key") or os.environ.get(API_KEY, "")).strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        what = "That is no API key" if key else "No API key"
        raise ProviderError(Diagnostic(what, f"Set api_key, or {API_KEY} in the environment.", ("api_key",)))
    return Client(url, key, waits)


def _endpoint(text: str) -> str:
    if not text:
        raise ProviderError(Diagnostic("No address", f"Set endpoint, or {URL} in the environment.", ("endpoint",)))
    try:
        parts = urlsplit(text.strip())
        is_address = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        is_address = False
    if not is_address or parts.username or parts.query or parts.fragment:
        raise ProviderError(Diagnostic("That is no address", "It is like https://sluice.example.com.", ("endpoint",)))
    return parts.geturl().rstrip("/").removesuffix(PREFIX)
