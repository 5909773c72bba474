"""Codes of an app: RFC 6238 with its defaults (SHA-1, 6 digits, steps of 30 s), which is what all apps know. Pure."""

from __future__ import annotations

import hmac

import pyotp
import segno

STEP_S = 30
DIGITS = 6
DRIFT = 1
"""Steps before and after the present one: clocks of phones are a little off, and people type slowly."""
ISSUER = "Sluice"


def step_of(secret: str, code: str, *, now_s: float, after: int) -> int | None:
    """The step that a code is of, which must be later than the last one that was used; None: the code is not right."""
    present = int(now_s) // STEP_S
    made = pyotp.TOTP(secret)
    found = None
    for step in range(present - DRIFT, present + DRIFT + 1):
        is_right = hmac.compare_digest(made.at(step * STEP_S).encode(), code.encode())
        if is_right and step > after:
            found = step
    return found


def setup_uri(secret: str, *, email: str) -> str:
    """What an app reads from the QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)


def qr_svg(uri: str) -> str:
    """As an element of a page; dark on light whatever the theme, since cameras want it so."""
    return segno.make(uri, error="m").svg_inline(scale=1, border=3, dark="#000", light="#fff", omitsize=True)


def typed_secret(secret: str) -> str:
    """For whoever types it: groups of four."""
    return " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
