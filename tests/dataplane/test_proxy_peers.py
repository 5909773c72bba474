"""Whose PROXY headers a broker believes is said in its file, and nowhere else."""

import json

import pytest

from dataplane.config import ConfigError, load


@pytest.fixture
def config(tmp_path):
    (tmp_path / "secrets.json").write_text(json.dumps({"cluster_secret": "s"}))

    def write(section):
        table = {
            "id": 1,
            "data_dirs": ["d"],
            "internal": "127.0.0.1:10",
            "zookeeper": "127.0.0.1:11",
            "secrets_file": str(tmp_path / "secrets.json"),
        }
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
        path = tmp_path / "broker.toml"
        path.write_text(f"[broker]\n{lines}{section}")
        return load(str(path))

    return write


def test_without_the_section_it_is_nobody(config):
    assert config("").proxy_peers == ()


def test_peers_are_networks_and_single_addresses(config):
    section = '[proxy_protocol]\npeers = ["10.0.0.0/24", "192.0.2.7", "2001:db8::/64"]\n'
    assert config(section).proxy_peers == ("10.0.0.0/24", "192.0.2.7/32", "2001:db8::/64")


@pytest.mark.parametrize(
    "section",
    [
        'peers = "10.0.0.0/24"',
        "peers = [7]",
        'peers = ["10.0.0.1/24"]',  # somebody has mistyped either half
        'peers = ["balancer.example"]',
        'peers = ["fe80::1%eth0"]',  # would be believed from every link
        'peer = ["10.0.0.0/24"]',
    ],
)
def test_what_cannot_be_meant_is_told(config, section):
    with pytest.raises(ConfigError):
        config(f"[proxy_protocol]\n{section}\n")
