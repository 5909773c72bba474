"""Every call of the plugin protocol, as a call of a resource.

Calls come from several threads at once; nothing here is shared but the connection, which is made once. What a resource raises
becomes diagnostics at its attributes, together with what is there nevertheless. What nobody foresaw becomes one as well: a gRPC
error would end the whole run, and would not say where.
"""

from __future__ import annotations

import functools
import traceback
from typing import TYPE_CHECKING, Any

from controlplane.terraform import configuration
from controlplane.terraform.diagnostics import Diagnostic, Missing, ProviderError, Refused, path_message
from controlplane.terraform.planning import kept, planned, settled
from controlplane.terraform.protocol.messages import tf
from controlplane.terraform.resources.base import Doing
from controlplane.terraform.resources.catalogue import LOOKUPS, RESOURCES
from controlplane.terraform.rest import Waits
from controlplane.terraform.schema import schema
from controlplane.terraform.waiting import log
from controlplane.terraform.wire import from_json, from_msgpack, to_msgpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from controlplane.terraform.resources.base import Resource
    from controlplane.terraform.rest import Client
    from controlplane.terraform.schema import Attribute
    from controlplane.terraform.values import State

CAPABILITIES = {"get_provider_schema_optional": True}
ISOLATED = "instance_isolated"
"""What is in an instance that was deleted goes with it, and cannot be deleted by itself any more."""


def _told(call: Callable[[Provider, Any, Any], None]) -> Callable[[Provider, Any, Any], None]:
    """Whatever is raised, as diagnostics of the answer."""

    @functools.wraps(call)
    def told(self: Provider, request: Any, response: Any) -> None:
        try:
            call(self, request, response)
        except ProviderError as error:
            _add(response, error.diagnostics)
        except Exception as error:  # noqa: BLE001  # the log has it whole
            log("error", traceback.format_exc())
            _add(response, [Diagnostic("A bug of the provider", f"{type(error).__name__}: {error}")])

    return told


class Provider:
    """The service `tfplugin6.Provider`: a method for each call, of a request and the answer that it fills."""

    def __init__(self, waits: Waits) -> None:
        self.waits = waits
        self._client: Client | None = None

    @_told
    def GetMetadata(self, request: Any, response: Any) -> None:  # noqa: N802  # the protocol's names
        """Names alone."""
        del request
        response.server_capabilities.CopyFrom(tf.ServerCapabilities(**CAPABILITIES))
        for name in RESOURCES:
            response.resources.add(type_name=name)
        for name in LOOKUPS:
            response.data_sources.add(type_name=name)

    @_told
    def GetProviderSchema(self, request: Any, response: Any) -> None:  # noqa: N802
        """All attributes."""
        del request
        response.server_capabilities.CopyFrom(tf.ServerCapabilities(**CAPABILITIES))
        response.provider.CopyFrom(schema(configuration.ATTRIBUTES, "Sluice: Kafka as a managed service."))
        for name, resource in RESOURCES.items():
            response.resource_schemas[name].CopyFrom(schema(resource.attributes, resource.about))
        for name, lookup in LOOKUPS.items():
            response.data_source_schemas[name].CopyFrom(schema(lookup.attributes, lookup.about))

    @_told
    def ValidateProviderConfig(self, request: Any, response: Any) -> None:  # noqa: N802
        """What can be said without asking anybody."""
        _add(response, configuration.warnings(_read(request.config, configuration.ATTRIBUTES)))

    @_told
    def ValidateResourceConfig(self, request: Any, response: Any) -> None:  # noqa: N802
        """The same of a resource."""
        resource = RESOURCES[request.type_name]
        config = _read(request.config, resource.attributes)
        _add(response, resource.check(config))
        secret = [each.name for each in resource.attributes if each.write_only and config[each.name] is not None]
        if secret and not request.client_capabilities.write_only_attributes_allowed:
            detail = "It needs Terraform 1.11, or OpenTofu 1.11: earlier ones would keep it in the state."
            _add(response, [Diagnostic(f"{name} is write-only", detail, (name,)) for name in secret])

    @_told
    def ValidateDataResourceConfig(self, request: Any, response: Any) -> None:  # noqa: N802
        """Reading says what is wrong."""

    @_told
    def UpgradeResourceState(self, request: Any, response: Any) -> None:  # noqa: N802
        """The state of a file, of this version of the schema: there has been no other."""
        attributes = RESOURCES[request.type_name].attributes
        _write(response.upgraded_state, from_json(request.raw_state.json, attributes), attributes)

    @_told
    def ConfigureProvider(self, request: Any, response: Any) -> None:  # noqa: N802
        """Where to, and who."""
        del response
        self._client = configuration.client_of(_read(request.config, configuration.ATTRIBUTES), self.waits)

    @_told
    def ReadResource(self, request: Any, response: Any) -> None:  # noqa: N802
        """As it is now; nothing, with a warning, where it was deleted elsewhere."""
        resource = RESOURCES[request.type_name]
        state = _read(request.current_state, resource.attributes)
        response.private = request.private
        try:
            found = resource.read(self._connected(), state)
        except Missing as error:
            said = error.diagnostics[0]
            what = f"{resource.name} {state.get('id') or ''} is there no more".replace("  ", " ")
            _add(response, [Diagnostic(what, said.detail, is_warning=True)])
            _write(response.new_state, None, resource.attributes)
            return
        except Refused as error:
            raise _at(resource, error) from error
        _write(response.new_state, settled(resource.attributes, found, state), resource.attributes)

    @_told
    def PlanResourceChange(self, request: Any, response: Any) -> None:  # noqa: N802
        """What it is going to be, and whether another one takes its place."""
        resource = RESOURCES[request.type_name]
        prior = from_msgpack(request.prior_state.msgpack, resource.attributes)
        proposed = from_msgpack(request.proposed_new_state.msgpack, resource.attributes)
        if proposed is None:
            _write(response.planned_state, None, resource.attributes)
            return
        plan = planned(resource.attributes, prior, proposed)
        _write(response.planned_state, plan.planned, resource.attributes)
        beside = () if prior is None else resource.replaced(prior, plan.planned)
        for path in (*plan.replaced, *((name,) for name in beside)):
            response.requires_replace.append(path_message(path))

    @_told
    def ApplyResourceChange(self, request: Any, response: Any) -> None:  # noqa: N802
        """Make, change or delete it. What is there is told whether or not all has gone well."""
        resource = RESOURCES[request.type_name]
        prior = from_msgpack(request.prior_state.msgpack, resource.attributes)
        plan = from_msgpack(request.planned_state.msgpack, resource.attributes)
        response.new_state.CopyFrom(request.prior_state)
        config = from_msgpack(request.config.msgpack, resource.attributes) or {}
        doing = Doing(self._connected(), config)
        try:
            state = _applied(resource, doing, prior, plan)
        except ProviderError as error:
            there = _there(resource, doing, prior, plan, error)
            _write(response.new_state, there, resource.attributes)
            raise (_at(resource, error) if isinstance(error, Refused) else error) from error
        _write(response.new_state, state, resource.attributes)

    @_told
    def ImportResourceState(self, request: Any, response: Any) -> None:  # noqa: N802
        """What reading it needs: Terraform reads it next."""
        resource = RESOURCES[request.type_name]
        state = resource.of_id(request.id)
        found = response.imported_resources.add(type_name=request.type_name)
        _write(found.state, state, resource.attributes)

    @_told
    def ReadDataSource(self, request: Any, response: Any) -> None:  # noqa: N802
        """Look something up."""
        lookup = LOOKUPS[request.type_name]
        config = _read(request.config, lookup.attributes)
        try:
            found = lookup.read(self._connected(), config)
        except Refused as error:
            raise ProviderError(*error.at(lookup.attributes, {"not_found": "id"})) from error
        _write(response.state, found, lookup.attributes)

    def StopProvider(self, request: Any, response: Any) -> None:  # noqa: N802
        """Nobody waits any more, as soon as can be; what runs goes on at the service."""
        del request, response
        self.waits.stopped.set()

    def _connected(self) -> Client:
        if self._client is None:
            detail = "endpoint or api_key depend on what has not been made yet: apply that first (-target)."
            raise ProviderError(Diagnostic("The service is not known yet", detail))
        return self._client


def _applied(resource: Resource, doing: Doing, prior: State | None, plan: State | None) -> State | None:
    if plan is None:
        try:
            resource.delete(doing, prior or {})
        except Refused as error:
            if not isinstance(error, Missing) and (error.code != ISOLATED or resource.name == "sluice_instance"):
                raise
            log("info", f"{resource.name} {(prior or {}).get('id')} is gone already: {error}")
        return None
    state = resource.create(doing, plan) if prior is None else resource.update(doing, prior, plan)
    return kept(resource.attributes, state, plan)


def _there(
    resource: Resource, doing: Doing, prior: State | None, plan: State | None, error: ProviderError
) -> State | None:
    """What is there behind a change that has not gone well: half of it may have been made."""
    if prior is None:
        return error.state
    if plan is None:
        return prior
    try:
        return settled(resource.attributes, resource.read(doing.client, prior), prior)
    except ProviderError:
        return prior


def _at(resource: Resource, error: Refused) -> ProviderError:
    return ProviderError(*error.at(resource.attributes, resource.codes))


def _read(value: Any, attributes: tuple[Attribute, ...]) -> State:
    return from_msgpack(value.msgpack, attributes) or {each.name: None for each in attributes}


def _write(value: Any, state: State | None, attributes: Sequence[Attribute]) -> None:
    value.msgpack = to_msgpack(state, tuple(attributes))


def _add(response: Any, found: Iterable[Diagnostic]) -> None:
    response.diagnostics.extend(each.message() for each in found)
