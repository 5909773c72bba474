"""For migrations: what Django's secret key has sealed, in releases before, is sealed with the keys of the installation.

Where there is nothing to be sealed, no keys are asked for: a database that is made anew needs none. What no key opens is left
as it is, and told; `manage.py secrets check` names it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from controlplane.sealing import installed
from controlplane.sealing.rotation import columns, rotate

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger(__name__)


def sealing_anew(app: str, *models: str) -> Callable[[Any, Any], None]:
    """What `RunPython` runs, for these models of an app."""

    def run(apps: Any, editor: Any) -> None:
        using = editor.connection.alias
        for column in columns(apps.get_model(app, name) for name in models):
            if next(column.portions(using, 1), None) is None:
                continue
            done = rotate(column, installed.keyring(), using=using)
            if done.lost:
                LOG.warning(
                    "%s: %d of %d rows cannot be opened; `manage.py secrets check`", done.label, done.lost, done.seen
                )

    return run
