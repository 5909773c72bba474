"""The vendor's SDK knows a host and no path: its requests to "/" are for /compat/ckafka. Its header tells them from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

ADDRESS = "/compat/ckafka"
HEADER = "X-TC-Action"


class CkafkaAtRootMiddleware:
    """See above."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Say where the request is for."""
        if request.path_info == "/" and request.method == "POST" and HEADER in request.headers:
            request.path_info = request.path = ADDRESS
        return self._get_response(request)
