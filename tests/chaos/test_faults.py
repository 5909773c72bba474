"""Which faults count: those that came about."""

from types import SimpleNamespace

from tests.chaos.directed import Directed
from tests.chaos.faults import Faults
from tests.chaos.steps import NotMadeError


def test_an_aimed_fault_that_does_not_come_about_is_ended_and_does_not_count(monkeypatch):
    said, ended = [], []
    faults = Faults(SimpleNamespace(links=None), said.append, outage_s=1.0)
    monkeypatch.setattr(faults, "end", lambda: ended.append(True))
    monkeypatch.setattr(Directed, "make", lambda _self, _kind: None)
    assert faults.make("stall", 7) is True
    assert not ended

    def leaders_move(_self, _kind):
        raise NotMadeError("waited 20 s for leaders to be at home")

    monkeypatch.setattr(Directed, "make", leaders_move)
    assert faults.make("stall", 7) is False
    assert ended
    assert said == ["stall did not come about: waited 20 s for leaders to be at home"]
