"""Kinds whose things are rows with an id and a name: alarms, receivers, token issuers, loads, budgets, roles, service accounts.

All are looked for in one question of the database, whatever their number, the first time that one of them is asked for: a
person types a letter every tenth of a second. What the caller may not look at is found as well, and handed to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import CharField, F, Value

from controlplane.accounts.custom_roles import custom_role_list
from controlplane.accounts.selectors import service_account_list
from controlplane.alarms.models import Alarm, Receiver
from controlplane.budgets.selectors import budget_list
from controlplane.loads.models import Load
from controlplane.search.hits import Hit, page, rest, together
from controlplane.search.sql import RANK, fitting, ranked
from controlplane.token_issuers.models import TokenIssuer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from controlplane.search.asking import Asker

COLUMNS = ("hit_kind", "hit_id", "hit_name", "hit_first", "hit_second", "hit_instance", "hit_rank")


class Row(NamedTuple):
    """In the order of COLUMNS. `first` and `second` tell it from others of its name; None or empty: nothing does."""

    kind: str
    id: str
    name: str
    first: str | None
    second: str | None
    instance: str | None
    rank: int


@dataclass(frozen=True, slots=True)
class Named:
    """Where rows of a kind are and by which fields they are found (`sql.fitting`); the first of `names` is what it is called."""

    rows: Callable[[Asker], QuerySet[Any]]
    names: tuple[str, ...]
    beside: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # at most two
    instance: str = ""  # the field; empty: it is the organisation's


def _within(model: type[Any]) -> Callable[[Asker], QuerySet[Any]]:
    """Of instances that the caller knows."""
    return lambda asker: model.objects.for_organisation(asker.caller.organisation).filter(instance__in=asker.ids)


def _alarms(asker: Asker) -> QuerySet[Alarm]:
    found: QuerySet[Alarm] = _within(Alarm)(asker).filter(deleted_at=None)
    return found


TABLE = {
    "alarm": Named(_alarms, ("name", "id"), ("watch", "topic", "group"), ("watch",), "instance_id"),
    # Of a webhook the address is where it is, and no more: models.py.
    "receiver": Named(_within(Receiver), ("name", "id"), ("address",), ("address",), "instance_id"),
    "token_issuer": Named(_within(TokenIssuer), ("issuer", "id"), instance="instance_id"),
    "lake_load": Named(_within(Load), ("id", "topic"), ("bucket", "path"), ("topic", "bucket"), "instance_id"),
    "budget": Named(
        lambda asker: budget_list(organisation=asker.caller.organisation),
        ("name", "id"), ("instance__name",), ("instance__name",),
    ),
    "role": Named(
        lambda asker: custom_role_list(organisation=asker.caller.organisation),
        ("name", "id"), ("description",), ("description",),
    ),
    "service_account": Named(
        lambda asker: service_account_list(organisation=asker.caller.organisation),
        ("name", "id"), ("description",), ("description",),
    ),
}  # fmt: skip


def found(asker: Asker) -> dict[str, list[Row]]:
    """By kind, the best first, at most one more of each than is asked for. One query."""
    first, *others = (_best(asker, kind, named) for kind, named in TABLE.items())
    rows: dict[str, list[Row]] = {kind: [] for kind in TABLE}
    for values in first.union(*others, all=True):
        row = Row(*values)
        rows[row.kind].append(row)
    for each in rows.values():
        each.sort(key=lambda row: (row.rank, row.name, row.id))
    return rows


def _best(asker: Asker, kind: str, named: Named) -> QuerySet[Any, Any]:
    """Of one kind. A part of a union has no limit of its own in SQLite, so that the best are chosen within."""
    fits = fitting(named.rows(asker), asker.wanted, names=named.names, beside=named.beside)
    best = fits.order_by(RANK, named.names[0], "pk")[: asker.most + 1].values("pk")
    first, second = (*named.shown, "", "")[:2]
    columns = dict(
        zip(
            COLUMNS,
            (Value(kind), F("pk"), *map(_text, (named.names[0], first, second, named.instance)), F(RANK)),
            strict=True,
        )
    )
    rows = ranked(named.rows(asker).filter(pk__in=best), asker.wanted, names=named.names)
    found: QuerySet[Any, Any] = rows.order_by().select_related(None).annotate(**columns).values_list(*COLUMNS)
    return found


def _text(field: str) -> F | Value:
    return F(field) if field else Value("", output_field=CharField())


def _place(asker: Asker, row: Row) -> str:
    """The name of its instance, and what else tells it from others."""
    return together([asker.name_of(row.instance) if row.instance else "", row.first or "", row.second or ""])


def _in_instance(kind: str, segment: str, shown: str, *, has_page: bool = True) -> Callable[[Asker], list[Hit]]:
    """How a kind of things in instances is looked for. `segment`: in REST; `shown`: the page of one, or of all of them."""

    def look(asker: Asker) -> list[Hit]:
        org = asker.caller.organisation.id
        return [
            Hit(
                kind, row.id, row.name, _place(asker, row), row.instance or "",
                rest("instances", row.instance or "", segment, row.id),
                page(shown, org, row.instance, *([row.id] if has_page else [])),
            )
            for row in asker.named[kind]
        ]  # fmt: skip

    return look


def _of_organisation(kind: str, segment: str) -> Callable[[Asker], list[Hit]]:
    """The same of what is the organisation's; its page is called as the kind is."""

    def look(asker: Asker) -> list[Hit]:
        org = asker.caller.organisation.id
        return [
            Hit(kind, row.id, row.name, _place(asker, row), "", rest(segment, row.id), page(kind, org, row.id))
            for row in asker.named[kind]
        ]

    return look


alarms = _in_instance("alarm", "alarms", "alarm")
receivers = _in_instance("receiver", "receivers", "receiver")
token_issuers = _in_instance("token_issuer", "token-issuers", "token_issuers", has_page=False)
lake_loads = _in_instance("lake_load", "lake-loads", "instance_load")
budgets = _of_organisation("budget", "budgets")
roles = _of_organisation("role", "roles")
service_accounts = _of_organisation("service_account", "service-accounts")
