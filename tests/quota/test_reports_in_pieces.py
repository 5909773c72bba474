"""The report of thousands of instances is made in pieces, and the loop serves others between them."""

import json

import pytest

from quota.agent.agent import Agent, InstanceFacts
from quota.agent.transport import MasterLink
from quota.contracts.report import Flow, FlowReport, InstanceReport
from quota.steps import ROWS_PER_STEP
from quota.wire import Decoder
from tests.quota.test_transport import Door

MANY = 3 * ROWS_PER_STEP + 1


class Broker:
    """Of many instances; `taken` counts those that the report in the making has come to."""

    def __init__(self):
        self.door, self.taken, self.fails = Door(), 0, False
        self.agent = Agent(broker=1, boot="b", now=0.0)
        for name in self.names():
            self.agent.configure(name, 1000, 1000, 0.0)
        self.link = MasterLink(self.door, self.agent, broker=1, secret="s", facts=self.facts, log=lambda line: None)
        self.link.start()
        self.connect()

    def connect(self):
        self.link.set_master("127.0.0.1", 5 + len(self.door.conns), 1)
        self.door.conns[-1].on_open()

    @staticmethod
    def names():
        return [f"ins-{number:08}" for number in range(MANY)]

    def facts(self):
        self.taken = 0
        for name in self.names():
            if self.fails:
                raise RuntimeError("a bug")
            self.taken += 1
            yield name, InstanceFacts(1, 1, 0, 0)

    def reports(self):
        documents = Decoder().feed(self.door.conns[-1].sent)
        return [document["instances"] for document in documents if document["type"] == "report"]


def test_a_piece_is_made_in_a_turn_and_the_report_is_sent_when_all_are_there():
    broker = Broker()
    assert broker.taken <= ROWS_PER_STEP + 1
    assert broker.reports() == []
    broker.door.run(0.0)
    (rows,) = broker.reports()
    assert list(rows) == broker.names()


def test_a_new_master_gets_a_whole_report_though_one_was_in_the_making():
    broker = Broker()
    broker.connect()
    broker.door.run(0.0)
    (rows,) = broker.reports()
    assert list(rows) == broker.names()


def test_a_report_for_a_connection_that_is_gone_is_dropped_and_the_next_one_comes_at_its_time():
    broker = Broker()
    broker.door.conns[0].on_closed()
    broker.door.run(0.5)
    broker.door.conns[-1].on_open()
    broker.door.run(1.2)
    assert [len(rows) for rows in broker.reports()] == [MANY, 0], "everything, and then what has changed: nothing"


def test_an_instance_that_goes_while_the_report_is_made_is_left_out():
    broker = Broker()
    broker.agent.remove(broker.names()[-1])
    broker.door.run(0.0)
    (rows,) = broker.reports()
    assert list(rows) == broker.names()[:-1]


def test_what_is_charged_while_the_report_is_made_is_reported_once():
    broker = Broker()
    last = broker.names()[-1]
    broker.agent.bucket(last, "produce").charge(50, 0.0)
    broker.door.run(2.2)
    assert [rows[last][0][0] for rows in broker.reports() if last in rows] == [50, 0]


def test_a_report_that_fails_is_not_the_last_one():
    broker = Broker()
    broker.door.run(0.0)
    broker.fails = True
    with pytest.raises(RuntimeError):
        broker.door.run(1.2)
    broker.fails = False
    broker.door.run(1.2)
    assert len(broker.reports()) == 2


def test_after_stop_no_piece_is_made():
    broker = Broker()
    taken = broker.taken
    broker.link.stop()
    broker.door.run(5.0)
    assert broker.taken == taken


def test_the_document_is_the_same_in_pieces_and_whatever_names_are_in_it():
    flow = Flow(1, 0, 0, 1, None)
    rows = {name: InstanceReport(flow, flow, 0, 0) for name in ['ins-"instances":{}', *reversed(Broker.names())]}
    report = FlowReport(1, '"instances":{}', 1, 1000, rows)
    document = json.loads(report.to_json())
    assert FlowReport.from_document(document) == report
    assert report.to_json() == json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
