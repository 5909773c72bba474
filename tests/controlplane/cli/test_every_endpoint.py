"""Every endpoint of the API has a command, every member of a request an option, and every choice the schema's words.

The endpoints come from docs/openapi.yaml, so a new one is in these tests by being published.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import yaml

from controlplane.cli import commands, options
from controlplane.cli import operations as ops
from controlplane.cli.commands import (
    access,
    account,
    acl,
    alarm,
    bill,
    cluster,
    fleet,
    group,
    instance,
    load,
    member,
    metering,
    operation,
    policy,
    prepaid,
    rebalance,
    receiver,
    route,
    rule,
    transaction,
)
from controlplane.cli.operations import Call
from controlplane.core.models import OperationState
from controlplane.env import ROOT
from controlplane.health.rules import HEALTH_STATES
from controlplane.instances.models import InstanceState
from controlplane.kafka.transactions import STATES

METHODS = {"get", "post", "put", "patch", "delete"}
OTHERWISE = {
    "instances_metrics_get": "one metric of what `sluice instance history` shows",
    "instances_users_delete": "the same as DELETE of the user's own address, which the command takes",
}
"""Endpoints without a command, and why."""
UNTYPED = {
    "INSTANCE_CREATE": {
        "config": "sluice instance config sets it",
        "maintenance_window": "sluice instance window sets it",
    },
    "GROUP_OFFSETS": {},
}
"""Members of requests without an option, and why."""
PAGING = {"cursor"}


@cache
def document():
    """The schema as it is published; read once, which takes seconds."""
    return yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())


def published():
    """Operations: id, call, the names of members and query parameters."""
    schema = document()
    components = schema["components"]["schemas"]
    for path, item in schema["paths"].items():
        for method in METHODS & set(item):
            operation = item[method]
            call = Call(method.upper(), path.removeprefix(ops.PREFIX))
            yield operation["operationId"], call, members(operation, components), query(operation)


def members(operation, components):
    content = operation.get("requestBody", {}).get("content", {})
    names = {body["schema"]["$ref"].rpartition("/")[2] for body in content.values()}
    return {member for name in names for member in components[name].get("properties", {})}


def query(operation):
    return {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"} - PAGING


PUBLISHED = {name: rest for name, *rest in published()}
TABLE = {name: call for name, call in vars(ops).items() if isinstance(call, Call)}


def functions():
    """Each function of the commands: the words in it, and the calls that it names."""
    for found in pkgutil.iter_modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{found.name}")
        tree = ast.parse(Path(module.__file__).read_text())
        helpers = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in helpers.values():
            named = {name for name in names_in(node) if name in helpers}
            nodes = [node, *(helpers[name] for name in named)]
            yield found.name, node.name, calls_in(node), set().union(*(words_in(each) for each in nodes))


def names_in(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def calls_in(node):
    found = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name))
    return {each.attr for each in found if each.value.id == "ops"}


def words_in(node):
    """Whatever can be the name of a member: keywords of calls, texts."""
    keywords = {each.arg for each in ast.walk(node) if isinstance(each, ast.keyword)}
    texts = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return keywords | texts | ({"dry_run"} if "rehearses" in keywords else set())


FUNCTIONS = list(functions())


@pytest.mark.parametrize("name", sorted(set(PUBLISHED) - set(OTHERWISE)))
def test_a_published_operation_is_in_the_table(name):
    call = PUBLISHED[name][0]
    assert call in TABLE.values(), f"{call.method} {call.path}: a line in operations.py, and a command that uses it"


def test_what_is_left_out_is_published():
    assert set(OTHERWISE) <= set(PUBLISHED)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_command_uses_it(name):
    elsewhere = {"OPERATION"}  # waiting asks for it as well
    used = {call for _, _, calls, _ in FUNCTIONS for call in calls} | elsewhere
    assert name in used


@pytest.mark.parametrize("name", sorted(TABLE))
def test_it_is_published(name):
    assert TABLE[name] in [call for call, _, _ in PUBLISHED.values()]


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_every_member_and_parameter_can_be_typed(name):
    call, body, asked = PUBLISHED[name]
    if name in OTHERWISE:
        return
    (key,) = [key for key, each in TABLE.items() if each == call]
    words = set().union(*(words for _, _, calls, words in FUNCTIONS if key in calls))
    assert (body | asked) - words - set(UNTYPED.get(key, ())) == set()


def enums(name):
    return set(document()["components"]["schemas"][name]["enum"])


def words(annotation):
    """Of a Literal, wherever it stands in an annotation."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*(words(each) for each in get_args(annotation)))


def of(function, parameter):
    return words(get_type_hints(function, include_extras=True)[parameter])


@pytest.mark.parametrize(
    ("typed", "schema"),
    [
        (words(options.Operation), "AclOperationEnum"),
        (words(options.ResourceType), "AclResourceTypeEnum"),
        (words(options.PatternType), "AclPatternTypeEnum"),
        (words(options.Permission), "AclPermissionEnum"),
        (words(acl.AnyOperation), "AclFilterOperationEnum"),
        (words(acl.AnyPermission), "AclFilterPermissionEnum"),
        (words(acl.AnyType), "AclFilterResourceTypeEnum"),
        (words(acl.AnyPattern), "AclFilterPatternTypeEnum"),
        (of(acl.preset, "kind"), "PresetEnum"),
        (words(access.Asked), "AccessQuestionOperationEnum"),
        (words(route.Security), "SecurityEnum"),
        (words(route.ClientCertificates), "ClientCertificatesEnum"),
        (of(account.search, "kind"), "SearchKindEnum"),
        (of(rule.create, "kind"), "KindEnum"),
        (of(group.reset, "to"), "StrategyEnum"),
        (words(alarm.Watch), "AlarmWatchEnum"),
        (words(alarm.Comparison), "AlarmComparisonEnum"),
        (of(receiver.add, "kind"), "ReceiverKindEnum"),
        (of(instance.window, "day"), "DayEnum"),
        (words(policy.Policy), "PolicyEnum"),
        (words(member.Role), "RoleEnum"),
        (words(prepaid.AtEnd), "PrepaidAtEndEnum"),
        (words(load.Kind), "LoadKindEnum"),
        (of(instance.create, "prepaid_at_end"), "PrepaidAtEndEnum"),
        (of(fleet.set_capacity, "resource"), "RoomChangeResourceEnum"),
        (of(cluster.change, "state"), "ClusterStateEnum"),
        (of(cluster.set_rebalancing, "mode"), "BalanceModeEnum"),
        (of(rebalance.act, "action"), "RebalanceActionEnum"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_choices_are_the_schemas(typed, schema):
    assert typed == enums(schema)


def test_states_of_transactions_are_kafkas():
    assert of(transaction.listed, "state") == set(STATES)


def test_states_of_instances_and_operations_are_the_services():
    assert of(instance.listed, "health") == set(HEALTH_STATES)
    assert of(instance.listed, "state") == set(InstanceState.values) - {"deleted"}
    assert of(operation.listed, "state") == of(fleet.operations, "state") == set(OperationState.values)
    assert of(fleet.instances, "state") == set(InstanceState.values) - {"deleted"}


def asked_words(operation_id, parameter):
    """What the schema lets a parameter of an address be."""
    items = (item for path in document()["paths"].values() for item in path.values())
    (operation,) = [each for each in items if isinstance(each, dict) and each.get("operationId") == operation_id]
    (found,) = [each["schema"]["enum"] for each in operation["parameters"] if each["name"] == parameter]
    return set(found)


@pytest.mark.parametrize(
    ("function", "option", "operation_id", "parameter"),
    [
        (fleet.brokers, "state", "fleet_brokers_get", "state"),
        (fleet.organisations, "state", "fleet_organisations_get", "state"),
        (fleet.heat, "what", "fleet_heat_get", "of"),
        (fleet.heat, "measure", "fleet_heat_get", "measure"),
        (fleet.heat, "span", "fleet_heat_get", "range"),
        (metering.losses, "settled", "metering_losses_get", "settled"),
    ],
)
def test_choices_of_filters_are_the_schemas(function, option, operation_id, parameter):
    assert of(function, option) == asked_words(operation_id, parameter)


def test_goals_of_rebalances_are_named():
    assert all(goal in str(of_help(rebalance.propose, "goals")) for goal in enums("RebalanceGoalEnum"))


def test_plans_are_named():
    assert all(plan in str(of_help(bill.shown, "plan")) for plan in enums("PlanEnum"))


def of_help(function, parameter):
    hints = get_type_hints(function, include_extras=True)
    return [each.help for each in hints[parameter].__metadata__]
