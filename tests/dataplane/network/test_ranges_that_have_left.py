"""Who sends a range of a file is told how much of it left: all, or what had when the connection ended."""

import os
import socket

import pytest

from dataplane.storage.files import FileSlice, SystemFiles
from tests.dataplane.network.test_connection import framed, read_exactly, server, wait_until

__all__ = ["server"]  # the fixture

MIB = 2**20


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(24 * MIB))
    return SystemFiles().open(str(path))


@pytest.mark.parametrize("size", [1, 1_000, 65_535, 65_536, 3 * MIB])
def test_a_range_that_left_is_told_once_with_its_size(server, file, size):
    told = []
    one = server(lambda _: [b"head", FileSlice(file, 10, size, told.append), b"tail", FileSlice(file, 0, 7)])
    with one.connect() as client:
        for _ in range(3):
            client.sendall(framed(b"go"))
            read_exactly(client, 4 + size + 4 + 7)
        wait_until(lambda: len(told) == 3)
    wait_until(lambda: one.protocols[0].closed_for)
    assert told == [size] * 3


def test_many_ranges_of_one_answer_are_told_in_order(server, file):
    told = []
    sizes = [1 + n * 397 % 90_000 for n in range(600)]
    one = server(lambda _: [FileSlice(file, 0, size, told.append) for size in sizes])
    with one.connect() as client:
        client.sendall(framed(b"go"))
        read_exactly(client, sum(sizes))
        wait_until(lambda: len(told) == len(sizes))
    assert told == sizes


def slow(one):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    client.settimeout(10)
    client.connect(one.listener.address)
    return client


def test_a_slow_reader_is_counted_as_it_reads(server, file):
    told = []
    answer = [FileSlice(file, 0, 8 * MIB, lambda n: told.append(("first", n))), b"-" * 10]
    answer.append(FileSlice(file, 0, 16 * MIB, lambda n: told.append(("second", n))))
    one = server(lambda _: answer)
    with slow(one) as client:
        client.sendall(framed(b"go"))
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        assert told == []
        read_exactly(client, 8 * MIB)
        wait_until(lambda: told == [("first", 8 * MIB)])
        read_exactly(client, 10 + 16 * MIB)
        wait_until(lambda: len(told) == 2)
    assert told == [("first", 8 * MIB), ("second", 16 * MIB)]


@pytest.mark.parametrize("ended_by", ["the client", "this side"])
def test_of_a_range_whose_connection_ends_what_has_left_is_told_and_the_rest_is_not(server, file, ended_by):
    told = []
    answer = [FileSlice(file, 0, 1 * MIB, lambda n: told.append(("first", n)))]
    answer += [FileSlice(file, 0, 20 * MIB, lambda n: told.append(("second", n)))]
    answer += [FileSlice(file, 0, 1 * MIB, lambda n: told.append(("third", n)))]
    one = server(lambda _: answer)
    client = slow(one)
    client.sendall(framed(b"go"))
    read_exactly(client, 4 * MIB)
    if ended_by == "the client":
        client.close()
    else:
        one.on_loop(one.protocols[0].connection.close)
    wait_until(lambda: one.protocols[0].closed_for)
    client.close()
    (first, second) = told
    assert first == ("first", 1 * MIB)
    assert second[0] == "second"
    # What was read, and what lay in the sockets' buffers; not the rest.
    assert 3 * MIB <= second[1] < 19 * MIB


def test_a_range_of_which_nothing_left_is_not_told(server, file):
    told = []
    one = server(lambda _: [])
    with one.connect() as client:
        client.sendall(framed(b"go"))
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        connection = one.protocols[0].connection

        def send_and_close():
            connection.send([b"head", FileSlice(file, 0, MIB, told.append)])
            connection.close()

        one.on_loop(send_and_close)
        wait_until(lambda: one.protocols[0].closed_for)
    assert told == []
