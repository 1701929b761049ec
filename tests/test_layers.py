"""The shape of the code: who may import whom."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "panda"
FILES = sorted(PACKAGE.rglob("*.py"))

TIERS = (
    {"panda.__main__"},
    {"panda.addons"},
    {"panda.cli"},
    {"panda.runs"},
    {"panda.actions"},
    {"panda.app"},
    {"panda.trust"},
    {
        "panda.settings",
        "panda.pipeline",
    },  # settings is read from above alone: see below
    {"panda.phases", "panda.evals", "panda.forgetting"},
    {
        "panda.recipes",
        "panda.offline",
        "panda.steps",
        "panda.compression",
        "panda.memory",
        "panda.retrieval",
        "panda.session",
        "panda.tools",
    },
    {"panda.models", "panda.index"},
    {"panda.store", "panda.web"},
    {"panda.documents"},
    {"panda.messages"},
    {"panda.language"},
    {"panda.isolation", "panda.extensible_table"},
    {"panda.addon_registry"},
    {"panda.errors"},
)
"""From the top down; a module imports only from tiers below its own, or its own package."""

SIDEWAYS = {
    ("panda.recipes", "panda.offline"),  # a layer without a model is served
    ("panda.recipes", "panda.steps"),  # a recipe is held to the contract of its step
    ("panda.offline", "panda.steps"),  # what is replied to
    ("panda.offline", "panda.retrieval"),  # without an encoder lines are close by the words that ranked them
    ("panda.offline", "panda.session"),  # what a message means beside its session
    ("panda.session", "panda.retrieval"),  # which words of a message are names
    ("panda.steps", "panda.retrieval"),  # passages that are ranked are inputs
    ("panda.steps", "panda.session"),  # a message beside its session is one, too
    ("panda.tools", "panda.steps"),  # the options that a research chooses from
    ("panda.steps", "panda.compression"),  # the documents of a request
    ("panda.models", "panda.index"),  # vectors are kept
    ("panda.recipes", "panda.compression"),  # a pack's documents are brought to size
    ("panda.retrieval", "panda.memory"),  # candidates are nodes
    ("panda.tools", "panda.memory"),  # memory.query and memory.create
    ("panda.tools", "panda.retrieval"),  # doc.search
}
"""Imports within a tier; never both ways."""

ADDONS_USED = {("view", "serving")}  # the pages are served over HTTP, too
"""Which add-on may import which other one."""

ONLY_IMPORTERS = {
    "rich": {"cli/render.py"},
    "sqlite3": {
        "index/executions.py",
        "index/full_text.py",
        "index/tables.py",
        "index/vectors.py",
        "addons/exchange/llm.py",
    },
    "llama_cpp": {"models/llama/gguf.py"},
    "trafilatura": {"web/extraction.py"},
    "lxml": {"web/markup.py"},
    "httpcore": {"web/connection.py"},
    "charset_normalizer": {"web/decoding.py"},
    "w3lib": {"web/decoding.py"},
    "protego": {"web/robots.py"},
    "re2": {"documents/json_schema.py"},
    "mcp": {"addons/serving/mcp_server.py"},
    "mcp_types": {"addons/serving/mcp_server.py"},
    "uvicorn": {"addons/serving/listening.py"},
    "starlette": {"addons/serving/synthesis_api.py", "addons/view/application.py"},
    "pypdf": {"documents/pdf.py"},
    "huggingface_hub": {"models/hub.py"},
    "markdown_it": {"documents/markdown.py", "addons/view/answer.py"},
}
"""Libraries that one module wraps; of sqlite3 each database has its own, of starlette each application."""

KNOW_THE_KIND = {
    "recipes/responders.py",  # picks the responder of a layer
    "recipes/offline_responder.py",
    "recipes/book.py",  # tells what serves a recipe
    "recipes/checks.py",  # tells what a layer cannot serve, before a turn
    "models/models_file.py",
    "models/addition.py",  # no model may be called offline
    "models/layers.py",
    "models/model_contract.py",
    "cli/recipe.py",
    "cli/compress.py",
    "app.py",  # hands the models that are set to the checks
    "actions/turn_run.py",  # tells the calls of a turn that is only planned
    "runs/ledger.py",  # the models that a run was made with
}
"""The files that may see whether a layer has a language model or is offline; none of them makes a turn."""

READERS_OF_SETTINGS = (
    "panda.addons",
    "panda.cli",
    "panda.actions",
    "panda.runs",
    "panda.app",
    "panda.trust",
)

READERS_OF_THE_ENVIRONMENT = {
    "settings.py",
    "models/llama/gguf.py",  # sets what OpenMP looks at when llama.cpp is loaded
}

THE_DOOR = "tests/api.py"
OUTSIDE = (
    "tests/script.py",
    "tests/loopback.py",
    "tests/store_files.py",
    "tests/conftest.py",
    "tests/specification",
    "tests/forgetting",
    "tests/serving",
    "tests/tools",
    "tests/view",
)
"""Tests and what they stand on that reach the program through the door alone: files, or whole folders."""
MOST_INSIDE = 0.3
"""The share of test lines that may stand in files which import the program: tables over pure functions."""
_SPLIT = ("panda", "panda.addons")
"""Packages whose members count as modules of their own where they are imported from them."""


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def part_of(module: str) -> str:
    """The package, or top-level module, that a module of ours belongs to."""
    return ".".join(module.split(".")[:2])


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, wherever in the file it does."""
    names: list[str] = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            names.append(node.module or "")
            names += (f"{node.module}.{alias.name}" for alias in node.names if node.module in _SPLIT)
    return tuple(names)


def tier_of(part: str) -> int:
    return next((number for number, tier in enumerate(TIERS) if part in tier), len(TIERS))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_downward(path: Path) -> None:
    """A module imports from lower tiers or its own package; settings only from the parts named."""
    own = part_of(module_of(path))
    ours = {part_of(module) for module in imports_of(path) if module.startswith("panda.")} - {own}
    wrong = {part for part in ours if tier_of(part) <= tier_of(own) and (own, part) not in SIDEWAYS}
    if own not in READERS_OF_SETTINGS:
        wrong |= ours & {"panda.settings"}
    assert not wrong, f"{name_of(path)} imports {sorted(wrong)}"


def test_sideways_imports_have_a_direction() -> None:
    """Among the packages of one tier there is no circle."""
    left = dict.fromkeys(part for pair in SIDEWAYS for part in pair)
    while left:
        free = [part for part in left if not any(one == part and other in left for one, other in SIDEWAYS)]
        assert free, f"a circle among {sorted(left)}"
        for part in free:
            del left[part]


def addon_of(module: str) -> str | None:
    """Return the add-on of panda/addons/ that a module belongs to; None of one of the core."""
    names = module.split(".")
    return names[2] if names[:2] == ["panda", "addons"] and len(names) > 2 else None


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_core_imports_no_addon(path: Path) -> None:
    """What is not in panda/addons/ imports nothing of it, and an add-on no other one but those listed."""
    own = addon_of(module_of(path))
    others = {addon_of(module) for module in imports_of(path)} - {None, own}
    assert {(own, other) for other in others} <= ADDONS_USED


def test_a_manifest_imports_nothing_of_its_addon() -> None:
    """The file that all commands read for `panda --help` costs next to nothing."""
    manifests = [path for path in FILES if addon_of(f"{module_of(path)}.") and path.name == "__init__.py"]
    assert manifests
    for path in manifests:
        ours = {module for module in imports_of(path) if module.startswith("panda.")}
        assert ours == {"panda.addon_registry"}, name_of(path)


def phase_modules() -> set[str]:
    """The modules of panda/phases that hold a phase: a class with a method `run` that is no Protocol."""
    return {
        module_of(path)
        for path in (PACKAGE / "phases").glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases)
        if any(isinstance(child, ast.FunctionDef) and child.name == "run" for child in node.body)
    }


def test_no_phase_imports_another() -> None:
    """Phases see earlier work only as the turn's documents: no module of a phase imports one of another."""
    phases = phase_modules()
    assert phases
    for path in (path for path in FILES if module_of(path) in phases):
        others = set(imports_of(path)) & phases
        assert not others, f"{name_of(path)} imports {sorted(others)}"


@pytest.mark.parametrize("library", ONLY_IMPORTERS)
def test_one_importer(library: str) -> None:
    """Each library that could spread is imported by one module."""
    importers = {
        name_of(path) for path in FILES if any(module.split(".")[0] == library for module in imports_of(path))
    }
    assert importers == ONLY_IMPORTERS[library]


def test_one_reader_of_the_environment() -> None:
    """Only settings.py reads the environment of the process; the exceptions are listed."""
    readers = {
        name_of(path)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
        if isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    assert readers == READERS_OF_THE_ENVIRONMENT


def test_one_catch_of_everything() -> None:
    """
    `except Exception` stands at the boundary of the command, at that of a task and at that of a worker that
    reads untrusted input; raising again, also elsewhere, is no catch.
    """
    catchers = [
        name_of(path)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ExceptHandler)
        if node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        if not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
        if ".set_exception(" not in ast.unparse(node.body[-1])
    ]
    assert catchers == ["cli/boundary.py", "isolation.py", "runs/pool.py"]


@pytest.mark.parametrize("place", OUTSIDE)
def test_what_goes_through_the_door_alone(place: str) -> None:
    """None of these files imports the program, so that it can be rebuilt behind them."""
    root = PACKAGE.parent
    files = sorted((root / place).rglob("*.py")) if (root / place).is_dir() else [root / place]
    assert files
    for path in files:
        inner = sorted(module for module in imports_of(path) if module.split(".")[0] == "panda")
        assert inner == [], f"{path.relative_to(root)} imports {inner}: go through {THE_DOOR}"


def test_most_tests_go_through_the_door() -> None:
    """At most three lines in ten stand in test files that import the program."""
    lines = {path: len(path.read_bytes().splitlines()) for path in (PACKAGE.parent / "tests").rglob("*.py")}
    inside = [path for path in lines if any(name.split(".")[0] == "panda" for name in imports_of(path))]
    assert sum(lines[path] for path in inside) <= MOST_INSIDE * sum(lines.values())


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_what_picks_or_tells_sees_what_kind_replies(path: Path) -> None:
    """No phase, prompt, check of a reply or renderer sees whether a language model replied."""
    if name_of(path) in KNOW_THE_KIND or name_of(path).startswith("offline/"):
        return
    attributes = {node.attr for node in nodes_of(path) if isinstance(node, ast.Attribute)}
    names = {node.id for node in nodes_of(path) if isinstance(node, ast.Name)}
    assert not {"is_offline", "writes", "OFFLINE"} & (attributes | names)
    assert not [name for name in imports_of(path) if part_of(name) == "panda.offline"]
