"""What requests may hold and answers must: the models of the vendor's SDK, as data.

`shapes.json` is made of the SDK by `python -m tests.controlplane.ckafka_api.sdk`; a test compares the two. A member's type is::

    str  int  float  bool    a value                [int]  [Tag]    a list of them
    Tag                      another shape          ...?            the SDK says that it may be null

`check` refuses what a request's shape does not have. `filled` completes an answer: a member that the SDK does not call
nullable is always there, empty ("", 0, false, [], or a shape of these) where this service has nothing that corresponds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.errors import CkafkaError, Code

if TYPE_CHECKING:
    from collections.abc import Mapping

Shape = dict[str, str]

_DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parent / "shapes.json").read_text())
SDK: str = _DOCUMENT["sdk"]
ACTIONS: frozenset[str] = frozenset(_DOCUMENT["actions"])
"""Every action that the SDK knows, had here or not."""
SHAPES: dict[str, Shape] = _DOCUMENT["shapes"]
_VALUES: Mapping[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}
_EMPTY: Mapping[str, object] = {"str": "", "int": 0, "float": 0.0, "bool": False}


def check(shape: str, members: Mapping[str, Any], *, also: Mapping[str, str] = {}, at: str = "") -> None:
    """A request's members are those of its shape, and of their types; null is as if it were left out. Raises CkafkaError."""
    types = {**SHAPES[shape], **also}
    for name, value in members.items():
        if name not in types:
            raise CkafkaError(Code.UNKNOWN_PARAMETER, f"The parameter `{at}{name}` is not recognized.")
        if value is not None:
            _check_value(types[name].removesuffix("?"), value, f"{at}{name}")


def _check_value(kind: str, value: object, at: str) -> None:
    if kind.startswith("["):
        if not isinstance(value, list):
            raise CkafkaError(Code.INVALID_PARAMETER, f"The parameter `{at}` must be a list.")
        for position, each in enumerate(value):
            _check_value(kind[1:-1], each, f"{at}.{position}")
    elif kind not in _VALUES:
        if not isinstance(value, dict):
            raise CkafkaError(Code.INVALID_PARAMETER, f"The parameter `{at}` must be an object.")
        check(kind, value, at=f"{at}.")
    elif not isinstance(value, _VALUES[kind]) or (isinstance(value, bool) and kind != "bool"):
        raise CkafkaError(Code.INVALID_PARAMETER, f"The parameter `{at}` must be of type {kind}.")


def filled(shape: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as the SDK expects it. A member that its shape does not have is a bug, and raises KeyError."""
    types = SHAPES[shape]
    unknown = members.keys() - types.keys()
    if unknown:
        raise KeyError(f"{shape} has no {', '.join(sorted(unknown))}")
    return {name: _filled_value(kind, members.get(name)) for name, kind in types.items()}


def _filled_value(kind: str, value: Any) -> Any:
    plain = kind.removesuffix("?")
    if value is None and plain != kind:
        return None
    if plain.startswith("["):
        return [_filled_value(plain[1:-1], each) for each in value or ()]
    if plain in _VALUES:
        return _EMPTY[plain] if value is None else value
    return filled(plain, value or {})
