"""Of the published schema, what every operation has in common: added here, once."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from controlplane.api import deprecation, dry_runs, idempotency_keys
from controlplane.api.serializers import ProblemSerializer, StrictSerializer

MUTATING = ("POST", "PUT", "PATCH", "DELETE")
IDEMPOTENCY_KEY = OpenApiParameter(
    idempotency_keys.HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="of the caller's choice. For 24 hours the same call with the same key is answered as the first time and not "
    "done again; another call with it is refused",
)
IDEMPOTENCY_KEY_REQUIRED = OpenApiParameter(
    IDEMPOTENCY_KEY.name,
    IDEMPOTENCY_KEY.type,
    IDEMPOTENCY_KEY.location,
    required=True,
    description=f"{IDEMPOTENCY_KEY.description}. Without one this call is refused",
)


class ProblemAwareSchema(AutoSchema):
    """Every operation may answer a problem."""

    def is_deprecated(self) -> bool:
        """As its answers say (api/deprecation.py)."""
        return deprecation.of(self.view, self.method) is not None or bool(super().is_deprecated())

    def get_override_parameters(self) -> list[OpenApiParameter]:
        """What every call takes that changes something."""
        declared = super().get_override_parameters()
        if self.method not in MUTATING or "/api/" not in self.path:
            return declared
        has_dry_run = dry_runs.has_one(self.view, self.method)
        is_keyed = idempotency_keys.is_required(self.view, self.method)
        key = IDEMPOTENCY_KEY_REQUIRED if is_keyed else IDEMPOTENCY_KEY
        return [*declared, *([dry_runs.PARAMETER] if has_dry_run else []), key]

    def _get_response_bodies(self, direction: str = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        if "/api/" not in self.path:
            return bodies
        if dry_runs.is_rehearsed(self.view, self.method):
            bodies = {"200": self._with_outlook(bodies.get("200"), direction), **bodies}
        problem = OpenApiResponse(ProblemSerializer, description="A problem; `code` says which.")
        bodies["default"] = self._get_response_for_code(
            problem, "default", media_types=["application/problem+json"], direction=direction
        )
        return bodies

    def _with_outlook(self, done: dict[str, Any] | None, direction: str) -> dict[str, Any]:
        """The answer 200 of a call that is rehearsed in a dry run; `done`: what it answers when it was made."""
        outlook: dict[str, Any] = self._get_response_for_code(dry_runs.ANSWER, "200", direction=direction)
        if done is not None:
            content = done["content"]["application/json"]
            content["schema"] = {"oneOf": [content["schema"], outlook["content"]["application/json"]["schema"]]}
        return done or outlook

    def _get_request_body(self, direction: str = "request") -> Any:
        """No request that has a body may leave it out, a PATCH neither, unless its view says so; a DELETE may have one."""
        deletes = self.method == "DELETE" and getattr(self.view, "deletes_by_body", False)
        self.method = "POST" if deletes else self.method  # spectacular knows no body of a DELETE
        try:
            body = super()._get_request_body(direction)
        finally:
            self.method = "DELETE" if deletes else self.method
        return body and {**body, "required": not getattr(self.view, "bodies_are_optional", False)}

    def _map_basic_serializer(self, serializer: Any, direction: str) -> Any:
        """Request bodies refuse members that they do not know, and some refuse to be empty: the schema says so."""
        shape = super()._map_basic_serializer(serializer, direction)
        if isinstance(serializer, StrictSerializer):
            shape["additionalProperties"] = False
            if serializer.not_empty:
                shape["minProperties"] = 1
        return shape

    def get_operation_id(self) -> str:
        """`instances_whitelist_put`: path words and method."""
        words = [word for word in self.path.split("/")[3:] if word and not word.startswith("{")]
        named = "item_" if self.path.rstrip("/").endswith("}") else ""
        return "_".join([*(word.replace("-", "_") for word in words), named + self.method.lower()])


_RATE_HEADERS = {
    "RateLimit-Limit": ("integer", "requests that may be made in a minute, of the limit that is nearest to its end"),
    "RateLimit-Remaining": ("integer", "how many of them are left"),
    "RateLimit-Reset": ("integer", "seconds until they may all be made again"),
    "RateLimit-Policy": ("string", "all limits that hold, such as `3000;w=60`: 3,000 in 60 seconds"),
    "Retry-After": ("integer", "seconds to wait"),
}


def rate_limits_postprocess(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """Every operation may answer 429, which stands in the schema once; drf-spectacular's hook."""
    components = result["components"]
    components["responses"] = {
        "TooManyRequests": {
            "description": "Too many requests of this API key, or of its organisation (`too_many_requests`).",
            "headers": {
                name: {"schema": {"type": kind}, "description": words} for name, (kind, words) in _RATE_HEADERS.items()
            },
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    }
    for path, item in result["paths"].items():
        for operation in item.values() if "/api/" in path else ():
            others = operation["responses"]
            limited = {"429": {"$ref": "#/components/responses/TooManyRequests"}}
            default = {"default": others.pop("default")} if "default" in others else {}
            operation["responses"] = {**others, **limited, **default}
    return result
