"""An unscoped query on tenant data raises, wherever it comes from."""

from __future__ import annotations

import pytest
from django.apps import apps

from controlplane.core.errors import UnscopedQueryError
from controlplane.core.scope import TenantManager
from controlplane.instances.models import Instance

OURS = [
    model
    for model in apps.get_models()
    if model.__module__.startswith("controlplane.") and any(f.name == "organisation" for f in model._meta.get_fields())
]


def test_every_model_with_an_organisation_is_behind_the_scope():
    unguarded = [model.__name__ for model in OURS if not isinstance(model._default_manager, TenantManager)]
    assert unguarded == ["Membership"], "a membership is what the scope is decided by"


@pytest.mark.parametrize(
    "query",
    [
        lambda objects: objects.all(),
        lambda objects: objects.filter(name="x"),
        lambda objects: objects.get(pk="x"),
        lambda objects: objects.count(),
        lambda objects: objects.create(name="x"),
        lambda objects: objects.unscoped(""),
    ],
)
def test_an_unscoped_query_raises(query):
    with pytest.raises(UnscopedQueryError):
        query(Instance.objects)


def test_the_scope_shows_ones_own_and_nothing_else(alice, charlie, instance):
    assert list(Instance.objects.for_organisation(alice.organisation)) == [instance]
    assert list(Instance.objects.for_organisation(charlie.organisation)) == []
    assert list(Instance.objects.unscoped("a test")) == [instance]
