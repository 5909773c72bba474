"""The keys of this installation, read anew each time: who replaces one need not restart what runs."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from controlplane.sealing.keyring import Keyring, KeysProblem

VARIABLE = "SLUICE_ENCRYPTION_KEYS_FILE"


def keyring() -> Keyring:
    """Raises KeysProblem."""
    path = settings.ENVIRONMENT.encryption_keys_file
    try:
        return Keyring.parse(path.read_text())
    except FileNotFoundError:
        raise KeysProblem(
            f"there are no keys to seal secrets in the database with: {VARIABLE} {path} is not there"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise KeysProblem(f"{VARIABLE} {path} cannot be read: {error.__class__.__name__}") from None
    except KeysProblem as problem:
        raise KeysProblem(f"{VARIABLE} {path}: {problem}") from None


def demand() -> None:
    """For the start of a process that serves. Raises ImproperlyConfigured with a sentence where there are none.

    Without keys it could neither store a secret nor read one, and would say so one feature at a time.
    """
    try:
        keyring()
    except KeysProblem as problem:
        raise ImproperlyConfigured(f"{problem} (docs/runbooks/encryption-keys.md)") from None
