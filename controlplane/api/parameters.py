"""Parameters of addresses: what no view has declared is refused, as members of bodies are.

A misspelt filter that is passed over answers everything, and a misspelt parameter of a change changes something else. Which
there are is read from the views themselves: what `extend_schema` publishes is what is taken. Something between a caller and
this service may add parameters of its own; names that begin as those do (ADDED) are passed over.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter

from controlplane.api.serializers import MOST_GUESSED, meant
from controlplane.core.errors import FieldProblem, Invalid

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

ADDED = ("_", "utm_", "x-")
"""How names begin that caches, trackers and gateways add: `_=1700000000`, `utm_source`, `X-Amz-Date`. In small letters."""
MOST_NAMED = 20
"""Unknown parameters that one answer names."""


def refuse_undeclared(request: Request, view: APIView) -> None:
    """Of a call that the schema publishes. Raises Invalid, which names each parameter that it does not declare."""
    method = "GET" if request.method == "HEAD" else str(request.method)
    kind: Any = type(view)  # not hashable, says its type
    known = declared(kind, method)
    if known is None:
        return
    unknown = [name for name in request.query_params if name not in known and not name.lower().startswith(ADDED)]
    if unknown:
        raise Invalid.fields(
            [FieldProblem(name, _refusal(at, name, known)) for at, name in enumerate(unknown[:MOST_NAMED])]
        )


@cache
def declared(kind: Any, method: str) -> frozenset[str] | None:
    """Names of the parameters that a method of a view's class takes in its address; None: the schema has no such call."""
    schema_class = getattr(getattr(kind, method.lower(), None), "kwargs", {}).get("schema")
    if schema_class is None:
        return None
    view: Any = kind()
    view.request, view.kwargs = None, {}  # what drf-spectacular asks of it where it looks for versions
    schema = schema_class()
    schema.view, schema.method, schema.path = view, method, "/api/"
    return frozenset(name for parameter in schema.get_override_parameters() for name in _names(parameter))


def _names(parameter: Any) -> list[str]:
    """One parameter is a parameter, or a serializer whose fields are some."""
    if isinstance(parameter, OpenApiParameter):
        is_asked = parameter.location == OpenApiParameter.QUERY and not parameter.response
        return [parameter.name] if is_asked else []
    return list((parameter() if isinstance(parameter, type) else parameter).fields)


def _refusal(at: int, name: str, known: frozenset[str]) -> str:
    near = meant(name, sorted(known)) if at < MOST_GUESSED else None
    if near:
        return f"unknown parameter, did you mean `{near}`?"
    return (
        f"unknown parameter; known parameters: {', '.join(sorted(known))}"
        if known
        else "unknown parameter; this call takes none"
    )
