"""The vendor's SDK as data: `python -m tests.controlplane.ckafka_api.sdk` writes controlplane/ckafka_api/shapes.json anew.

Its models have no types at run time: names are the attributes of an empty model, types and "may be null" are read in the
docstrings of their constructors, all of which have one form.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

from tencentcloud.ckafka.v20190819 import models
from tencentcloud.ckafka.v20190819.ckafka_client import CkafkaClient

import controlplane

SHAPES = Path(controlplane.__path__[0]) / "ckafka_api/shapes.json"
PACKAGE = "tencentcloud-sdk-python-ckafka"
_MEMBER = re.compile(r":param _(\w+): (.*?)\n\s+:type \1: ([^\n]+)\n", re.DOTALL)
_MODEL = re.compile(r":class:`[\w.]+\.(\w+)`")


def actions() -> list[str]:
    """Every action that the client has a method for."""
    return sorted(name for name in vars(CkafkaClient) if name[0].isupper())


def shape(name: str) -> dict[str, str]:
    """A model's members and their types, as `controlplane.ckafka_api.shapes` has them."""
    model = getattr(models, name)
    members = [member.removeprefix("_") for member in vars(model()) if member != "_headers"]
    told = {found[1]: (found[2], found[3]) for found in _MEMBER.finditer(model.__init__.__doc__ + "\n")}
    assert list(told) == members, f"the docstring of {name} names other members"
    return {member: _type(kind) + ("?" if "返回 null" in text else "") for member, (text, kind) in told.items()}


def _type(text: str) -> str:
    listed = text.strip().removeprefix("list of ")
    name = _MODEL.sub(r"\1", listed)
    name = {"integer": "int", "boolean": "bool", "string": "str"}.get(name.lower(), name)
    return f"[{name}]" if listed != text.strip() else name


def shapes(supported: list[str]) -> dict[str, dict[str, str]]:
    """The models of these actions' requests and answers, and those that they are made of."""
    wanted = [f"{action}{side}" for action in supported for side in ("Request", "Response")]
    found: dict[str, dict[str, str]] = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = shape(name)
            parts = (kind.strip("[]?") for kind in found[name].values())
            wanted += [part for part in parts if part not in ("str", "int", "float", "bool")]
    return dict(sorted(found.items()))


def document(supported: list[str]) -> dict[str, object]:
    """shapes.json."""
    return {"sdk": f"{PACKAGE} {version(PACKAGE)}", "actions": actions(), "shapes": shapes(supported)}


if __name__ == "__main__":
    import os
    import sys

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    if not SHAPES.exists():
        SHAPES.write_text(json.dumps(document([])))
    django.setup()
    from controlplane.ckafka_api.actions.table import TABLE

    SHAPES.write_text(json.dumps(document(sorted(TABLE)), indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{SHAPES}\n")
