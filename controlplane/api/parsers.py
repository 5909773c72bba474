"""Reading a request's body: JSON, an object, of bounded size and depth."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES = 2**20


class TooLarge(Invalid):
    """The body is larger than any request of ours."""

    http_status, code, title = 413, "body_too_large", "The body is too large"


class BoundedJSONParser(BaseParser):
    """Strict JSON: no NaN, no member twice, nothing so deep that the parser would give up in its own way."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The document. Raises ParseError, TooLarge."""
        del media_type, parser_context
        body = stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise TooLarge(f"a request has at most {MOST_BYTES} bytes")
        try:
            document = json.loads(body.decode(), parse_constant=_no_constant, object_pairs_hook=_members)
            # Half a surrogate pair, written as an escape, is a string to Python and to no database or answer of ours.
            json.dumps(document, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ParseError("the JSON is nested too deeply") from error
        except ValueError as error:
            raise ParseError(f"not JSON: {error}") from error
        if not isinstance(document, dict):
            raise ParseError("the body must be a JSON object")
        return document


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is given twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
