"""The root command, its groups, and how an error becomes an exit status (errors.py has them all)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

from controlplane.cli.commands import (
    access,
    account,
    alarm,
    bill,
    budget,
    cluster,
    connection,
    cost,
    elastic,
    fleet,
    group,
    instance,
    job,
    key,
    load,
    member,
    message,
    metering,
    mirror,
    operation,
    organisation,
    policy,
    prepaid,
    quota,
    rebalance,
    role,
    route,
    rule,
    service_account,
    sso,
    topic,
    transaction,
    usage,
)
from controlplane.cli.errors import CliError
from controlplane.cli.options import Commands, with_output, with_profile
from controlplane.cli.output import KINDS
from controlplane.cli.session import Session
from controlplane.cli.waiting import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "sluice"

app = Commands(
    "Sluice on the command line. Sign in with sluice login; SLUICE_URL and SLUICE_API_KEY in the environment win over that. "
    "Exit status: 1 refused, 2 wrong usage, 3 not signed in, 4 not found, 5 the service is away, 6 no longer waited for."
)
GROUPS = {
    "instance": instance.app,
    "topic": topic.app,
    "message": message.app,
    "group": group.app,
    "connections": connection.app,
    "mirror": mirror.app,
    "load": load.app,
    "transactions": transaction.app,
    "access": access.app,
    "route": route.app,
    "rule": rule.app,
    "policy": policy.app,
    "alarm": alarm.app,
    "quota": quota.app,
    "usage": usage.app,
    "bill": bill.app,
    "cost": cost.app,
    "budget": budget.app,
    "prepaid": prepaid.app,
    "elastic": elastic.app,
    "operation": operation.app,
    "organisation": organisation.app,
    "member": member.app,
    "invitation": member.invitation_app,
    "role": role.app,
    "service-account": service_account.app,
    "sso": sso.app,
    "key": key.app,
    "access-key": key.access_app,
    "fleet": fleet.app,
    "cluster": cluster.app,
    "rebalance": rebalance.app,
    "job": job.app,
    "metering": metering.app,
}
for _name, _group in GROUPS.items():
    app.add_typer(_group, name=_name)
account.add_to(app)


@app.callback()
def root(
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who, where several have signed in.", callback=with_profile)
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="|".join(KINDS), callback=with_output)] = None,
) -> None:
    """What holds for every command; the options may stand behind it as well."""
    del profile, output  # the callbacks have them


def main(arguments: Sequence[str] | None = None, *, clock: Clock | None = None) -> int:
    """Run one command; the exit status."""
    session = Session(clock=clock or Clock())
    try:
        get_command(app).main(arguments, prog_name=PROGRAM, obj=session)
    except CliError as error:
        session.output.failure(error)
        return error.exit_status
    except OSError as error:  # of this machine: a folder that cannot be written, a full disk
        session.output.failure(CliError(str(error)))
        return CliError.exit_status
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        session.close()
    return 0
