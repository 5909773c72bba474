"""Which texts the console shows: found in templates and in Python, for the catalogue.

Three kinds. Marked in templates (`{% translate %}`, `{% blocktranslate %}`, `_("…")`): Django makes Python of a template, and
Babel reads that. Words of the filter `count`, in templates as well: `3|count:"topic,topics"` is a plural. And what Python says
(`wording.py`): texts of the modules whose words stand on pages, f-strings as patterns. Of services only what they refuse with is
taken.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from babel.messages.extract import DEFAULT_KEYWORDS, extract
from django.utils.translation.template import templatize

from controlplane.console.wording import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "controlplane" / "console" / "templates"
MARKS = {"filled", "gettext"}
"""Functions whose first argument is a text, however short."""
COUNT = re.compile(r'count:"([^",]+),([^"]+)"')

SPOKEN = (
    "controlplane/console",
    "controlplane/core/audit_chain.py",
    "controlplane/health/rules.py",
    "controlplane/health/selectors.py",
    "controlplane/alarms/rules.py",
    "controlplane/alarms/sources.py",
    "controlplane/admission/rules.py",
    "controlplane/groups/reasons.py",
    "controlplane/billing/exports/document.py",
    "controlplane/billing/pricing/plans.py",
    "controlplane/instances/plan.py",
    "controlplane/instances/provisioning.py",
    "controlplane/routes/provisioning.py",
    "controlplane/loads/destinations.py",
    "controlplane/loads/installed.py",
    "controlplane/loads/ranges.py",
    "controlplane/loads/unread.py",
    "controlplane/loads/watching.py",
    "controlplane/metering/pipeline/schedule.py",
    "controlplane/billing/verification.py",
    "controlplane/rebalancing/carrying_out.py",
    "controlplane/rebalancing/causes.py",
    "controlplane/rebalancing/picture.py",
    "controlplane/rebalancing/planner/hard.py",
    "controlplane/rebalancing/rounds.py",
    "controlplane/search/kinds.py",
    "controlplane/search/operators.py",
    "controlplane/rebalancing/summaries.py",
    "controlplane/routes/validation.py",
    "controlplane/policies/planning.py",
    "controlplane/policies/outlook.py",
    "controlplane/policies/retention.py",
    "controlplane/policies/rules.py",
    "controlplane/policies/storage.py",
    "controlplane/fleet/broker_state.py",
    "controlplane/fleet/measures.py",
    "controlplane/fleet/selectors.py",
    "controlplane/quotas/figures.py",
    "controlplane/remedies/leaders.py",
    "controlplane/remedies/neighbours.py",
    "controlplane/remedies/who.py",
    "controlplane/topic_insights/hints.py",
    "controlplane/topics/batches.py",
    "dataplane/cluster/setting_docs.py",
    "quota/core/explain.py",
    "quota/core/explain_access.py",
)
"""Modules, and packages, every sentence of which may stand on a page."""
MAILED = (
    "controlplane/accounts/identity/letters.py",
    "controlplane/alarms/delivery/words.py",
    "controlplane/instances/letters.py",
    "controlplane/organisations/letters.py",
    "controlplane/policies/letters.py",
)
"""Modules every line of which may stand in a mail, in the language of whoever gets it: `core/wording.py` goes line by line."""
NOT_SPOKEN = {
    *(
        "apps",
        "charts",
        "commandline",
        "extraction",
        "icons",
        "known_browser",
        "load_words",
        "management",
        "middleware",
        "proof",
        "urls",
        "wording",
    ),
    *("api_docs", "catalogue"),
}
"""Of them, modules and packages that say nothing, or nothing that is translated."""
REFUSING = (
    *("access", "accounts", "admission", "alarms", "billing", "budgets", "certificates", "clusters", "connections"),
    *(
        "core",
        "groups",
        "health",
        "instances",
        "kafka",
        "loads",
        "messages",
        "metering",
        "mirrors",
        "organisations",
        "policies",
        "quotas",
    ),
    *(
        "rebalancing",
        "remedies",
        "routes",
        "schemas",
        "search",
        "snippets",
        "sso",
        "tenants",
        "throttle_rules",
        "token_issuers",
        "topic_insights",
        "topics",
    ),
    *("transactions", "what_if"),
    # Of the programs that load and copy: what they end with stands in the row of a run. What names options of theirs is in
    # `wording.NAMES`, in words of the page.
    *("lake/bucket.py", "lake/commitlog.py", "lake/copying.py", "lake/ddl.py", "lake/schema_types.py", "lake/table.py"),
    "spark/topics.py",
)
"""Apps, and modules: what they raise is shown by pages."""
REFUSALS = {
    "FieldProblem",
    "Invalid",
    "NotFound",
    "Conflict",
    "Forbidden",
    "Unavailable",
    "AlreadyExists",
    "LimitReached",
    "LakeError",
    "Obstacle",
    "NoBucketError",
    "SchemaError",
    "TopicAwayError",
    "UndecodableError",
}
REFUSALS |= {
    "CapacityExhausted",
    "ClusterFull",
    "NoPlace",
    "ConcurrentChange",
    "OperationFailed",
    "OrganisationCapReached",
}
REFUSALS |= {
    "PriceUnconfirmed",
    "TooManyAttempts",
    "BandwidthUsedUp",
    "Unsupported",
    "ClusterUnavailable",
    "MasterUnavailable",
}
NOT_REFUSING = {
    "management",
    "migrations",
    "pipeline",
    "api.py",
    "zookeeper.py",
    "caching.py",
    "installed.py",
    "identification.py",
    "chain.py",
    "webauthn.py",
}
SAY_NOTHING = re.compile(
    r"%[%a-zA-Z]|^[a-z_]+(\.[a-z_]+)+$|^[A-Z][a-z]+(-[A-Z][a-z]+)+$|^attachment;|^[\w-]+-src |^max-age|=\(\)|^<|^# |^[Mm]\d"
    r"|^User:|&|\?\{"
)
"""Formats, headers and markup."""
NO_WORDS = {
    *"Lax Strict Json Stable Empty Dead PreparingRebalance CompletingRebalance Ongoing PrepareCommit PrepareAbort".split(),
    *"CompleteCommit CompleteAbort GiB KiB MiB PiB TiB MiB/s Python".split(),
    " (In this service .*|For those who run the brokers\\.)$",
    "(the code)",  # its place, in a text that is kept
    *("int | str", "cannot listen on \\S+:(?P<port>[0-9]+): "),
    # Reasons for a query without a tenant, and what is asserted.
    *(
        "everyone's figures are kept",
        "operations of all tenants share the cluster",
        "a worker counts everybody's",
        "the caller found the instance in its organisation",
        "operators see every tenant's",
        "a cluster is its operators'",
    ),
    *("an entry of the audit trail is never changed", "an entry of the audit trail is never deleted"),
    *(
        "the operation names its target",
        "an operation names its target",
        "the caller has found the instance",
        "the last of SPANS is a minute",
        "shares need a weight above 0, and none below",
    ),
}
"""Strings that look like words and are none, or none that a page shows."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text, or the two forms of a plural, and where one of its places is."""

    singular: str
    plural: str | None
    place: str
    context: str | None = None  # where one English word is two Chinese ones

    @property
    def key(self) -> str | tuple[str, str]:
        """As Babel's catalogues name it."""
        return self.singular if self.plural is None else (self.singular, self.plural)


def texts() -> list[Text]:
    """All of them, each once, sorted by their first places."""
    found: dict[tuple[str, str | None], Text] = {}
    for text in (
        *of_templates(),
        *of_python(),
        *(Text(name, None, "controlplane/console/wording.py") for name in NAMES),
    ):
        known = found.get((text.singular, text.context))
        if known is None or (known.plural is None and text.plural is not None):
            found[text.singular, text.context] = text if known is None else replace(text, place=known.place)
    return list(found.values())


def of_templates() -> Iterator[Text]:
    """What is marked in templates."""
    for path in sorted(TEMPLATES.rglob("*.html")):
        source, place = path.read_text(), path.relative_to(ROOT).as_posix()
        code = f"({templatize(source, origin=str(path))}\n)".encode()  # in brackets, where Python minds no indentation
        keywords = {**DEFAULT_KEYWORDS, "gettext_noop": None}
        for _, message, _, context in extract("python", BytesIO(code), keywords, options={"encoding": "utf-8"}):
            singular, plural = message if isinstance(message, tuple) else (message, None)
            yield Text(singular, plural, place, context)
        for one, many in COUNT.findall(source):
            yield Text(one, many, place)


def of_python() -> Iterator[Text]:
    """What modules say, and services refuse with."""
    for entry in SPOKEN:
        for path in _modules(ROOT / entry):
            if not NOT_SPOKEN & {path.stem, *_folders(path)}:
                yield from _texts(path, ast.parse(path.read_text()))
    for entry in MAILED:
        tree = ast.parse((ROOT / entry).read_text())
        yield from _marked(ROOT / entry, tree)
        for text in _texts(ROOT / entry, tree, short=False):
            for line in text.singular.split("\n"):
                if is_said(line, short=False):
                    yield replace(text, singular=line.lstrip(" "))
    for app in REFUSING:
        for path in _modules(ROOT / "controlplane" / app):
            if not NOT_REFUSING & {path.name, *_folders(path)}:
                for node in _refusals(ast.parse(path.read_text())):
                    yield from _texts(path, node, short=False)
    for path in (ROOT / "quota/contracts/namespace.py", ROOT / "quota/contracts/rules.py"):
        for node in _refusals(ast.parse(path.read_text())):
            yield from _texts(path, node, short=False)


def _folders(path: Path) -> tuple[str, ...]:
    """Below the checkout, which may lie in a folder of any name."""
    return path.relative_to(ROOT).parent.parts


def _modules(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _refusals(tree: ast.Module) -> Iterator[ast.AST]:
    """What is raised, problems of fields, and what functions named after a problem return."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield node.exc
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in REFUSALS:
            yield node
        elif isinstance(node, ast.FunctionDef) and "problem" in node.name:
            yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)


def _texts(path: Path, tree: ast.AST, *, short: bool = True) -> Iterator[Text]:
    """Strings that are words. `short`: one word with a capital is a text, too."""
    place = path.relative_to(ROOT).as_posix()
    yield from _marked(path, tree)
    for text in _strings(tree):
        if is_said(text, short=short):
            counted = re.fullmatch(r"([^,{}]+),([^,{}]+)", text)
            if counted and len(text) < 40 and "," in text and ", " not in text:
                yield Text(counted[1], counted[2], place)
            else:
                yield Text(text, None, place)


def _marked(path: Path, tree: ast.AST) -> Iterator[Text]:
    """What is handed to one of MARKS."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS and node.args:
            marked = node.args[0]
            if isinstance(marked, ast.Constant):
                yield Text(str(marked.value), None, path.relative_to(ROOT).as_posix())


def _strings(node: ast.AST) -> Iterator[str]:
    """Constants, and f-strings as patterns; docstrings and annotations are neither."""
    if isinstance(node, ast.JoinedStr):
        yield _pattern(node)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    else:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for child in value if isinstance(value, list) else [value]:
                is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.AST) and not is_docstring:
                    yield from _strings(child)


def _pattern(node: ast.JoinedStr) -> str:
    """`topic {name} is ready`: a value that is a name keeps it, of an attribute the last part; others are numbered."""
    used: list[str] = []
    text = ""
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            word = _name(part.value)
            used.append(word)
            text += "{" + (word if used.count(word) == 1 else f"{word}{used.count(word)}") + "}"
        elif isinstance(part, ast.Constant):
            text += str(part.value)
    return text


def _name(value: ast.expr) -> str:
    """What a value is called: by its name, its last attribute, the function that makes it, or the table that it stands in."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.lower().strip("_")
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.lower().strip("_")
    return "value"


def is_said(text: str, *, short: bool = True) -> bool:
    """Whether a string is words for people."""
    bare = re.sub(r"\{\w*\}", "", text)
    if text in NO_WORDS or SAY_NOTHING.search(text) or sum(map(str.isalpha, bare)) < 3:
        return False
    return " " in bare.strip() or (short and bool(re.fullmatch(r"[A-Z][a-z]+[.:,]?", bare.strip())))
