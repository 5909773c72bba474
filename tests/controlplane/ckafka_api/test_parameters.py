"""Every action checks its parameters as the SDK's models have them: names, types, and what must be there."""

from __future__ import annotations

import pytest

from controlplane.ckafka_api import limits
from controlplane.ckafka_api.actions.table import TABLE

from . import sdk as sdk_data
from .conftest import refused

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")
WRONG = {"int": "five", "float": "five", "bool": 1}
"""By type, what is none; of all others it is a number."""
RIGHT = {"str": "a", "int": 1, "float": 1.0, "bool": True}


@pytest.fixture(autouse=True)
def unlimited(monkeypatch):
    """Many requests for one action within a second."""
    monkeypatch.setattr(limits, "PER_S", 10_000)
    monkeypatch.setattr(limits, "READING_PER_S", 10_000)


def right(kind):
    return [] if kind.startswith("[") else RIGHT.get(kind, {})


@pytest.mark.parametrize("action", sorted(TABLE))
def test_a_parameter_of_another_name_or_type_is_refused_by_name(action, sdk):
    wanted = [({"Nothing": 1}, "UnknownParameter", "Nothing")]
    for name, kind in sdk_data.shape(f"{action}Request").items():
        plain = kind.removesuffix("?")
        wanted.append(({name: WRONG.get(plain, 5)}, "InvalidParameter", name))
        if plain.startswith("["):
            wanted.append(({name: [WRONG.get(plain.strip("[]"), 5)]}, "InvalidParameter", f"{name}.0"))
    for parameters, code, named in wanted:
        found = refused(lambda parameters=parameters: sdk.call_json(action, parameters))
        assert (found[0], f"`{named}`" in found[1]) == (code, True), (parameters, found)


@pytest.mark.parametrize("action", sorted(name for name, row in TABLE.items() if row.required or row.of_instance))
def test_what_must_be_there_is_asked_for_by_name(action, sdk):
    row, shape = TABLE[action], sdk_data.shape(f"{action}Request")
    needed = {*row.required, *(("InstanceId",) if row.of_instance else ())}
    for missing in needed:
        given = {name: right(shape[name].removesuffix("?")) for name in needed - {missing}}
        code, sentence = refused(lambda given=given: sdk.call_json(action, given))
        assert (code, f"`{missing}`" in sentence) == ("MissingParameter", True), (missing, sentence)
