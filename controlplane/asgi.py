"""The same site for an ASGI server. Nothing in it is asynchronous yet; wsgi.py is what the stack runs."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from controlplane.core.charset import asgi_in_utf8

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
application = asgi_in_utf8(get_asgi_application())

from controlplane.sealing import installed  # noqa: E402  # it needs settings

installed.demand()
