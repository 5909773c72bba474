"""What a command works with: the connection, the output, and how a list, a change or an operation is carried through.

A command names a call, ids and what was typed; which profile, which format, what is asked before something is deleted, and how
an operation is waited for is decided here, once for all of them.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from controlplane.cli import operations as ops
from controlplane.cli.client import Client
from controlplane.cli.errors import Missing, Misused
from controlplane.cli.output import Output
from controlplane.cli.profiles import chosen
from controlplane.cli.values import plain
from controlplane.cli.waiting import Clock, awaited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from controlplane.cli.operations import Call
    from controlplane.cli.tables import Columns

DRY_RUN = {"dry_run": "true"}
INSTANCE_ID = re.compile(r"ins-[a-z0-9]{8,12}")


@dataclass
class Session:
    """One run of the program. `profile`, `output` and `dry_run` are what was typed.

    A dry run ends with the first call that would change something: its answer is what is asked for. There is no other way to one:
    a command is registered with `rehearses=True`, and makes its call as ever.
    """

    clock: Clock = field(default_factory=Clock)
    profile: str | None = None
    output: Output = field(default_factory=Output)
    dry_run: bool = False

    @cached_property
    def client(self) -> Client:
        """Made when it is first needed: `login` and `--help` know no key. Raises NotSignedIn."""
        return Client(chosen(self.profile, os.environ), sleep=self.clock.sleep)

    def close(self) -> None:
        """Let connections go."""
        if "client" in self.__dict__:
            self.client.close()

    def call(
        self, call: Call, *, query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None, **ids: str
    ) -> Any:
        """The answer, unseen; of a change in a dry run the answer that ends it. Raises CliError."""
        return self._called(call, ids, query=query, body=body)

    def show(self, call: Call, *, query: Mapping[str, Any] | None = None, **ids: str) -> None:
        """One thing."""
        self.output.document(self._called(call, ids, query=query))

    def text(self, call: Call, *, query: Mapping[str, Any] | None = None, **ids: str) -> None:
        """A file."""
        self.output.text(self.client.text(call, self._ids(ids), query=query))

    def file(self, call: Call, *, query: Mapping[str, Any] | None = None, **ids: str) -> None:
        """A file that is for programs to open. Raises CliError."""
        self.output.refuse_terminal()
        self.output.content(self.client.content(call, self._ids(ids), query=query))

    def files(self, call: Call, *, query: Mapping[str, Any], limit: int, count: str, **ids: str) -> Iterator[bytes]:
        """Files that lead to each other. Raises CliError."""
        self.output.refuse_terminal()
        return self.client.files(call, self._ids(ids), query=query, limit=limit, count=count)

    def listed(
        self,
        call: Call,
        columns: Columns,
        *,
        limit: int | None,
        query: Mapping[str, Any] | None = None,
        readable: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        note: str = "",
        order: Callable[[Mapping[str, Any]], Any] | None = None,
        **ids: str,
    ) -> dict[str, Any]:
        """All pages, or the first `limit` items; in a table each as `readable` makes it. `note`: a member said beside it.

        `order`: a key by which all items are sorted before the first `limit` are taken. Returns the first page.
        """
        pages = list(self.client.pages(call, self._ids(ids), limit=None if order else limit, query=query))
        if order is not None:
            items = sorted((item for page in pages for item in page["items"]), key=order)[:limit]
            pages = [{**pages[0], "items": items, "next": None}]
        self.output.pages(pages, columns, readable, note)
        return pages[0]

    def change(
        self,
        call: Call,
        *,
        done: str = "",
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        **ids: str,
    ) -> Any:
        """A change that is made when it is answered; `done` is said where the answer has no content."""
        answer = self._called(call, ids, query=query, body=body)
        self.output.document(answer)
        if answer is None and done:
            self.output.note(done)
        return answer

    def start(
        self,
        call: Call,
        *,
        wait: bool,
        body: Mapping[str, Any] | None = None,
        **ids: str,
    ) -> dict[str, Any]:
        """A change that an operation makes: its answer, which is printed when the operation has succeeded."""
        answer: dict[str, Any] = self._called(call, ids, body=body)
        if wait:
            awaited(self.client, answer["operation_id"], output=self.output, clock=self.clock)
        self.output.document(answer)
        return answer

    def confirm(self, what: str, name: str, *, yes: bool) -> None:
        """Ask for the name of what is to be deleted, unless `yes` was said, or nothing is done. Raises Misused."""
        if yes or self.dry_run:
            return
        sys.stderr.write(f"{plain(what)}\nType {plain(name)} to go on: ")
        sys.stderr.flush()
        typed = sys.stdin.readline()
        if not typed:
            raise Misused("nobody has answered", notes=("--yes goes on without asking.",))
        if typed.strip() not in (name, plain(name)):
            raise Misused("that is another name: nothing was changed")

    def _called(
        self,
        call: Call,
        ids: Mapping[str, str],
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        if not (self.dry_run and call.is_change):
            return self.client.call(call, self._ids(ids), query=query, body=body)
        self.output.document(self.client.call(call, self._ids(ids), query={**(query or {}), **DRY_RUN}, body=body))
        raise typer.Exit

    def _ids(self, ids: Mapping[str, str]) -> dict[str, str]:
        """With an instance's id in place of its name."""
        given = ids.get("instance_id")
        return dict(ids) if given is None else {**ids, "instance_id": self.instance_id(given)}

    def instance_id(self, given: str) -> str:
        """The id of an instance that was named by its id or its name. Raises Missing, Misused."""
        if INSTANCE_ID.fullmatch(given):
            return given
        # What is not printable is no instance's name, and may be nothing that can be sent.
        pages = self.client.pages(ops.INSTANCES, query={"name": given}) if given.isprintable() else ()
        found = [each["id"] for page in pages for each in page["items"] if each["name"] == given]
        if not found:
            raise Missing(f"there is no instance called {plain(given)}")
        if len(found) > 1:
            raise Misused(f"several instances are called {plain(given)}: {', '.join(found)}")
        return str(found[0])


def of(ctx: typer.Context) -> Session:
    """The session of a command."""
    found = ctx.find_root().obj
    assert isinstance(found, Session), "app.main makes it"
    return found
