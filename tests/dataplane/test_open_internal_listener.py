"""An internal listener without authentication is for tests: it has to be asked for, and only loopback may have it."""

from __future__ import annotations

import json

import pytest

from dataplane.config import ConfigError, load


@pytest.fixture
def written(tmp_path):
    (tmp_path / "secrets.json").write_text(json.dumps({"cluster_secret": "s"}))

    def write(host: str, authentication: str | None) -> str:
        lines = [
            "[broker]",
            "id = 1",
            f'data_dirs = ["{tmp_path}/data"]',
            f'internal = "{host}:9000"',
            'zookeeper = "127.0.0.1:2181"',
            f'secrets_file = "{tmp_path}/secrets.json"',
        ]
        if authentication is not None:
            lines.append(f'internal_authentication = "{authentication}"')
        path = tmp_path / "broker.toml"
        path.write_text("\n".join(lines))
        return str(path)

    return write


def test_a_broker_that_is_told_nothing_asks_for_the_secret(written):
    assert load(written("127.0.0.1", None)).internal_authentication == "sasl"


def test_on_loopback_authentication_can_be_switched_off(written):
    assert load(written("127.0.0.2", "none")).internal_authentication == "none"


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "localhost", "broker-1.example"])
def test_elsewhere_it_cannot(written, host):
    with pytest.raises(ConfigError, match="loopback"):
        load(written(host, "none"))


def test_another_word_is_not_taken_for_either(written):
    with pytest.raises(ConfigError, match="internal_authentication"):
        load(written("127.0.0.1", "off"))
