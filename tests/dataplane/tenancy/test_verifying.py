"""Proofs that take long: one of an instance at a time, instances and addresses in turn, so many and no more."""

from __future__ import annotations

from dataplane.tasks import Future
from dataplane.tenancy import verifying
from dataplane.tenancy.verifying import AT_ONCE, Verifying


class Threads:
    """Work that goes on until it is told to end."""

    def __init__(self):
        self.running = []

    def run(self, work):
        future = Future()
        self.running.append((work(), future))
        return future

    def end(self, name):
        found = next(row for row in self.running if row[0] == name)
        self.running.remove(found)
        found[1].resolve(None)

    @property
    def names(self):
        return [name for name, _ in self.running]


def submit(queue, *names):
    """Named ``account/source/number``."""
    return [queue.submit(*name.split("/")[:2], lambda name=name: name) for name in names]


def test_one_of_an_instance_at_a_time_and_so_many_of_all():
    threads = Threads()
    queue = Verifying(threads)
    submit(queue, "a/x/1", "a/x/2", "b/x/1", "c/x/1")
    assert threads.names == ["a/x/1", "b/x/1"]
    assert len(threads.names) == AT_ONCE
    threads.end("a/x/1")
    assert threads.names == ["b/x/1", "a/x/2"]
    threads.end("b/x/1")
    assert threads.names == ["a/x/2", "c/x/1"]


def test_instances_take_turns():
    threads = Threads()
    queue = Verifying(threads)
    submit(queue, *(f"a/x/{number}" for number in range(10)), "b/x/1", "c/x/1", "d/x/1")
    done = []
    while threads.running:
        done.append(threads.names[0])
        threads.end(done[-1])
    assert {"b/x/1", "c/x/1", "d/x/1"} <= set(done[:6])
    assert len(done) == 13


def test_addresses_of_an_instance_take_turns():
    threads = Threads()
    queue = Verifying(threads)
    submit(queue, *(f"a/attacker/{number}" for number in range(20)), "a/rightful/1")
    threads.end("a/attacker/0")
    assert threads.names == ["a/attacker/1"]
    threads.end("a/attacker/1")
    assert threads.names == ["a/rightful/1"]
    threads.end("a/rightful/1")
    assert threads.names == ["a/attacker/2"]


def test_what_nobody_waits_for_is_not_begun():
    threads = Threads()
    queue = Verifying(threads)
    _, second, _ = submit(queue, "a/x/1", "a/x/2", "a/x/3")
    second.forget()
    threads.end("a/x/1")
    assert threads.names == ["a/x/3"]
    second.forget()


def test_so_many_wait_and_no_more(monkeypatch):
    monkeypatch.setattr(verifying, "MOST_WAITING", 3)
    threads = Threads()
    queue = Verifying(threads)
    jobs = submit(queue, *(f"a/{number}/1" for number in range(6)))
    assert [job is not None for job in jobs] == [True] * 4 + [False] * 2  # one of them is under way
    assert submit(queue, "b/x/1")[0] is not None


def test_an_error_is_whoever_waits_to_hear():
    threads = Threads()
    queue = Verifying(threads)
    (job, behind) = submit(queue, "a/x/1", "a/x/2")
    threads.running.pop()[1].fail(ValueError("a bug"))
    assert isinstance(job.error, ValueError)
    assert threads.names == ["a/x/2"]
    assert not behind.done
