"""The environment: what each variable becomes, and one clear sentence for each that cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from controlplane.env import REST_LIMITS, ROOT, Environment, EnvironmentProblem


def database(url: str) -> dict:
    return Environment.read({"DATABASE_URL": url}).database()


def test_sqlite_is_the_default_and_lies_in_the_stack_folder(tmp_path):
    environment = Environment.read({"SLUICE_STACK_DIR": str(tmp_path / "with space%41")})
    assert environment.database()["NAME"] == str(tmp_path / "with space%41" / "db.sqlite3")


def test_sqlite_waits_for_the_lock_from_the_start_of_a_transaction():
    options = database("sqlite:////tmp/x.sqlite3")["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in options["init_command"]
    assert options["timeout"] >= 5


def test_postgresql_with_everything_said():
    entry = database("postgresql://sluice:p%40ss@db.example.com:5433/plane?sslmode=require")
    assert (entry["ENGINE"], entry["NAME"], entry["USER"]) == ("django.db.backends.postgresql", "plane", "sluice")
    assert (entry["PASSWORD"], entry["HOST"], entry["PORT"]) == ("p@ss", "db.example.com", "5433")
    assert entry["OPTIONS"] == {"sslmode": "require"}


@pytest.mark.parametrize(
    "variables",
    [{"SLUICE_PORT_RANGE": "5-4"}, {"SLUICE_PORT_RANGE": "1-40000"}, {"SLUICE_PORT_RANGE": "x"},
     {"SLUICE_WORKERS": "0"}, {"SLUICE_LEASE_S": "soon"}, {"SLUICE_DELETION_GRACE_S": "-1"},
     {"SLUICE_DELETION_GRACE_S": "a week"}, {"SLUICE_REST_LIMITS": "key=1"}, {"SLUICE_REST_LIMITS": "key_reads=-1"},
     {"SLUICE_REST_LIMITS": "key_reads"}, {"SLUICE_REST_LIMITS": "key_reads=99999999999"},
     {"SLUICE_CONSOLE_URL": "kafka.example.com"},
     {"METRICS_URL": "kafka.example.com"}, {"METRICS_URL": "ftp://kafka.example.com"}, {"SLUICE_SCRAPE_URL": "kafka.example.com"},
     {"SLUICE_CLIENT_CERTIFICATES_FROM": "10.3.0.7"}, {"SLUICE_CLIENT_CERTIFICATES_FROM": "proxy", "SLUICE_TLS": "1"},
     {"SLUICE_CLIENT_CERTIFICATES_FROM": "0.0.0.0/0", "SLUICE_TLS": "1"}, {"SLUICE_CLIENT_CERTIFICATE_HEADER": "Client_Cert"},
     {"METRICS_WRITE_URL": "http://mimir:9009/push"}, {"METRICS_USER": "sluice"},
     {"METRICS_URL": "https://user@kafka.example.com"}, {"SLUICE_CONSOLE_URL": "javascript://x"}, {"SLUICE_CONSOLE_URL": "https://kafka.example.com/?q=1"}],
)  # fmt: skip
def test_what_cannot_be_used_is_named(variables):
    with pytest.raises(EnvironmentProblem, match=next(iter(variables))):
        Environment.read(variables)


def test_links_begin_with_the_address_of_the_console_without_its_last_slash():
    assert (
        Environment.read({"SLUICE_CONSOLE_URL": " https://kafka.example.com/ "}).console_url
        == "https://kafka.example.com"
    )
    assert Environment.read({}).console_url == ""
    assert (
        Environment.read({"SLUICE_SCRAPE_URL": "https://metrics.example.com/"}).scrape_url
        == "https://metrics.example.com"
    )
    assert Environment.read({}).scrape_url == ""


def test_the_store_of_the_history_has_an_address_and_maybe_another_for_writing():
    found = Environment.read(
        {"METRICS_URL": "http://mimir:9009/prometheus/", "METRICS_WRITE_URL": "http://mimir:9009/push"}
    )
    assert (found.metrics_url, found.metrics_write_url) == ("http://mimir:9009/prometheus", "http://mimir:9009/push")
    assert Environment.read({}).metrics_url == ""


@pytest.mark.parametrize("name", ["METRICS_URL", "METRICS_WRITE_URL", "SLUICE_CONSOLE_URL"])
@pytest.mark.parametrize("url", ["https://:s3cret@mimir:9009", "https://a:s3cret@mimir", "https://s3cret@mimir/x"])
def test_an_address_with_a_password_is_refused_and_not_repeated(name, url):
    with pytest.raises(EnvironmentProblem, match=name) as refused:
        Environment.read({"METRICS_URL": "http://mimir:9009", name: url})
    assert "s3cret" not in str(refused.value)


SERVICE = "https://kafka.example.com"


@pytest.mark.parametrize(
    "variables",
    [
        {"SLUICE_CONSOLE_URL": SERVICE},
        {"SLUICE_SCRAPE_URL": f"{SERVICE}/"},
        {"SLUICE_ALLOWED_HOSTS": "localhost, kafka.example.com"},
    ],
)
def test_an_address_to_scrape_from_before_is_refused_with_the_name_of_its_setting_now(variables):
    with pytest.raises(EnvironmentProblem, match=r"METRICS_URL.*SLUICE_SCRAPE_URL now"):
        Environment.read({"METRICS_URL": SERVICE, **variables})


def test_a_store_may_stand_behind_the_same_name():
    for url in (f"{SERVICE}:9090", f"{SERVICE}/prometheus"):
        assert Environment.read({"METRICS_URL": url, "SLUICE_ALLOWED_HOSTS": "kafka.example.com"}).metrics_url == url


def test_whose_word_is_taken_for_client_certificates_is_nobodys_until_it_is_said():
    assert Environment.read({}).client_certificates_from == ()
    found = Environment.read({"SLUICE_CLIENT_CERTIFICATES_FROM": "10.3.0.0/24, fd00::7", "SLUICE_TLS": "1"})
    assert [str(each) for each in found.client_certificates_from] == ["10.3.0.0/24", "fd00::7/128"]
    assert found.client_certificate_header == "Client-Cert"


def test_limits_of_rest_that_are_not_said_are_the_defaults():
    found = Environment.read({"SLUICE_REST_LIMITS": " key_reads = 10, organisation_changes=0 ,"}).rest_limits
    assert found == {**REST_LIMITS, "key_reads": 10, "organisation_changes": 0}


def test_another_database_is_refused():
    with pytest.raises(EnvironmentProblem, match="DATABASE_URL"):
        database("mysql://x/y")


def test_secrets_are_read_when_they_are_asked_for(tmp_path):
    environment = Environment.read({"SLUICE_SECRETS_FILE": str(tmp_path / "secrets.json")})
    assert environment.secret("some_secret") is None
    (tmp_path / "secrets.json").write_text(json.dumps({"some_secret": "s"}))
    assert environment.secret("some_secret") == "s"
    assert environment.secret("other") is None
    (tmp_path / "secrets.json").write_text("{")
    with pytest.raises(EnvironmentProblem, match="not JSON"):
        environment.secret("some_secret")


@pytest.mark.parametrize(
    ("variables", "secure"), [({}, False), ({"SLUICE_TLS": "1"}, True), ({"SLUICE_TLS": "0"}, False)]
)
def test_behind_tls_cookies_are_secure_and_browsers_stay_with_https(variables, secure, tmp_path):
    """In a process of its own: settings are read once."""
    program = (
        "import django; django.setup(); from django.test import Client; "
        "answer = Client().get('/sign-in', headers={'X-Forwarded-Proto': 'https', 'Host': 'localhost'}); "
        "print(answer.cookies['csrftoken']['secure'] is True, answer.headers.get('Strict-Transport-Security'));"
        "from django.conf import settings; print(settings.SESSION_COOKIE_SECURE)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "SLUICE_TLS"}
    environment |= {"DJANGO_SETTINGS_MODULE": "controlplane.settings", "SLUICE_STACK_DIR": str(tmp_path), **variables}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.split() == (["True", "max-age=31536000", "True"] if secure else ["False", "None", "False"])


def manage(*words, **variables):
    command = [sys.executable, "manage.py", *words]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "variables", [{"SLUICE_LAKE_BUCKETS": "aws", "SLUICE_LAKE_FOLDERS": ""}, {"SLUICE_WORKERS": "0"}]
)
def test_what_cannot_be_used_ends_a_command_in_one_sentence(variables, tmp_path):
    ended = manage("check", SLUICE_STACK_DIR=str(tmp_path), **variables)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"sluice: {next(iter(variables))} ")
    assert len(ended.stderr.splitlines()) == 1


def test_a_stack_needs_no_folder_for_loads_since_it_gives_one_to_its_processes(tmp_path):
    """`--help` is answered once settings and apps are there."""
    folder = str(tmp_path)
    ended = manage(
        "up", "--help", SLUICE_STACK_DIR=folder, SLUICE_LAKE_BUCKETS="http://127.0.0.1:9", SLUICE_LAKE_FOLDERS=""
    )
    assert ended.returncode == 0, ended.stderr
    for variables in (
        {"SLUICE_LAKE_BUCKETS": "ftp"},
        {"SLUICE_LAKE_BUCKETS": "aws", "SLUICE_LAKE_FOLDERS": "hdfs://a/b"},
    ):
        ended = manage("up", "--help", **{"SLUICE_STACK_DIR": folder, "SLUICE_LAKE_FOLDERS": "", **variables})
        assert (ended.returncode, ended.stderr[:27]) == (1, "sluice: SLUICE_LAKE_BUCKETS")
