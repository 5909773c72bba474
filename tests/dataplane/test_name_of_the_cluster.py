"""How usage records name the cluster: what broker.toml says, and nothing that a record could not hold."""

import json

import pytest

from dataplane.config import ConfigError, load, settings_from


@pytest.fixture
def written(tmp_path):
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"cluster_secret": "x" * 32}))

    def write(more=""):
        path = tmp_path / "broker.toml"
        path.write_text(
            f'[broker]\nid = 1\ndata_dirs = ["{tmp_path}/data"]\ninternal = "127.0.0.1:9000"\n'
            f'zookeeper = "127.0.0.1:2181"\nsecrets_file = "{secrets}"\n{more}'
        )
        return str(path)

    return write


def test_it_is_default_unless_the_file_says_otherwise(written):
    assert load(written()).cluster == "default"
    assert load(written('cluster = "eu-2.north"\n')).cluster == "eu-2.north"


@pytest.mark.parametrize("name", ['""', '"a b"', f'"{"x" * 65}"', "7", '"größe"'])
def test_a_name_that_is_none_is_refused(written, name):
    with pytest.raises(ConfigError, match="cluster must be 1 to 64 letters"):
        load(written(f"cluster = {name}\n"))


def test_at_least_one_record_a_second_is_told():
    with pytest.raises(ConfigError, match="usage_emit_records_per_s must be 1 or more"):
        settings_from({"usage_emit_records_per_s": 0})
