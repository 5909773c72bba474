"""Ports, folders, rendered files and secrets of a stack."""

import stat
import tomllib

import pytest

from controlplane.env import Environment
from controlplane.sealing.keyring import Keyring
from controlplane.stack import plan, ports, report
from controlplane.stack.config import (
    Stores,
    ensure_encryption_keys,
    ensure_secrets,
    environment_of,
    give_certificates,
    give_secrets,
    process_environment,
    read_json,
    write_configuration,
    write_private_json,
)
from controlplane.stack.layout import HIGHEST_BASE, LOWEST_BASE, PROJECT, Layout
from dataplane import config as broker_config
from quota.contracts.identity import credential
from quota.master import config as master_config


@pytest.fixture
def layout(tmp_path):
    return Layout.of(24_000, tmp_path)


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_default_stack_lives_in_var_and_another_port_in_a_folder_of_its_own():
    assert Layout.of(20_000).directory == PROJECT / "var"
    assert Layout.of(22_000).directory == PROJECT / "var" / "stack-22000"


@pytest.mark.parametrize("base", [0, 1_023, 30_769, 65_000])
def test_a_base_port_whose_range_does_not_fit_is_refused(base):
    with pytest.raises(ValueError, match="between 1024 and 30768"):
        Layout.of(base)


def test_the_readme_says_which_base_ports_there_are():
    assert f"`PORT` is from {LOWEST_BASE} to {HIGHEST_BASE}" in (PROJECT / "README.md").read_text()


def test_every_port_lies_in_the_stacks_own_range_and_below_the_tenants(layout):
    wanted = ports.own_ports(layout, Stores.of(layout, {}).own)
    assert len(wanted) == 10
    assert all(24_000 <= port < 24_100 for port in wanted)
    assert layout.tenant_ports == "24100-25999"


def test_broker_files_say_what_the_brokers_need(layout):
    write_configuration(layout, Stores.of(layout, {}))
    document = tomllib.loads((layout.config / "broker-2.toml").read_text())
    assert document == {
        "broker": {
            "id": 2,
            "data_dirs": [f"{layout.directory}/data/broker-2"],
            "internal": "127.0.0.1:24012",
            "zookeeper": "127.0.0.1:24001",
            "chroot": "",
            "secrets_file": f"{layout.directory}/secrets/cluster.json",
            "internal_security": "ssl",
            "tls_folder": f"{layout.directory}/tls/broker-2",
            "session_timeout_ms": 2000,
            "rack": "",
        },
        "settings": {"changes_topic_enable": True},
        "zookeeper": {"acl": "on"},
    }


def test_master_files_say_what_the_masters_need(layout):
    write_configuration(layout, Stores.of(layout, {}))
    document = tomllib.loads((layout.config / "master-1.toml").read_text())
    assert document == {
        "master": {
            "id": 1,
            "report": "127.0.0.1:24021",
            "http": "127.0.0.1:24031",
            "zookeeper": "127.0.0.1:24001",
            "chroot": "",
            "secrets_file": f"{layout.directory}/secrets/cluster.json",
            "internal_security": "ssl",
            "tls_folder": f"{layout.directory}/tls/master-1",
            "session_timeout_ms": 2000,
            "period_ms": 1000,
            "lease_ms": 10000,
            "data_dir": f"{layout.directory}/data/master-1",
        },
        "zookeeper": {"acl": "on"},
    }


def test_tls_and_acls_of_a_users_own_zookeeper_are_passed_on_to_brokers_and_masters(layout):
    theirs = {"SLUICE_ZOOKEEPER_ACL": "off", "SLUICE_ZOOKEEPER_CA": "/ca.pem", "SLUICE_ZOOKEEPER_KEY": "/key.pem"}
    write_configuration(layout, Stores.of(layout, theirs))
    for name in ("broker-1", "master-2"):
        document = tomllib.loads((layout.config / f"{name}.toml").read_text())
        assert document["zookeeper"] == {"acl": "off", "tls": {"ca": "/ca.pem", "key": "/key.pem"}}


def test_a_users_own_stores_are_used_and_not_started(layout):
    theirs = {
        "ZOOKEEPER_HOSTS": "zk1:2181,zk2:2181/sluice",
        "REDIS_URL": "redis://cache:6379/3",
        "DATABASE_URL": "postgresql://db/sluice",
    }
    stores = Stores.of(layout, theirs)
    names = {program.name for program in plan.programs(layout, stores)}
    assert not names & {"zookeeper", "redis"}
    assert (stores.zookeeper, stores.chroot) == ("zk1:2181,zk2:2181", "/sluice")
    environment = process_environment(layout, stores, {})
    assert {name: environment[name] for name in theirs} == theirs
    assert {24_001, 24_002}.isdisjoint(ports.own_ports(layout, stores.own))


def test_the_control_plane_reads_its_settings_from_what_the_stack_sets(layout):
    settings = Environment.read(process_environment(layout, Stores.of(layout, {}), {}))
    assert settings.redis_url == "redis://127.0.0.1:24002/0"
    assert settings.zookeeper_hosts == "127.0.0.1:24001"
    assert settings.port_range == (24_100, 25_999)
    assert settings.secrets_file == layout.secrets_file
    assert settings.cluster_security == "ssl"
    assert settings.cluster_tls == layout.tls / "controlplane"
    assert settings.database()["NAME"] == str(layout.directory / "db.sqlite3")
    # What brokers of one machine have to sell is their part of its disk, and enough for the demo on the smallest.
    assert float(settings.broker_room.removeprefix("storage_gib=").removesuffix("*2")) >= 300


def test_commands_beside_a_stack_have_what_its_processes_have(layout, monkeypatch):
    monkeypatch.setattr(Layout, "of", lambda port: layout if port == layout.base else None)
    with pytest.raises(ValueError, match="has no stack: make up PORT=24000 makes one"):
        environment_of("24000", {})
    ensure_secrets(layout.secrets_file)
    assert environment_of("24000", {"PATH": "/bin"}) == process_environment(
        layout, Stores.of(layout, {}), {"PATH": "/bin"}
    )
    for words in ("", "x", "-1"):
        with pytest.raises(ValueError, match="is not a stack's PORT"):
            environment_of(words, {})


def test_what_the_operator_says_brokers_have_is_not_replaced(layout):
    said = {"SLUICE_BROKER_ROOM": "storage_gib=5*1"}
    settings = Environment.read(process_environment(layout, Stores.of(layout, {}), said))
    assert settings.broker_room == "storage_gib=5*1"


def test_everything_a_program_needs_is_in_the_plan(layout):
    programs = plan.programs(layout, Stores.of(layout, {}))
    names = [program.name for program in programs]
    assert len(names) == len(set(names)) == 15
    assert all(need in names for program in programs for need in program.needs)


def test_secrets_are_drawn_once_and_for_their_owner_only(tmp_path):
    path = tmp_path / "secrets.json"
    drawn = ensure_secrets(path)
    assert mode(path) == 0o600
    assert set(drawn) == {
        "cluster_secret", "django_secret_key", "access_key_secret", "metrics_token", "admin_password", "api_keys"
    }  # fmt: skip
    assert len(drawn["cluster_secret"]) >= 32
    assert ensure_secrets(path) == drawn
    assert ensure_secrets(tmp_path / "other.json")["cluster_secret"] != drawn["cluster_secret"]


def test_keys_of_the_database_are_drawn_once_for_their_owner_only(layout):
    ensure_encryption_keys(layout)
    drawn = layout.encryption_keys_file.read_text()
    assert len(Keyring.parse(drawn).keys) == 1
    assert mode(layout.encryption_keys_file) == 0o600
    ensure_encryption_keys(layout)
    assert layout.encryption_keys_file.read_text() == drawn
    settings = Environment.read(process_environment(layout, Stores.of(layout, {}), {}))
    assert settings.encryption_keys_file == layout.encryption_keys_file


def test_keys_that_were_lost_are_not_replaced_in_silence(layout):
    ensure_encryption_keys(layout)
    layout.encryption_keys_file.write_text("")
    ensure_encryption_keys(layout)
    assert layout.encryption_keys_file.read_text() == "", "the processes say so"
    layout.encryption_keys_file.unlink()
    with pytest.raises(ValueError, match=r"encryption\.keys is gone.*put a copy back"):
        ensure_encryption_keys(layout)
    layout.encryption_drawn_file.unlink()
    ensure_encryption_keys(layout)
    assert Keyring.parse(layout.encryption_keys_file.read_text())


def test_a_secret_that_is_missing_is_added_beside_the_others(tmp_path):
    path = tmp_path / "secrets.json"
    write_private_json(path, {"cluster_secret": "kept"})
    ensure_secrets(path)
    assert read_json(path)["cluster_secret"] == "kept"
    assert read_json(path)["admin_password"]


def test_the_stack_file_has_its_shape_and_is_private(layout):
    write_private_json(layout.secrets_file, {"api_keys": {"Harbour": "slc_key"}})
    instances = [{"id": "ins-abcdefgh", "bootstrap": "127.0.0.1:24100"}]
    write_private_json(layout.demo_file, {"tenants": [{"name": "Harbour", "instances": instances}]})
    report.write_stack_file(layout, Stores.of(layout, {}), {"broker-1": 11, "master-2": 22, "web": 33})
    assert mode(layout.stack_file) == 0o600
    document = read_json(layout.stack_file)
    assert document["console"] == "http://127.0.0.1:24000"
    assert document["api"] == "http://127.0.0.1:24000/api/v1"
    assert document["zookeeper"] == "127.0.0.1:24001"
    assert document["brokers"][0] == {"id": 1, "internal": "127.0.0.1:24011", "pid": 11}
    assert [broker["id"] for broker in document["brokers"]] == [1, 2, 3]
    assert document["masters"][1] == {"url": "https://127.0.0.1:24032", "pid": 22}
    assert document["clusters"] == [
        {"name": "default", "zookeeper": "127.0.0.1:24001", "brokers": [1, 2, 3], "masters": [1, 2]}
    ]
    assert document["processes"]["web"] == 33
    assert document["tenants"] == [{"name": "Harbour", "api_key": "slc_key", "instances": instances}]


def test_the_admin_password_is_shown_the_first_time_only(layout):
    password = ensure_secrets(layout.secrets_file)["admin_password"]
    assert password in report.welcome(layout, 1.0)
    layout.welcomed_file.touch()
    assert password not in report.welcome(layout, 1.0)


def test_the_welcome_says_that_strangers_must_not_reach_a_stack_that_sends_no_mail(layout, monkeypatch):
    ensure_secrets(layout.secrets_file)
    monkeypatch.delenv("SLUICE_SMTP", raising=False)
    assert "let no strangers reach this" in report.welcome(layout, 1.0)
    monkeypatch.setenv("SLUICE_SMTP", "mail.example.com:587")
    assert "let no strangers reach this" not in report.welcome(layout, 1.0)


def test_the_welcome_names_the_demo_instance_and_a_line_each_to_produce_and_consume(layout):
    ensure_secrets(layout.secrets_file)
    instances = [{"id": "ins-abcdefgh", "bootstrap": "127.0.0.1:24100"}]
    write_private_json(layout.demo_file, {"tenants": [{"name": "Harbour", "instances": instances}]})
    text = report.welcome(layout, 1.0)
    assert "ins-abcdefgh   bootstrap 127.0.0.1:24100" in text
    assert report.produce_line("127.0.0.1:24100") in text
    assert report.consume_line("127.0.0.1:24100") in text


def test_each_process_is_given_what_it_needs_of_the_secrets_and_no_more(layout):
    drawn = ensure_secrets(layout.secrets_file)
    for _ in range(2):  # and again at the next start
        give_secrets(layout, drawn)
        cluster, metering = (layout.secrets_of(name) for name in ("cluster", "metering"))
        assert read_json(cluster) == {"cluster_secret": drawn["cluster_secret"]}
        assert read_json(metering) == {"credentials": {"metering": credential(drawn["cluster_secret"], "metering")}}
        assert {path.stat().st_mode & 0o777 for path in (cluster, metering)} == {0o600}
        assert cluster.parent.stat().st_mode & 0o777 == 0o700


def test_each_process_has_a_certificate_that_brokers_and_masters_start_with(layout):
    give_secrets(layout, ensure_secrets(layout.secrets_file))
    give_certificates(layout)
    before = (layout.tls / "broker-1" / "tls.crt").read_text()
    give_certificates(layout)  # again at the next start: they are good for a while
    assert (layout.tls / "broker-1" / "tls.crt").read_text() == before
    write_configuration(layout, Stores.of(layout, {}))
    for number in (1, 2, 3):
        assert broker_config.load(str(layout.config / f"broker-{number}.toml")).tls_folder
    for number in (1, 2):
        assert master_config.load(layout.config / f"master-{number}.toml").tls is not None
    folders = {path.name for path in layout.tls.iterdir()}
    assert folders >= {"controlplane", "metering", "operator", "monitoring"}
    assert {mode(path) for path in layout.tls.rglob("*.key")} == {0o600}


class TestTwoClusters:
    """`make up CLUSTERS=2`: what the second one has is its own, and what there is of the first is as before."""

    @pytest.fixture
    def two(self, tmp_path):
        return Layout.of(24_000, tmp_path, 2)

    def test_brokers_and_masters_are_numbered_on(self, two):
        assert (two.brokers_of(1), two.brokers_of(2)) == ((1, 2, 3), (4, 5, 6))
        assert (two.masters_of(1), two.masters_of(2)) == ((1, 2), (3, 4))

    @pytest.mark.parametrize("clusters", [0, 4])
    def test_there_are_three_at_most(self, tmp_path, clusters):
        with pytest.raises(ValueError, match="CLUSTERS must be between 1 and 3"):
            Layout.of(24_000, tmp_path, clusters)

    @pytest.mark.parametrize("clusters", [2, 3])
    def test_no_port_is_wanted_twice(self, tmp_path, clusters):
        layout = Layout.of(24_000, tmp_path, clusters)
        wanted = ports.own_ports(layout, Stores.of(layout, {}).own)
        # Console and Redis; of each cluster ZooKeeper, three brokers, and two ports of two masters.
        assert len(wanted) == 2 + clusters * 8
        assert all(24_000 <= port < 24_100 for port in wanted)

    def test_each_has_a_zookeeper_of_its_own(self, two):
        write_configuration(two, Stores.of(two, {}))
        found = {
            name: tomllib.loads((two.config / f"{name}.toml").read_text())
            for name in ("broker-1", "broker-4", "master-3")
        }
        assert found["broker-1"]["broker"]["zookeeper"] == "127.0.0.1:24001"
        assert found["broker-4"]["broker"]["zookeeper"] == "127.0.0.1:24003"
        assert found["broker-4"]["broker"]["internal"] == "127.0.0.1:24014"
        assert found["broker-4"]["broker"]["cluster"] == "second", "so usage records name it"
        assert (found["master-3"]["master"]["zookeeper"], found["master-3"]["master"]["chroot"]) == (
            "127.0.0.1:24003",
            "",
        )

    def test_on_a_users_own_zookeeper_each_has_a_chroot(self, two):
        stores = Stores.of(two, {"ZOOKEEPER_HOSTS": "zk:2181/sluice"})
        assert stores.zookeeper_of(two, 1) == ("zk:2181", "/sluice")
        assert stores.zookeeper_of(two, 2) == ("zk:2181", "/sluice-2")
        with pytest.raises(ValueError, match="must end with a chroot"):
            Stores.of(two, {"ZOOKEEPER_HOSTS": "zk:2181"})

    def test_the_second_is_registered_before_anybody_is_served(self, two):
        programs = {program.name: program for program in plan.programs(two, Stores.of(two, {}))}
        assert {"zookeeper-2", "broker-6", "master-4", "register-second"} <= set(programs)
        assert all(need in programs for program in programs.values() for need in program.needs)
        step = programs["register-second"]
        assert step.answers is None
        assert step.command[2:] == (
            "cluster_register",
            "second",
            "127.0.0.1:24003",
            "--if-absent",
            "--reason",
            "make up",
        )
        assert {"migrate", "zookeeper-2"} <= set(step.needs)
        for name in ("web", "worker", "beat"):
            assert "register-second" in programs[name].needs
        assert programs["broker-4"].needs == ("zookeeper-2",)

    def test_each_has_a_meter(self, two, monkeypatch):
        monkeypatch.setattr(plan.metering, "absence", lambda: "")
        programs = {program.name: program for program in plan.programs(two, Stores.of(two, {}))}
        told = dict(programs["metering-2"].environment)
        assert told["SLUICE_METERED_CLUSTER"] == "second"
        assert told["SLUICE_BROKERS"] == "127.0.0.1:24014,127.0.0.1:24015,127.0.0.1:24016"
        assert "SLUICE_BROKERS" not in dict(programs["metering"].environment)
        environment = process_environment(two, Stores.of(two, {}), {})
        assert environment["SLUICE_BROKERS"] == "127.0.0.1:24011,127.0.0.1:24012,127.0.0.1:24013"

    def test_all_have_certificates_of_one_authority(self, two):
        give_secrets(two, ensure_secrets(two.secrets_file))
        give_certificates(two)
        write_configuration(two, Stores.of(two, {}))
        assert broker_config.load(str(two.config / "broker-6.toml")).tls_folder
        assert master_config.load(two.config / "master-4.toml").tls is not None

    def test_what_runs_is_said_by_cluster(self, two):
        found = report.stack_document(two, Stores.of(two, {}), {})["clusters"]
        assert [(each["name"], each["brokers"]) for each in found] == [("default", [1, 2, 3]), ("second", [4, 5, 6])]
