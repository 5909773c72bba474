"""Addresses and API keys of a person, by the names of profiles.

They stand in `profiles.json` in the person's configuration folder (~/.config/sluice on Linux), which nobody else may read::

    {"version": 1, "profiles": {"default": {"url": "https://sluice.example.com", "api_key": "slc_…"}}}

`SLUICE_URL` and `SLUICE_API_KEY` win over it. A stored key is sent to the address that it was stored with and to no other: with
`SLUICE_URL` alone, pointing elsewhere, nobody is signed in.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from controlplane.cli.errors import Misused, NotSignedIn
from controlplane.cli.operations import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "default"
VERSION = 1
URL, API_KEY = "SLUICE_URL", "SLUICE_API_KEY"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Profile:
    """Where to, and who."""

    url: str
    api_key: str = field(repr=False)  # a traceback shows arguments


def folder() -> Path:
    """Of this person's configuration."""
    return Path(typer.get_app_dir("sluice"))


def chosen(name: str | None, environment: Mapping[str, str]) -> Profile:
    """What a command goes by. Raises NotSignedIn, Misused."""
    url, key = environment.get(URL, ""), environment.get(API_KEY, "")
    if url and key:
        return Profile(checked_url(url), checked_key(key))
    stored = profiles().get(name or DEFAULT)
    if stored is None:
        profile = f" --profile {name}" if name else ""
        raise NotSignedIn(
            f"there is no profile called {name or DEFAULT}", notes=(f"Sign in: sluice login{profile} --url https://…",)
        )
    if key:
        return Profile(stored.url, checked_key(key))
    if url and checked_url(url) != stored.url:
        raise NotSignedIn(
            f"{URL} is not the address that the key of this profile belongs to", notes=(f"Set {API_KEY} too.",)
        )
    return stored


def profiles() -> dict[str, Profile]:
    """All that are stored. Raises NotSignedIn where others could have read or written them."""
    path = folder() / "profiles.json"
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except FileNotFoundError:
        return {}
    if os.name == "posix" and mode & _OTHERS:
        raise NotSignedIn(f"others may read or change {path}", notes=(f"It holds keys: chmod 600 {path}",))
    try:
        found = json.loads(text)["profiles"]
        return {name: Profile(each["url"], each["api_key"]) for name, each in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotSignedIn(f"{path} cannot be read", notes=("Remove it and sign in again: sluice login",)) from error


def keep(name: str, profile: Profile) -> Path:
    """Store a profile; the file."""
    return _write({**profiles(), name: profile})


def forget(name: str) -> None:
    """Take a profile away. Raises NotSignedIn where there is none."""
    stored = profiles()
    if name not in stored:
        raise NotSignedIn(f"there is no profile called {name}")
    del stored[name]
    _write(stored)


def checked_url(text: str) -> str:
    """``https://host[:port][/path]``, as it is stored. Raises Misused."""
    try:
        parts = urlsplit(text.strip())
        is_address = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        is_address = False
    if not is_address or parts.username or parts.query or parts.fragment:
        raise Misused("the address must be like https://sluice.example.com")
    return parts.geturl().rstrip("/").removesuffix(PREFIX)


def checked_key(text: str) -> str:
    """A key that can be sent. Raises NotSignedIn, which does not repeat it: what HTTP refuses, it prints."""
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise NotSignedIn("that is no API key")
    return key


def is_in_clear(url: str) -> bool:
    """Whether a key sent there could be read on its way."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


def _write(stored: Mapping[str, Profile]) -> Path:
    """Another file takes the place of the present one, so that there is a whole one at every moment, mode 0600 from its birth."""
    where = folder()
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    document = {
        "version": VERSION,
        "profiles": {name: {"url": each.url, "api_key": each.api_key} for name, each in stored.items()},
    }
    descriptor, draft = tempfile.mkstemp(dir=where)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
        path = where / "profiles.json"
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path
