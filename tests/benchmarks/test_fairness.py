"""The clients and figures of `fairness`, against a server that answers as a broker would."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_request, encode_frame, parse_request_header
from dataplane.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.benchmarks.fairness import _phase
from tests.benchmarks.fairness_clients import VERSION, Client, Noted, Swarm, body, most_in

MIB = 2**20


def noted(*rows):
    return [Noted(client, due_s, answered_s, size, error) for client, due_s, answered_s, size, error in rows]


def test_the_worst_window_is_found_wherever_it_begins():
    each_second = [(0, t, float(t), 100, 0) for t in range(60)]
    burst = [(0, 40, 40.5, 1_000, 0)]
    assert most_in(noted(*each_second), 30) == 3_000
    assert most_in(noted(*each_second, *burst), 30) == 4_000


def test_what_was_refused_was_not_admitted():
    assert most_in(noted((0, 0, 0.0, 100, 0), (0, 0, 0.1, 900, 7), (0, 0, 0.2, 900, -2)), 30) == 100


def test_of_a_phase_counts_what_was_due_in_it_and_what_flowed_in_it():
    rows = noted(
        (0, 5.0, 5.5, MIB, 0),  # before
        (0, 10.0, 10.2, MIB, 0),
        (1, 11.0, 50.0, MIB, 0),  # nobody waits so long
        (1, 12.0, 13.0, MIB, -2),
        (99, 12.0, 13.0, 4 * MIB, 0),  # the flooder
    )
    found = _phase(rows, 10.0, 20.0, 1.0 * MIB)
    assert found["answered"] == 2
    assert found["p50_ms"] == 39_000
    assert found["timed_out"] == 2
    assert found["whole_percent"] == 50.0


@contextmanager
def broker(answer, requests):
    """Answers Produce; `answer(number)` says how long to wait, as the answer tells it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(sock):
        with sock, suppress(ConnectionError):
            while head := sock.recv(4, socket.MSG_WAITALL):
                frame = memoryview(bytearray(sock.recv(int.from_bytes(head), socket.MSG_WAITALL)))
                header = parse_request_header(frame)
                requests.append((header.client_id, decode_request(header, frame)))
                one = TopicProduceResponse("flow", (PartitionProduceResponse(0, 0, 0),))
                reply = ProduceResponse((one,), answer(len(requests)))
                sock.sendall(b"".join(encode_frame(APIS[ApiKey.PRODUCE], VERSION, 1, reply)))

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


PATIENCE_S = 20.0


def run(clients, seconds, enough=lambda _noted: True):
    """For so long, and on until it is `enough`: a machine may be busy."""
    swarm = Swarm(clients)
    ends = time.monotonic() + PATIENCE_S
    swarm.run(time.monotonic() + seconds)
    while not enough(swarm.noted) and time.monotonic() < ends:
        swarm.run(time.monotonic() + seconds)
    swarm.close()
    return swarm.noted


def test_each_client_sends_under_its_own_id_and_is_noted():
    requests = []
    with broker(lambda number: 0, requests) as address:
        clients = [Client(number, address, f"id-{number}", body("flow", 0, 1_000), depth=1) for number in range(3)]
        found = run(clients, 0.5, lambda noted: len({each.client for each in noted}) == 3)
    assert {name for name, _ in requests} == {"id-0", "id-1", "id-2"}
    assert {each.client for each in found} == {0, 1, 2}
    assert {each.error for each in found} == {0}
    assert 980 < len(requests[0][1].topic_data[0].partition_data[0].records) <= 1_000


def test_a_client_at_a_rate_is_not_faster():
    requests = []
    with broker(lambda number: 0, requests) as address:
        began = time.monotonic()
        found = run([Client(0, address, "slow", body("flow", 0, 100), every_s=0.1)], 0.55, bool)
        seconds = time.monotonic() - began
    assert 1 <= len(found) <= 1 + seconds / 0.1


@pytest.mark.parametrize("waits", [True, False])
def test_who_waits_as_told_sends_no_more_and_who_does_not_goes_on(waits):
    requests = []
    with broker(lambda number: 60_000, requests) as address:
        client = Client(0, address, "c", body("flow", 0, 100), depth=1, waits=waits)
        run([client], 0.5, lambda noted: len(noted) >= (1 if waits else 2))
    assert (len(requests) == 1) is waits


def test_a_client_that_connects_anew_does_so_for_every_request():
    requests = []
    with broker(lambda number: 0, requests) as address:
        client = Client(0, address, "c", body("flow", 0, 100), depth=1, connects_anew=True)
        found = run([client], 0.5, lambda noted: len(noted) >= 2)
    assert len(found) >= 2
    assert {each.error for each in found} == {0}
