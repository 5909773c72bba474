"""The web process: ``granian --interface wsgi controlplane.wsgi:application``."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from controlplane.core.charset import wsgi_in_utf8

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
application = wsgi_in_utf8(get_wsgi_application())

from controlplane.sealing import installed  # noqa: E402  # it needs settings

installed.demand()
