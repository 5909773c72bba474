"""Arguments and options that many commands have, each described once; and the options that every command has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperOption

from controlplane.cli import completion
from controlplane.cli.output import KINDS, TABLE, Output
from controlplane.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

Instance = Annotated[
    str, typer.Argument(metavar="INSTANCE", help="Its id or its name.", autocompletion=completion.instances)
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.", autocompletion=completion.topics)]
Group = Annotated[str, typer.Argument(metavar="GROUP", help="Its name.", autocompletion=completion.groups)]
User = Annotated[str, typer.Argument(metavar="USER", help="The name, without User:.", autocompletion=completion.users)]
Route = Annotated[
    str, typer.Argument(metavar="ROUTE", help="Its id, such as default or r2.", autocompletion=completion.routes)
]
Rule = Annotated[str, typer.Argument(metavar="RULE", help="Its id.", autocompletion=completion.rules)]

Limit = Annotated[int | None, typer.Option(min=1, help="So many at most; by default all, page after page.")]
Sort = Annotated[
    str | None, typer.Option(help="By this member, such as name; with a - before it the largest first: --sort=-name.")
]
Prefix = Annotated[str | None, typer.Option(help="Only those whose names begin so.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Until the operation has ended.")]
Cidrs = Annotated[list[str] | None, typer.Option("--cidr", help="An address or a CIDR block; again for more.")]
Settings = Annotated[list[str] | None, typer.Option("--config", "-c", help="NAME=VALUE; again for more.")]
From = Annotated[str | None, typer.Option("--from", help="A date or RFC 3339, in UTC where no zone is said.")]
To = Annotated[str | None, typer.Option("--to", help="The same; not included.")]
Since = Annotated[str, typer.Option("--from", help="Ago, such as -30m, -6h or -7d; or a date or RFC 3339, in UTC.")]
Until = Annotated[str | None, typer.Option("--to", help="The same; not included. By default now.")]
ConfirmPrice = Annotated[
    bool | None, typer.Option("--confirm-price", help="The price is known; dear purchases are refused without it.")
]
File = Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False)]

Operation = Literal[
    "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
]  # fmt: skip
ResourceType = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
PatternType = Literal["LITERAL", "PREFIXED"]
Permission = Literal["ALLOW", "DENY"]


def with_profile(ctx: typer.Context, _parameter: object, value: str | None) -> str | None:
    """Remember which profile was typed, before or behind the command."""
    root = ctx.find_root()
    if value is not None and isinstance(root.obj, Session):
        root.obj.profile = value
    return value


def with_output(ctx: typer.Context, _parameter: object, value: str | None) -> str | None:
    """Remember the format. Raises BadParameter."""
    if value is None:
        return None
    if value not in KINDS:
        raise typer.BadParameter(f"must be {' or '.join(KINDS)}")
    root = ctx.find_root()
    if isinstance(root.obj, Session):
        root.obj.output = Output(value)
    return value


def with_dry_run(ctx: typer.Context, _parameter: object, value: bool) -> bool:  # as typer calls it
    """Remember that nothing is to be done."""
    root = ctx.find_root()
    if value and isinstance(root.obj, Session):
        root.obj.dry_run = True
    return value


def _dry_run() -> TyperOption:
    return TyperOption(
        param_decls=["--dry-run"],
        is_flag=True,
        help="Only say what it would do, or why it would be refused.",
        expose_value=False,
        callback=with_dry_run,
    )


def _common() -> list[Any]:
    output = TyperOption(
        param_decls=["--output", "-o"],
        type=str,
        metavar="|".join(KINDS),
        help=f"By default {TABLE}.",
        expose_value=False,
        callback=with_output,
    )
    profile = TyperOption(
        param_decls=["--profile"],
        type=str,
        metavar="NAME",
        help="Who, where several have signed in.",
        expose_value=False,
        callback=with_profile,
    )
    return [output, profile]


class Command(TyperCommand):
    """Takes the common options behind its name as well as before it."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **options: Any) -> None:
        super().__init__(*args, params=[*(params or []), *_common()], **options)


class Rehearsed(Command):
    """Makes one call that can be asked what it would do (`Session.call`)."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **options: Any) -> None:
        super().__init__(*args, params=[*(params or []), _dry_run()], **options)


class Commands(typer.Typer):
    """A group of commands."""

    def __init__(self, about: str) -> None:
        super().__init__(help=about, no_args_is_help=True, rich_markup_mode=None)

    def add(self, name: str, *, rehearses: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Register a function as the command of this name. `rehearses`: it takes --dry-run, and knows nothing of it."""
        return self.command(name, cls=Rehearsed if rehearses else Command)
