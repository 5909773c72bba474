"""All resources and data sources, by the names that configurations use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.terraform.resources.acl import AclResource
from controlplane.terraform.resources.instance import InstanceResource
from controlplane.terraform.resources.lookups import InstanceLookup, ZonesLookup
from controlplane.terraform.resources.throttle_rule import ThrottleRuleResource
from controlplane.terraform.resources.topic import TopicResource
from controlplane.terraform.resources.user import UserResource
from controlplane.terraform.resources.whitelist import WhitelistResource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.terraform.resources.base import Resource
    from controlplane.terraform.resources.lookups import Lookup

_RESOURCES: tuple[Resource, ...] = (
    InstanceResource(),
    TopicResource(),
    WhitelistResource(),
    UserResource(),
    AclResource(),
    ThrottleRuleResource(),
)
_LOOKUPS: tuple[Lookup, ...] = (InstanceLookup(), ZonesLookup())
RESOURCES: Mapping[str, Resource] = {each.name: each for each in _RESOURCES}
LOOKUPS: Mapping[str, Lookup] = {each.name: each for each in _LOOKUPS}
