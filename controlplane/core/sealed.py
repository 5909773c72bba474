"""Secrets in rows, for services: what cannot be sealed or opened is an answer to whoever asked, and a line for operators.

What stands in the line, which file of keys it is and what is the matter with it, is nothing for tenants.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controlplane.core.errors import Unavailable
from controlplane.sealing.fields import field_of
from controlplane.sealing.keyring import Unreadable

if TYPE_CHECKING:
    from django.db.models import Model

LOG = logging.getLogger(__name__)


def sealed(model: type[Model], name: str, text: bytes, /, **owner: object) -> bytes:
    """For the field `name` of the row of this owner (`SealedField.owner`). Raises Unavailable."""
    try:
        return field_of(model, name).sealed(text, owner)
    except Unreadable as problem:
        LOG.error("%s cannot be sealed: %s", _label(model, name), problem)  # noqa: TRY400  # it has no traceback to tell of
        raise Unavailable(
            "this holds a secret, which cannot be stored now: tell the operators of the service"
        ) from problem


def opened(row: Model, name: str, lost: Unavailable) -> bytes:
    """What is sealed in a row; empty: nothing. Raises `lost` where it cannot be opened."""
    try:
        return field_of(type(row), name).opened(row)
    except Unreadable as problem:
        LOG.error("%s of %s cannot be opened: %s", _label(type(row), name), row.pk, problem)  # noqa: TRY400  # likewise
        raise lost from problem


def _label(model: type[Model], name: str) -> str:
    return f"{model._meta.label}.{name}"  # noqa: SLF001  # Django's public API has this name
