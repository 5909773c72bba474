"""The maps of the code are whole: a package's docstring names its modules, ARCHITECTURE.md every package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
USUAL = {"__init__", "apps", "models", "services", "selectors", "serializers", "api", "tasks"}
"""What every Django app has; the map of `controlplane` says what for."""
ONE_OF_A_KIND = {"views", "forms", "messages", "templatetags", "commands", "management", "migrations", "jobs"}
"""Packages of modules that are all alike: one for each page, each family of APIs, each table's history."""


def packages():
    """Every package of the product that has modules to be named."""
    for init in sorted(
        path for top in ("controlplane", "dataplane", "quota") for path in (ROOT / top).rglob("__init__.py")
    ):
        folder = init.parent
        if not ONE_OF_A_KIND & set(folder.relative_to(ROOT).parts):
            yield folder.relative_to(ROOT)


def modules(folder):
    inside = (ROOT / folder).iterdir()
    return {path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()} - USUAL


def words_of(text):
    return set(re.findall(r"\w+", text))


@pytest.mark.parametrize("folder", [folder for folder in packages() if len(modules(folder)) > 1], ids=str)
def test_a_package_names_its_modules(folder):
    said = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text())) or ""
    if folder in (Path("dataplane"), Path("controlplane")):  # of these ARCHITECTURE.md has the map
        said += (ROOT / "ARCHITECTURE.md").read_text()
    assert modules(folder) - ONE_OF_A_KIND - words_of(said) == set()


@pytest.mark.parametrize("folder", list(packages()), ids=str)
def test_architecture_names_every_package(folder):
    assert folder.name in words_of((ROOT / "ARCHITECTURE.md").read_text())


def test_the_files_that_a_life_passes_are_there():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    told = text[text.index("## Five lives") : text.index("### How many files")]
    there = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for top in ("controlplane", "dataplane", "quota", "tests")
        for path in (ROOT / top).rglob("*")
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+)`", told))
    assert {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in there)} == set()


@pytest.mark.parametrize("kind", ["runbooks", "subsystems"])
def test_the_index_of_documents_names_every_one(kind):
    listed = re.findall(rf"\({kind}/([\w-]+\.md)\)", (ROOT / "docs" / "README.md").read_text())
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs" / kind).glob("*.md"))


def test_make_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)[1].split())
    told = set(re.findall(r'@echo "make ([a-z-]+)', text))
    assert targets - told == {"help", "venv", "venv-develop"}
    assert targets == set(re.findall(r"^([a-z-]+):", text, flags=re.MULTILINE))
