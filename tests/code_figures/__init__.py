"""Figures of the code itself: what grows when nobody looks. ``python -m tests.code_figures [COMMIT]`` prints them.

    largest class     by attributes, inherited ones included: those in `__slots__`, those declared in the class's body,
                      and those that its methods assign to `self`. Values (frozen dataclasses, named tuples), enumerations
                      and the declarations of protocol messages do not count: they hold many fields and do nothing
    longest file, longest function      in lines, docstrings and comments included
    Any, ignores      where a name `Any` stands in code, and comments that begin with ``type: ignore``
    spread classes    those that are put together by inheritance from other files, where no other class has those bases
                      and nobody makes one of them: one class in pieces
    full folders      with more than 15 files of Python

Read from the source, nothing is imported; so another commit can be measured from here. Migrations do not count.
"""

from __future__ import annotations

import ast
import io
import subprocess
import tarfile
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("controlplane", "dataplane", "quota")
MOST_FILES = 15
_MESSAGES = "dataplane/protocol/messages/"
_VALUES = {"NamedTuple", "TypedDict", "Protocol", "Enum", "IntEnum", "StrEnum", "IntFlag", "TextChoices"}

Sources = dict[str, str]
"""Text by path below the root."""


@dataclass(frozen=True, slots=True)
class Count:
    """Of what stands at `where`."""

    count: int
    where: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one tree."""

    largest_class: Count
    longest_file: Count
    longest_function: Count
    anys: int
    ignores: int
    spread_classes: tuple[Count, ...]  # by how many files each is spread over
    full_folders: tuple[Count, ...]


@dataclass(frozen=True)
class Class:
    """A class with its own attributes. `bases` are names as they stand in the source, without modules."""

    name: str
    path: str
    bases: tuple[str, ...]
    node: ast.ClassDef

    @cached_property
    def attributes(self) -> set[str]:
        """Its own, not those of its bases."""
        found: set[str] = set()
        for statement in self.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found.add(statement.target.id)
            elif isinstance(statement, ast.Assign) and _is_named(statement.targets[0], "__slots__"):
                found |= {n.value for n in ast.walk(statement.value) if isinstance(n, ast.Constant)}
        for node in ast.walk(self.node):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_named(node.value, "self"):
                found.add(node.attr)
        return found

    @cached_property
    def is_value(self) -> bool:
        """Whether it holds fields and does not change."""
        frozen = any(
            isinstance(option, ast.keyword) and option.arg == "frozen"
            for decorator in self.node.decorator_list
            for option in ast.walk(decorator)
        )
        return frozen or bool(_VALUES & set(self.bases)) or self.path.startswith(_MESSAGES)


class Classes:
    """All classes of a tree, and who inherits from whom."""

    def __init__(self, trees: dict[str, list[ast.AST]]) -> None:
        by_place: dict[tuple[str, str], Class] = {}
        self._imported: dict[str, dict[str, str]] = {}
        self._made: set[str] = set()
        for path, nodes in trees.items():
            self._imported[path] = _modules_of_names(nodes)
            for node in nodes:
                if isinstance(node, ast.ClassDef):
                    bases = tuple(_last_name(base) for base in node.bases)
                    by_place[path, node.name] = Class(node.name, path, bases, node)
                elif isinstance(node, ast.Call):
                    self._made.add(_last_name(node.func))
        self._by_place = by_place
        self.all = list(by_place.values())
        self._heirs: dict[tuple[str, str], list[Class]] = defaultdict(list)
        for one in self.all:
            for base in self.bases_of(one):
                self._heirs[base.path, base.name].append(one)

    def bases_of(self, one: Class) -> list[Class]:
        """Those in the tree, nearest first, of the same file or imported by name.

        Nested classes share names (`class Meta(Sample.Meta)`): one that a base's name leads back to is not its base.
        """
        found = []
        for name in one.bases:
            module = self._imported[one.path].get(name)
            paths = [one.path] if module is None else [f"{module}.py", f"{module}/__init__.py"]
            found += [self._by_place[path, name] for path in paths if (path, name) in self._by_place]
        return [base for base in found if base is not one]

    def with_ancestors(self, one: Class) -> list[Class]:
        """It and all that it inherits from, each once."""
        found = {(one.path, one.name): one}
        for base in self.bases_of(one):
            found |= {(other.path, other.name): other for other in self.with_ancestors(base)}
        return list(found.values())

    def attributes(self, one: Class) -> set[str]:
        """With those that it inherits."""
        return set().union(*(other.attributes for other in self.with_ancestors(one)))

    def pieces(self, one: Class) -> list[Class]:
        """Its ancestors that are there for it alone: none of anything else, and none made by itself."""
        return [
            other
            for other in self.with_ancestors(one)
            if other is not one
            and not other.is_value
            and other.name not in self._made
            and {(leaf.path, leaf.name) for leaf in self._leaves(other)} == {(one.path, one.name)}
        ]

    def _leaves(self, one: Class) -> list[Class]:
        heirs = self._heirs[one.path, one.name]
        return [leaf for heir in heirs for leaf in self._leaves(heir)] if heirs else [one]


def figures(sources: Sources) -> Figures:
    """Of these files; there is at least one function and one class in them."""
    trees = {path: list(ast.walk(ast.parse(text))) for path, text in sources.items()}
    classes = Classes(trees)
    functions = [
        Count((node.end_lineno or 0) - node.lineno + 1, f"{path}:{node.lineno} {node.name}")
        for path, nodes in trees.items()
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return Figures(
        largest_class=_most(
            [Count(len(classes.attributes(one)), f"{one.path} {one.name}") for one in classes.all if not one.is_value]
        ),
        longest_file=_most([Count(text.count("\n"), path) for path, text in sources.items()]),
        longest_function=_most(functions),
        anys=sum(isinstance(node, ast.Name) and node.id == "Any" for nodes in trees.values() for node in nodes),
        ignores=sum(_ignores(text) for text in sources.values()),
        spread_classes=_spread(classes),
        full_folders=_full_folders(sources),
    )


def _spread(classes: Classes) -> tuple[Count, ...]:
    found = []
    for one in classes.all:
        files = {other.path for other in classes.pieces(one)} | {one.path}
        if len(files) > 1:
            found.append(Count(len(files), f"{one.path} {one.name}"))
    return tuple(sorted(found, key=lambda count: (-count.count, count.where)))


def _full_folders(sources: Sources) -> tuple[Count, ...]:
    files = Counter(str(PurePath(path).parent) for path in sources)
    return tuple(Count(many, folder) for folder, many in files.most_common() if many > MOST_FILES)


def _ignores(text: str) -> int:
    """Comments only: a string may speak of them."""
    if "type: ignore" not in text:
        return 0
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and "type: ignore" in token.string for token in tokens)


def _most(counts: list[Count]) -> Count:
    return max(counts, key=lambda count: count.count)


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _last_name(node: ast.expr) -> str:
    """`c` of `a.b.c[d]`."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _modules_of_names(nodes: list[ast.AST]) -> dict[str, str]:
    """Path without its ending of the module that each imported name is from."""
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.name: node.module.replace(".", "/") for node in imports for name in node.names if node.module}


# --- where the sources come from ------------------------------------------------------------------------------------


def counts(path: str) -> bool:
    """Whether a file is part of the product, written by hand."""
    parts = PurePath(path).parts
    return path.endswith(".py") and parts[0] in PACKAGES and "migrations" not in parts


def here() -> Sources:
    """As they are on disk."""
    paths = [
        path.relative_to(ROOT).as_posix() for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    ]
    return {path: (ROOT / path).read_text() for path in paths if counts(path)}


def at(commit: str) -> Sources:
    """As they were. Raises CalledProcessError where git does not know the commit."""
    archive = subprocess.run(["git", "archive", commit, *PACKAGES], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = [member for member in tar.getmembers() if member.isfile() and counts(member.name)]
        return {member.name: file.read().decode() for member in members if (file := tar.extractfile(member))}


# --- for people -----------------------------------------------------------------------------------------------------


def text(columns: dict[str, Figures]) -> str:
    """A block for each tree, under its name."""
    return "\n\n".join(f"{name}\n{_block(one)}" for name, one in columns.items())


def _block(one: Figures) -> str:
    lines = [
        ("largest class", f"{one.largest_class.count} attributes  {one.largest_class.where}"),
        ("longest file", f"{one.longest_file.count} lines  {one.longest_file.where}"),
        ("longest function", f"{one.longest_function.count} lines  {one.longest_function.where}"),
        ("Any", str(one.anys)),
        ("type-ignores", str(one.ignores)),
        *(("spread class", f"{spread.count} files  {spread.where}") for spread in one.spread_classes),
        *(("full folder", f"{folder.count} files  {folder.where}") for folder in one.full_folders),
    ]
    return "\n".join(f"  {name:18}{value}" for name, value in lines)
