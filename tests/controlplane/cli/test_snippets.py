"""Snippets on the command line: the list of clients, a text to redirect, one file of several."""

from __future__ import annotations

from typing import get_args

import pytest

from controlplane.cli.commands.instance import Client
from controlplane.snippets.programs import KEYS


def test_clients_are_those_that_there_are():
    assert get_args(Client) == KEYS


def test_without_a_client_they_are_listed(ok, instance):
    said = ok("instance", "snippet", instance.name).out
    assert [line.split()[0] for line in said.splitlines()[1:]] == list(KEYS)


def test_one_file_is_printed_as_it_is(ok, instance):
    ran = ok("instance", "snippet", instance.id, "--client", "kcat", "--topic", "orders")
    assert ran.out.startswith("# what there is\nkcat -b 127.0.0.1:20100,")
    assert "-t orders -P" in ran.out
    assert ran.err == "Run it: sh commands.sh\n"


def test_several_have_their_names_above_them(ok, instance):
    said = ok("instance", "snippet", instance.id, "--client", "java", "--topic", "orders").out
    heads = [line for line in said.splitlines() if line.startswith("==>")]
    assert heads == ["==> client.properties <==", "==> src/main/java/Main.java <==", "==> pom.xml <=="]


def test_one_of_several_is_printed_as_it_is(ok, as_alice, instance):
    said = ok("instance", "snippet", instance.id, "--client", "java", "--file", "pom.xml").out
    assert said.startswith("<project ")
    assert said.endswith("</project>\n")
    ran = as_alice("instance", "snippet", instance.id, "--client", "java", "--file", "Main")
    assert ran.status != 0
    assert "there is no file Main: client.properties, src/main/java/Main.java, pom.xml" in ran.err


@pytest.mark.parametrize("output", [[], ["-o", "json"]])
def test_a_file_of_no_client_is_none(as_alice, instance, output):
    """A table of clients in a pom.xml would be found out too late."""
    ran = as_alice("instance", "snippet", instance.id, "--file", "pom.xml", *output)
    assert (ran.status, ran.out) == (2, "")
    assert "say --client with --file" in ran.err


def test_a_program_reads_json(ok, instance):
    found = ok("instance", "snippet", instance.id, "--client", "node", "-o", "json").json
    assert [each["file"] for each in found["snippet"]["files"]] == ["produce.js", "consume.js"]


def test_a_refusal_names_what_is_wrong(as_alice, instance):
    ran = as_alice("instance", "snippet", instance.id, "--client", "kcat", "--topic", "$(id)")
    assert ran.status == 1
    assert "may hold only letters" in ran.err
