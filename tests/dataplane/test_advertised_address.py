"""Where other brokers reach a broker is what it registers, which need not be where it listens."""

from __future__ import annotations

import json

import pytest

from dataplane.config import load


@pytest.fixture
def config(tmp_path):
    (tmp_path / "secrets.json").write_text(json.dumps({"cluster_secret": "s"}))

    def write(**members):
        table = {
            "id": 1,
            "data_dirs": ["d"],
            "internal": "127.0.0.1:10",
            "zookeeper": "127.0.0.1:11",
            "secrets_file": str(tmp_path / "secrets.json"),
            **members,
        }
        path = tmp_path / "broker.toml"
        path.write_text("[broker]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items()))
        return load(str(path))

    return write


def test_without_the_setting_it_is_the_address_that_is_listened_on(config):
    assert config().advertised_internal is None


def test_the_setting_is_an_address(config):
    assert config(advertised_internal="10.0.0.7:99").advertised_internal == ("10.0.0.7", 99)
