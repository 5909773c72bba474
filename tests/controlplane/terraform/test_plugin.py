"""The process: how Terraform and it find each other, what it is configured by, and its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.terraform import configuration
from controlplane.terraform.diagnostics import ProviderError
from controlplane.terraform.installing import install
from controlplane.terraform.plugin import COOKIE, COOKIE_VALUE
from controlplane.terraform.rest import Waits
from controlplane.terraform.waiting import span_s
from tests.controlplane.terraform.core import ROOT, Refused, Terraform
from tests.support.waiting import wait_for


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "controlplane.terraform", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_person_who_starts_it_is_told_what_it_is():
    ran = run()
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "plugin of Terraform" in ran.stderr


def test_nobody_else_reaches_the_socket():
    with Terraform({}) as started:
        folder = Path(started.socket).parent
        assert folder.stat().st_mode & 0o077 == 0
    assert started.status == 0
    assert not folder.exists()


def test_it_does_not_outlive_whoever_started_it():
    code = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-m', 'controlplane.terraform'], "
        "stdout=subprocess.PIPE, text=True); print(child.pid, child.stdout.readline(), flush=True)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, COOKIE: COOKIE_VALUE},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=True,
    )
    pid, handshake = ran.stdout.split()
    assert handshake.startswith("1|6|unix|")
    wait_for(lambda: not is_running(int(pid)), 30, "the plugin to end by itself")


def is_running(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("environment", "config", "attribute"),
    [
        ({}, {}, "endpoint"),
        ({}, {"endpoint": "https://sluice.example.com"}, "api_key"),
        ({}, {"endpoint": "sluice.example.com", "api_key": "slc_x"}, "endpoint"),
        ({}, {"endpoint": "https://me:mine@sluice.example.com", "api_key": "slc_x"}, "endpoint"),
        ({"SLUICE_URL": "https://sluice.example.com"}, {"api_key": "two words"}, "api_key"),
    ],
)
def test_a_configuration_that_says_too_little_is_refused_at_the_attribute(environment, config, attribute):
    with Terraform(environment) as started, pytest.raises(Refused) as refused:
        started.configure(**config)
    assert refused.value.attributes == [attribute]
    assert "two words" not in str(refused.value.found)


def test_a_key_that_is_none_of_the_services_is_refused_with_what_to_set(between):
    with Terraform({"SLUICE_URL": between.url, "SLUICE_API_KEY": "slc_wrong"}) as started:
        started.configure()
        with pytest.raises(Refused, match="SLUICE_API_KEY"):
            started.lookup("sluice_zones")


def test_what_is_not_known_yet_is_not_asked():
    with Terraform({}) as started:
        from tests.controlplane.terraform.core import UNKNOWN

        started.configure(endpoint=UNKNOWN, api_key="slc_x")
        with pytest.raises(Refused, match="not known yet"):
            started.lookup("sluice_zones")


def test_a_key_that_goes_unencrypted_is_warned_about():
    said = configuration.warnings({"endpoint": "http://sluice.example.com"})
    assert [each.path for each in said] == [("endpoint",)]
    assert not configuration.warnings({"endpoint": "http://127.0.0.1:8000"})


def test_the_configuration_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("SLUICE_URL", "https://elsewhere.example.com")
    monkeypatch.setenv("SLUICE_API_KEY", "slc_x")
    assert (
        configuration.client_of({"endpoint": "https://here.example.com/api/v1/"}, Waits()).url
        == "https://here.example.com"
    )
    monkeypatch.delenv("SLUICE_API_KEY")
    with pytest.raises(ProviderError):
        configuration.client_of({}, Waits())


@pytest.mark.parametrize(
    ("text", "seconds"), [("45m", 2700), ("1h30m", 5400), ("9s", 9), ("", None), ("soon", None), ("0s", None)]
)
def test_spans_of_time(text, seconds):
    assert span_s(text) == seconds


def test_the_executable_starts_it_from_any_folder(tmp_path):
    path = install(tmp_path / "a mirror")
    assert path.name == "terraform-provider-sluice_v0.1.0"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        [path],
        cwd=tmp_path,
        env={**environment, COOKIE: COOKIE_VALUE},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout.readline().startswith("1|6|unix|")
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def test_the_messages_are_those_of_the_files_beside_them(tmp_path):
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from grpc_tools import protoc

    from controlplane.terraform.protocol import goplugin_pb2, tfplugin6_pb2

    for name, module in (("tfplugin6", tfplugin6_pb2), ("goplugin", goplugin_pb2)):
        out = tmp_path / name
        source = f"controlplane/terraform/protocol/{name}.proto"
        assert protoc.main(["protoc", f"-I{ROOT}", f"--descriptor_set_out={out}", str(ROOT / source)]) == 0
        (made,) = FileDescriptorSet.FromString(out.read_bytes()).file
        present = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(present)
        made.ClearField("source_code_info")
        for file in (made, present):
            _without_json_names(file.message_type)
        assert made == present


def _without_json_names(messages):
    for message in messages:
        for field in message.field:
            field.ClearField("json_name")
        _without_json_names(message.nested_type)
