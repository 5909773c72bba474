"""A double of Terraform: starts the provider as Terraform does, speaks its protocol, and is as strict as Terraform's core.

It merges what is written with what is (`proposed`), and refuses what core refuses: a plan that is not what is written, and
an answer to an apply that is not what was planned.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import msgpack
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from google.protobuf import message_factory

from controlplane.terraform.plugin import COOKIE, COOKIE_VALUE
from controlplane.terraform.protocol.messages import go, tf

ROOT = Path(__file__).parents[3]
UNKNOWN = msgpack.ExtType(0, b"\0")
OWN = (*(f"{kind}_PROXY" for kind in ("HTTP", "HTTPS", "ALL")), "SLUICE_URL", "SLUICE_API_KEY")


class Refused(Exception):  # noqa: N818
    """Errors among diagnostics. `found`: (attribute, summary, detail) of each; `state`: what is there nevertheless."""

    def __init__(self, diagnostics, state=None):
        self.found = [(path_of(each), each.summary, each.detail) for each in diagnostics if each.severity == 1]
        self.state = state
        super().__init__(str(self.found))

    @property
    def attributes(self):
        return [attribute for attribute, _, _ in self.found]


def path_of(diagnostic):
    steps = [step.attribute_name or step.element_key_string for step in diagnostic.attribute.steps]
    return ".".join(steps)


@dataclass
class Planned:
    """A plan, as it would be kept in a file."""

    name: str
    prior: dict | None
    config: dict | None
    state: dict | None
    private: bytes
    replaces: list[str]

    @property
    def action(self):
        if self.state is None:
            return "delete"
        if self.prior is None:
            return "create"
        return "replace" if self.replaces else "nothing" if self.state == self.prior else "update"


@dataclass
class Terraform:
    """One run. `work` is done while a call is waited for: the test's own thread is the service's worker."""

    environment: dict
    work: object = field(default=lambda: None)
    write_only: bool = True

    def __enter__(self):
        environment = {name: value for name, value in os.environ.items() if name.upper() not in OWN}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "controlplane.terraform"],
            cwd=ROOT,
            env={**environment, COOKIE: COOKIE_VALUE, "PLUGIN_CLIENT_CERT": "any", **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self._reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self._reader.start()
        line = self.process.stdout.readline()
        assert line, self.log
        _, version, network, self.socket, protocol, certificate = line.strip().split("|")
        assert (version, network, protocol) == ("6", "unix", "grpc")
        der = base64.b64decode(certificate + "=" * (-len(certificate) % 4))
        pem = x509.load_der_x509_certificate(der).public_bytes(serialization.Encoding.PEM)
        self.channel = grpc.secure_channel(
            f"unix://{self.socket}",
            grpc.ssl_channel_credentials(pem),
            options=[("grpc.ssl_target_name_override", "localhost")],
        )
        self.schema = self.call("GetProviderSchema")
        return self

    def __exit__(self, *_error):
        try:
            shutdown = self.channel.unary_unary(
                "/plugin.GRPCController/Shutdown", go.Empty.SerializeToString, go.Empty.FromString
            )
            shutdown(go.Empty(), timeout=10)
        finally:
            self.channel.close()
            try:
                self.status = self.process.wait(20)
            finally:
                if self.process.poll() is None:
                    self.process.kill()
                    self.process.wait(10)
                self._reader.join(10)
                self.process.stdout.close()
                self.process.stderr.close()

    # Calls

    def begun(self, name, **members):
        """A call that is under way."""
        method = tf.DESCRIPTOR.services_by_name["Provider"].methods_by_name[name]
        request, answer = map(message_factory.GetMessageClass, (method.input_type, method.output_type))
        call = self.channel.unary_unary(f"/tfplugin6.Provider/{name}", request.SerializeToString, answer.FromString)
        return call.future(request(**members), timeout=60)

    def ended(self, *futures):
        """Their answers; the service works meanwhile."""
        while not all(future.done() for future in futures):
            self.work()
            time.sleep(0.01)
        return [future.result() for future in futures]

    def call(self, name, **members):
        (answer,) = self.ended(self.begun(name, **members))
        refuse(answer.diagnostics)
        return answer

    # As Terraform's core

    def attributes(self, name):
        return {each.name: each for each in self.schema.resource_schemas[name].block.attributes}

    def configure(self, **config):
        block = self.schema.provider.block.attributes
        return self.call("ConfigureProvider", config=packed({each.name: config.get(each.name) for each in block}))

    def validate(self, name, /, **config):
        return self.call(
            "ValidateResourceConfig",
            type_name=name,
            config=packed(self._whole(name, config)),
            client_capabilities=tf.ClientCapabilities(write_only_attributes_allowed=self.write_only),
        )

    def plan(self, name, prior=None, /, **config):
        self.validate(name, **config)
        written = self._whole(name, config)
        proposed = self._proposed(self.attributes(name).values(), prior, written)
        answer = self.call(
            "PlanResourceChange",
            type_name=name,
            prior_state=packed(prior),
            proposed_new_state=packed(proposed),
            config=packed(written),
        )
        planned = unpacked(answer.planned_state)
        self._check_plan(name, prior, written, planned)
        replaces = [path.steps[0].attribute_name for path in answer.requires_replace]
        return Planned(name, prior, written, planned, answer.planned_private, replaces)

    def plan_destroy(self, name, prior):
        return Planned(name, prior, None, None, b"", [])

    def apply(self, *plans):
        """The new state of each, with all of them under way at once. Raises Refused."""
        futures = [
            self.begun(
                "ApplyResourceChange",
                type_name=plan.name,
                prior_state=packed(plan.prior),
                planned_state=packed(plan.state),
                config=packed(plan.config),
                planned_private=plan.private,
            )
            for plan in plans
        ]
        found = []
        for plan, answer in zip(plans, self.ended(*futures), strict=True):
            state = unpacked(answer.new_state)
            refuse(answer.diagnostics, state)
            check_as_planned(plan.state, state)
            found.append(state)
        return found[0] if len(plans) == 1 else found

    def create(self, name, /, **config):
        return self.apply(self.plan(name, **config))

    def change(self, name, prior, /, **config):
        plan = self.plan(name, prior, **config)
        assert plan.action == "update", (plan.action, plan.replaces)
        return self.apply(plan)

    def destroy(self, name, prior):
        return self.apply(self.plan_destroy(name, prior))

    def refresh(self, name, state):
        answer = self.call("ReadResource", type_name=name, current_state=packed(state))
        return unpacked(answer.new_state)

    def imported(self, name, text):
        (found,) = self.call("ImportResourceState", type_name=name, id=text).imported_resources
        return self.refresh(name, unpacked(found.state))

    def lookup(self, name, /, **config):
        block = self.schema.data_source_schemas[name].block.attributes
        whole = {each.name: config.get(each.name) for each in block}
        return unpacked(self.call("ReadDataSource", type_name=name, config=packed(whole)).state)

    def _whole(self, name, config):
        attributes = self.attributes(name)
        assert set(config) <= set(attributes), set(config) - set(attributes)
        return self._filled(attributes.values(), config)

    def _filled(self, attributes, config):
        found = {}
        for each in attributes:
            value = config.get(each.name)
            nested = each.nested_type.attributes
            found[each.name] = self._filled(nested, value) if nested and isinstance(value, dict) else value
        return found

    def _proposed(self, attributes, prior, config):
        found = {}
        for each in attributes:
            value, before = config[each.name], None if prior is None else prior[each.name]
            if value is None and each.computed:
                value = before
            elif each.nested_type.attributes and isinstance(value, dict):
                value = self._proposed(each.nested_type.attributes, before, value)
            found[each.name] = value
        return found

    def _check_plan(self, name, prior, config, planned):
        for each in self.attributes(name).values():
            value, written = planned[each.name], config[each.name]
            if each.write_only:
                assert value is None, each.name
            elif each.nested_type.attributes or (written is None and each.computed):
                continue
            elif prior is None or value != prior[each.name]:
                assert same(value, written), (each.name, value, written)


def same(one, other):
    return sorted(map(str, one)) == sorted(map(str, other)) if isinstance(one, list) else one == other


def check_as_planned(planned, state, path=""):
    """Core: "Provider produced inconsistent result after apply"."""
    if planned == UNKNOWN:
        return
    if isinstance(planned, dict) and isinstance(state, dict):
        for name, value in planned.items():
            check_as_planned(value, state[name], f"{path}.{name}")
        return
    assert same(planned, state), f"{path}: planned {planned!r}, is {state!r}"


def refuse(diagnostics, state=None):
    if any(each.severity == 1 for each in diagnostics):
        raise Refused(diagnostics, state)


def packed(value):
    return tf.DynamicValue(msgpack=msgpack.packb(value))


def unpacked(value):
    found = msgpack.unpackb(value.msgpack)
    assert found is None or isinstance(found, dict)
    return found
