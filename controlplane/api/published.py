"""The schema of all operations as everybody is shown it: made once, and written once for each media type."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, ClassVar

from django.conf import settings
from django.utils import translation
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer


class PublishedGenerator(SchemaGenerator):
    """Of what everybody is shown, which is the same until the code is another: to make it takes 0.15 s of a worker."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        if self.api_version or not public:
            return super().get_schema(request, public)
        return _published()


@cache
def _published() -> Any:
    with translation.override(settings.LANGUAGE_CODE):
        return SchemaGenerator().get_schema(public=True)


@lru_cache(maxsize=8)  # a media type may have parameters, of the caller's choice
def _rendered(renderer: type[BaseRenderer], media_type: str | None) -> bytes:
    written: bytes = renderer().render(_published(), media_type, {})
    return written


def _once(renderer: type[BaseRenderer]) -> type[BaseRenderer]:
    """Of what everybody is shown, written once: a megabyte of YAML takes 0.25 s of a worker."""

    class Once(renderer):  # type: ignore[misc, valid-type]
        def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> Any:
            if data is _published():
                return _rendered(renderer, accepted_media_type)
            return super().render(data, accepted_media_type, renderer_context)

    return Once


class PublishedSchemaApi(SpectacularAPIView):
    """The schema, as YAML or JSON."""

    generator_class = PublishedGenerator
    renderer_classes: ClassVar[list[type[BaseRenderer]]] = [_once(each) for each in SpectacularAPIView.renderer_classes]
