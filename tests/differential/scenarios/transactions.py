"""Transactions: who may begin, add, end and look, in which state, and what is told to whom of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.produce import InitProducerIdRequest
from dataplane.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
)
from tests.differential.asking import Asker
from tests.differential.scenarios import scenario

if TYPE_CHECKING:
    from collections.abc import Callable

OF_BROKERS = 4
"""From this version on AddPartitionsToTxn is what brokers ask."""
_INIT, _ADD, _END = 4, 3, 3
_LATER = {14, 15, 16, 51}
_SETTLED_WITHIN_S = 15.0
Producer = tuple[int, int]


def _init(name: str | None, known: Producer = (-1, -1), timeout_ms: int = 60_000) -> InitProducerIdRequest:
    return InitProducerIdRequest(name, timeout_ms, *known)


def _add(name: str, producer: Producer, *topics: tuple[str, tuple[int, ...]]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=tuple(AddPartitionsToTxnTopic(*topic) for topic in topics),
    )


def _end(name: str, producer: Producer, *, committed: bool = True) -> EndTxnRequest:
    return EndTxnRequest(name, *producer, committed)


def _until(asker: Asker, request: Any, version: int, codes: Callable[[Any], set[int]]) -> Any:
    """The answer of when nothing is on its way any more, and there is a coordinator."""
    deadline = time.monotonic() + _SETTLED_WITHIN_S
    answer = asker.quietly(request, version)
    while codes(answer) & _LATER and time.monotonic() < deadline:
        time.sleep(0.02)
        answer = asker.quietly(request, version)
    assert codes(answer) == {0}, answer
    return answer


def producer_of(asker: Asker, name: str, known: Producer = (-1, -1)) -> Producer:
    """A producer under a transactional id."""
    _until(asker, FindCoordinatorRequest(name, 1), 2, lambda found: {found.error_code})
    answer = _until(asker, _init(name, known), _INIT, lambda made: {made.error_code})
    return answer.producer_id, answer.producer_epoch


def _open(asker: Asker, name: str, producer: Producer, *topics: tuple[str, tuple[int, ...]]) -> None:
    """With these partitions in it, as soon as the transaction before is over."""
    _until(asker, _add(name, producer, *topics), _ADD, _codes_of_partitions)


def _codes_of_partitions(answer: AddPartitionsToTxnResponse) -> set[int]:
    rows = (row for topic in answer.results_by_topic_v3_and_below for row in topic.results_by_partition)
    return {row.partition_error_code for row in rows}


@scenario(ApiKey.INIT_PRODUCER_ID)
def init_transactional_producer(asker: Asker) -> None:
    topic, name = asker.topic("t", 2), asker.name("txn")
    old = producer_of(asker, name)
    asker.ask("the next", _init(name))
    for timeout_ms in (0, -1, 900_000, 900_001):
        asker.ask(f"timeout {timeout_ms}", _init(asker.name("other"), timeout_ms=timeout_ms))
    latest = producer_of(asker, name)
    if asker.version >= 3:
        asker.ask("one before the last", _init(name, old))
        asker.ask("the last", _init(name, latest))
        asker.ask("the last again", _init(name, latest))
        asker.ask("an epoch to come", _init(name, (latest[0], 100)))
        asker.ask("another producer's id", _init(name, (latest[0] + 1_000_000, 0)))
        asker.ask("an id without an epoch", _init(name, (latest[0], -1)))
        asker.ask("an unknown transactional id with an id", _init(asker.name("new"), (latest[0], 0)))
    current = producer_of(asker, name)
    _open(asker, name, current, (topic, (0,)))
    asker.ask("while a transaction is open", _init(name))
    after = producer_of(asker, name)
    asker.ask("the fenced one ends", _end(name, current), _END)
    asker.ask("the fenced one adds", _add(name, current, (topic, (0,))), _ADD)
    asker.ask("the new one ends nothing", _end(name, after), _END)


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN)
def add_partitions(asker: Asker) -> None:
    topic, other, name = asker.topic("a", 2), asker.topic("b", 1), asker.name("txn")
    producer = producer_of(asker, name)
    if asker.version >= OF_BROKERS:
        _ask_as_a_broker(asker, name, producer, topic, other)
        return
    asker.ask("two topics", _add(name, producer, (topic, (0, 1)), (other, (0,))))
    asker.ask("again", _add(name, producer, (topic, (0,))))
    asker.ask("one that is not there", _add(name, producer, (topic, (0, 9)), (asker.name("no"), (0,))))
    asker.ask("the offsets' topic", _add(name, producer, (topic, (0,)), ("__consumer_offsets", (0,))))
    asker.ask("nothing", _add(name, producer))
    asker.ask("no partitions", _add(name, producer, (topic, ())))
    asker.ask("another id", _add(name, (producer[0] + 1_000_000, producer[1]), (topic, (0,))))
    asker.ask("a higher epoch", _add(name, (producer[0], producer[1] + 1), (topic, (0,))))
    asker.ask("a lower epoch", _add(name, (producer[0], producer[1] - 1), (topic, (0,))))
    asker.ask("an unknown transactional id", _add(asker.name("unknown"), producer, (topic, (0,))))
    asker.ask("the empty transactional id", _add("", producer, (topic, (0,))))
    asker.ask("and commit", _end(name, producer), _END)


def _ask_as_a_broker(asker: Asker, name: str, producer: Producer, topic: str, other: str) -> None:
    _open(asker, name, producer, (topic, (0,)))
    second = asker.name("second")
    idle = producer_of(asker, second)

    def verify(label: str, *transactions: tuple[str, Producer, str, tuple[int, ...]], verify_only: bool = True) -> None:
        rows = tuple(
            AddPartitionsToTxnTransaction(named, *who, verify_only, (AddPartitionsToTxnTopic(asked, indexes),))
            for named, who, asked, indexes in transactions
        )
        asker.ask(label, AddPartitionsToTxnRequest(transactions=rows))

    verify("in it, and not", (name, producer, topic, (0, 1)))
    verify("in none", (second, idle, topic, (0,)))
    verify("two at once", (name, producer, topic, (0,)), (second, idle, other, (0,)))
    verify("another id", (name, (producer[0] + 1_000_000, 0), topic, (0,)))
    verify("another epoch", (name, (producer[0], producer[1] + 1), topic, (0,)))
    verify("an unknown transactional id", (asker.name("unknown"), producer, topic, (0,)))
    verify("a topic that is not there", (name, producer, asker.name("no"), (0,)))
    verify("adding", (second, idle, other, (0,)), verify_only=False)
    verify("what was added", (second, idle, other, (0,)))
    asker.ask("and abort", _end(name, producer, committed=False), _END)


@scenario(ApiKey.ADD_OFFSETS_TO_TXN)
def add_offsets(asker: Asker) -> None:
    name, group = asker.name("txn"), asker.name("g")
    producer = producer_of(asker, name)
    asker.ask("a group", AddOffsetsToTxnRequest(name, *producer, group))
    asker.ask("again", AddOffsetsToTxnRequest(name, *producer, group))
    asker.ask("another id", AddOffsetsToTxnRequest(name, producer[0] + 1_000_000, producer[1], group))
    asker.ask("another epoch", AddOffsetsToTxnRequest(name, producer[0], producer[1] + 1, group))
    asker.ask("an unknown transactional id", AddOffsetsToTxnRequest(asker.name("no"), *producer, group))
    asker.ask("the empty transactional id", AddOffsetsToTxnRequest("", *producer, group))
    asker.ask("the empty group", AddOffsetsToTxnRequest(name, *producer, ""))
    asker.ask("and commit", _end(name, producer), _END)


@scenario(ApiKey.END_TXN)
def end_txn(asker: Asker) -> None:
    topic, name = asker.topic("t"), asker.name("txn")
    producer = producer_of(asker, name)
    asker.ask("nothing was begun", _end(name, producer))
    asker.ask("an unknown transactional id", _end(asker.name("no"), producer))
    asker.ask("the empty transactional id", _end("", producer))
    for committed in (True, False):
        _open(asker, name, producer, (topic, (0,)))
        said = "commit" if committed else "abort"
        asker.ask(f"{said} by another id", _end(name, (producer[0] + 1_000_000, producer[1]), committed=committed))
        asker.ask(f"{said} by a higher epoch", _end(name, (producer[0], producer[1] + 1), committed=committed))
        asker.ask(f"{said} by a lower epoch", _end(name, (producer[0], producer[1] - 1), committed=committed))
        asker.ask(said, _end(name, producer, committed=committed))
        for again in (True, False):
            asker.later(
                f"{said}, and then {'commit' if again else 'abort'}",
                lambda: asker.quietly(_end(name, producer, committed=again)),  # noqa: B023 - called at once
                lambda answer: answer.error_code != 51,
            )


@scenario(ApiKey.DESCRIBE_TRANSACTIONS)
def describe_transactions(asker: Asker) -> None:
    topic, name = asker.topic("t", 2), asker.name("txn")

    def settled(label: str) -> None:
        asker.later(
            label,
            lambda: asker.quietly(DescribeTransactionsRequest((name,))),
            lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
        )

    producer = producer_of(asker, name)
    settled("that has begun nothing")
    _open(asker, name, producer, (topic, (0,)))
    settled("that is open")
    asker.quietly(_end(name, producer), _END)
    settled("that is committed")
    _open(asker, name, producer, (topic, (1,)))
    asker.quietly(_end(name, producer, committed=False), _END)
    settled("that is aborted")
    asker.ask("several", DescribeTransactionsRequest((asker.name("no"), "", name)))
    asker.ask("none", DescribeTransactionsRequest(()))


@scenario(ApiKey.LIST_TRANSACTIONS)
def list_transactions(asker: Asker) -> None:
    topic, name, other = asker.topic("t"), asker.name("txn"), asker.name("other")
    producer, idle = producer_of(asker, name), producer_of(asker, other)
    _open(asker, name, producer, (topic, (0,)))

    def listed(label: str, *states: str, duration: int = -1) -> None:
        for whose, who in (("the open one", producer), ("the other", idle)):
            request = ListTransactionsRequest(states, (who[0],), duration if asker.version >= 1 else -1)
            asker.ask(f"{label}: {whose}", request)

    listed("all")
    listed("what is open", "Ongoing")
    listed("what is not", "Empty", "Dead")
    listed("in states that there are not", "ongoing", "Nothing")
    listed("and in one that there is", "Nothing", "Empty")
    if asker.version >= 1:
        listed("that began long ago", duration=3_600_000)
        listed("that began at some time", duration=0)
    asker.ask("of nobody", ListTransactionsRequest((), (2**62,)))


@scenario(ApiKey.FIND_COORDINATOR)
def find_the_coordinator_of_a_transaction(asker: Asker) -> None:
    name = asker.name("txn")
    producer_of(asker, name)
    if asker.version >= 4:
        asker.ask("two", FindCoordinatorRequest(key_type=1, coordinator_keys=(name, asker.name("other"))))
    elif asker.version >= 1:
        asker.ask("one", FindCoordinatorRequest(name, 1))
