"""The vendor's own SDK, pointed at this service."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client
from tencentcloud.ckafka.v20190819 import ckafka_client
from tencentcloud.common.credential import Credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile

from controlplane.accounts import services as accounts
from controlplane.kafka.group_door import Member
from controlplane.kafka.topics import names_of
from tests.controlplane.fakes import FakeGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.controlplane.conftest import Person

INSTALLATION_KEY = "k" * 40


@pytest.fixture
def secrets(tmp_path, monkeypatch):
    """Writes the secrets file."""
    path = tmp_path / "secrets.json"
    monkeypatch.setattr(settings, "ENVIRONMENT", dataclasses.replace(settings.ENVIRONMENT, secrets_file=path))
    path.write_text(json.dumps({"access_key_secret": INSTALLATION_KEY}))
    return lambda **members: path.write_text(json.dumps(members))


def access_key(person: Person) -> tuple[str, str]:
    key, secret = accounts.access_key_create(organisation=person.organisation, user=person.user, name="sdk")
    return key.secret_id, secret


class InProcess:
    """Carries the SDK's requests to Django without a network: `ApiRequest.send_request`."""

    def __init__(self) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.sent: list[Any] = []
        self.path = "/"

    def send_request(self, request: Any) -> Any:
        self.sent.append(request)
        return self.send(request)

    def send(self, request: Any) -> Any:
        answer = self.client.generic(
            request.method, self.path, request.data, content_type=request.header["Content-Type"], headers=request.header
        )
        answer.headers.pop("Vary", None)
        return answer


def sdk_of(pair: tuple[str, str], transport: Any = None, *, endpoint: str = "localhost", **profile: Any) -> Any:
    http = HttpProfile(protocol="http", endpoint=endpoint, **profile)
    made = ckafka_client.CkafkaClient(Credential(*pair), "", ClientProfile(httpProfile=http, language="en-US"))
    if transport is not None:
        made.request = transport
    return made


@pytest.fixture
def wire() -> InProcess:
    return InProcess()


@pytest.fixture
def sdk(alice, secrets, wire) -> Any:
    """Alice's."""
    return sdk_of(access_key(alice), wire)


@pytest.fixture
def ask(sdk) -> Callable[..., dict[str, Any]]:
    """An action by name, with parameters as they are: the answer's Response."""
    return lambda action, **parameters: sdk.call_json(action, parameters)["Response"]


def group_of(admin: Any, instance: Any, *, members: bool = False) -> FakeGroup:
    """ "billing" has read 3 of 5 records of partition 0 of "orders", and nothing of partition 1."""
    names = names_of(instance.id)
    topic = names.topic_in("orders")
    admin.groups.logs[topic, 0] = (0, [1000, 2000, 3000, 4000, 5000])
    reader = Member("m-1", "app", "/127.0.0.1", (("orders", 0), ("orders", 1)))
    group = FakeGroup({(topic, 0): 3}, [reader] if members else [])
    admin.groups.found[names.group_in("billing")] = group
    return group


def refused(call: Callable[[], object]) -> tuple[str, str]:
    """Code and sentence."""
    with pytest.raises(TencentCloudSDKException) as caught:
        call()
    return caught.value.get_code(), caught.value.get_message()
