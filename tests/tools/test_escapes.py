"""Attempts to get out of a project, or to plant what other programs obey, through the tools of code mode."""

import ctypes
import json
import os
import threading
from pathlib import Path

import pytest

from tests.api import Turn
from tests.script import Script
from tests.tools.tool_project import ToolProject

NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
"""Names of files: what leads outside, what others obey, what programs look for, ordinary ones."""
INSIDE = "inside\n"
OUTSIDE = "a secret of somebody else\n"


@pytest.fixture
def project(code: ToolProject, tmp_path: Path) -> ToolProject:
    """A project with links to what lies beside it."""
    home = code.home
    other = tmp_path / "other"
    (home / "src" / "deep").mkdir(parents=True)
    (other / "deep").mkdir(parents=True)
    (home / "src" / "a.txt").write_text(INSIDE, encoding="utf-8")
    for path in (other / "a.txt", other / "deep" / "a.txt"):
        path.write_text(OUTSIDE, encoding="utf-8")
    (home / "file").symlink_to(other / "a.txt")
    (home / "folder").symlink_to(other)
    (home / "back").symlink_to(home / "src")
    (home / "circle").symlink_to("circle")
    (home / "nowhere").symlink_to(other / "new.txt")
    (home / "src" / "up").symlink_to("../..")
    (home / "src" / "root").symlink_to("/")
    os.mkfifo(home / "pipe")
    return code


def everything(project: ToolProject, *names: str) -> dict[str, bytes | str]:
    """All files and links of the project and beside it, the store apart."""
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for name in names or ("project", "other")
        for path in (project.home.parent / name).rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("path", NAMES["outside"], ids=ascii)
def test_no_way_out(project: ToolProject, path: str) -> None:
    """A path that leads outside, passes a link, or is no file is neither read nor written nor listed."""
    before = everything(project)
    for tool, arguments in (
        ("file.read", {}),
        ("file.write", {"content": "x"}),
        ("file.edit", {"old": "secret", "new": "x"}),
    ):
        result = project.use(tool, path=path, **arguments)
        assert (result["status"], result["data"]) == ("error", None), tool
        assert OUTSIDE.strip() not in result["error"]
    for tool, arguments in (("file.list", {}), ("file.search", {"text": "secret"})):
        data = str(project.use(tool, directory=path, **arguments)["data"])
        assert "other" not in data
        assert OUTSIDE.strip() not in data
    assert everything(project) == before


@pytest.mark.parametrize(
    "name",
    [
        *(
            ".git",
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
            ".git/objects/info/alternates",
        ),
        *(".GIT/config", ".Git/config", ".git./config", ".git /config", ".git::$INDEX_ALLOCATION/config"),
        *("git~1/config", "GIT~1/config", ".g\u200cit/config", ".gi\ufefft/config", "\uff0egit/config"),
        *(".ｇｉｔ/config", ".g\u0131\u0307t/../.git/config", ".gıt/../.GIT/x"),
        *(
            "HEAD",
            "head",
            ".husky/pre-commit",
            ".pre-commit-config.yaml",
            "panda-system-docs/users/a/facts.md",
            ".gitattributes",
            ".GitAttributes",
            ".gitmodules",
            ".gitconfig",
            ".hg/hgrc",
            ".svn/x",
        ),
        *("panda.toml", "Panda.TOML", "panda.toml ", "models.yaml", "MODELS.YAML", "models.yaml."),
        *(
            "recipes/pipeline/x.yaml",
            "Recipes/x.yml",
            "recipes/fits/x.json",
            "prompts/a/b.md",
            "PROMPTS/b.txt",
        ),
        *("Makefile", "makefile", "GNUmakefile", "MAKEFILE", "rules.mk"),
        *("setup.py", "setup.cfg", "pyproject.toml", "pip.conf", "pip.ini", "requirements.txt"),
        *("requirements-dev.txt", "constraints.txt", ".envrc", ".env", ".direnvrc", ".direnv/bin/x"),
        *(".venv/bin/git", "pyvenv.cfg", "x.pth", "sitecustomize.py"),
    ],
    ids=ascii,
)
def test_what_others_obey_is_guarded(project: ToolProject, name: str) -> None:
    """
    Files that git, pip, make, direnv or panda obey are not written, at any depth and however they are
    spelled.
    """
    before = everything(project)
    for folder in ("", "sub/", "a/b/c/"):
        result = project.use("file.write", path=folder + name, content="x")
        assert (result["status"], result["data"]) == ("error", None)
    assert everything(project) == before
    assert not (project.home / "sub").exists()


LOOKED_FOR = (
    *(".vscode/tasks.json", ".mcp.json", ".claude/settings.json", ".cursor/mcp.json", ".exrc", ".npmrc"),
    *(".github/workflows/ci.yml", ".devcontainer/devcontainer.json", ".cargo/config.toml", "sub/.idea/x"),
    *("lefthook.yml", "package.json", "Jenkinsfile", "web/package.json", "compose.yaml", "\uff0enpmrc"),
    *(".gitignore", "bitbucket-pipelines.yml", "ci/buildspec.yml", "appveyor.yml", "cloudbuild.yaml"),
    *("codemagic.yaml", "wercker.yml", "AGENTS.md", "docs/CLAUDE.md", "GEMINI.md", "agents.md"),
    *("sitecustomize/__init__.py", "src/usercustomize/__init__.py", "lib/sitecustomize.pyc", "pylintrc"),
    *("mypy.ini", "pytest.ini", "pom.xml", "build.xml", "binding.gyp", "Cargo.toml", "crates/a/cargo.toml"),
    *("composer.json", "settings.gradle.kts", "gradle/wrapper/a.properties", "NuGet.config", "SConstruct"),
    *("WORKSPACE", "MODULE.bazel", "mix.exs", "meson.build", "configure", "flake.nix", "shell.nix"),
    *("Containerfile", "uv.toml", "poetry.toml", "pdm.toml", "pixi.toml", "Pipfile", "Gemfile", "mise.toml"),
    *("devbox.json", "ansible.cfg", "_vimrc", "go.mod", "yarn.lock", "vite.config.ts", "hooks/post-checkout"),
    *("Cargo.toml.", "\uff23argo.toml", "Cargo\u200b.toml", "MAKEFI~1", "node_modules/a.js"),
    "AGENTS.md::$DATA",
)


@pytest.mark.parametrize("name", NAMES["looked for"], ids=ascii)
def test_what_programs_look_for_is_written_only_with_trust(project: ToolProject, name: str) -> None:
    """Neither if it is there nor if the user names it; the error says why, and what allows it."""
    arguments = {"path": name, "content": "x"}
    refusals = [project.use("file.write", **arguments)["error"]]
    assert not (project.home / name).exists()
    project.write(name, "before")
    refusals.append(project.use("file.write", **arguments)["error"])
    assert (project.home / name).read_text() == "before"
    for refusal in refusals:
        assert "programs look for a file of that name" in refusal
        assert "or run the command with --trust" in refusal
    assert project.use("file.write", "--trust", **arguments)["status"] == "success"


DONE = {"tool": "done"}


def turn_that_writes(project: ToolProject, query: str, *paths: str, option: str = "--no-stdin") -> Turn:
    """A turn of code mode in which the model writes files."""
    calls = [{"tool": "file.write", "arguments": {"path": path, "content": "x"}} for path in paths]
    script = Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner={"tools": [], "next_step": "coordinator"},
        coordinator=[{"calls": calls[:4]}, {"calls": calls[4:]} if calls[4:] else DONE, DONE],
        answer={"items": []},
    )
    return project.turn(query, "--mode", "code", option, script=script)


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("Tidy up the notes, please. Change src/a.txt.", ["notes.txt", "src/new/helper.sh"]),
        ("Write app.pyc and xapp.py and lib/app.py.txt", ["lib/app.py"]),
        ("Write lib/app.py and my-app.py, and build_it", ["app.py", "lib/build_it"]),
        ("Why does import json fail?", ["json.py", "Notes.txt"]),
    ],
)
def test_a_new_file_is_made_only_if_the_query_names_it(
    project: ToolProject, query: str, paths: list[str]
) -> None:
    """A file that is not there and that nobody asked for is refused; the error says how to allow it."""
    for step in turn_that_writes(project, query, *paths).steps:
        assert step["status"] == "error"
        assert "the query does not name it" in step["error"]
        assert "name the file in the query, or run the command with --trust" in step["error"]
    assert not [path for path in paths if (project.home / path).exists()]
    for ended in (
        turn_that_writes(project, f"Write {' and '.join(paths)}.", *paths),
        turn_that_writes(project, "Tidy up.", *(f"t/{path}" for path in paths), option="--trust"),
    ):
        assert [step["status"] for step in ended.steps] == ["success"] * len(paths)


def test_what_is_there_or_named_is_written(project: ToolProject) -> None:
    """A file that exists is written without being named, and one that is named however the user marks it."""
    query = (
        'Please write `app.py`, ./tool.py, lib/build_it, which builds it, and "my notes.md"; add a load.py'
        " to lib. Schreibe auch gro\u0308\u00dfe.txt"
    )
    paths = [
        "src/a.txt",
        "app.py",
        "tool.py",
        "lib/build_it",
        "my notes.md",
        "lib/load.py",
        "gr\u00f6\u00dfe.txt",
    ]
    turn = turn_that_writes(project, query, *paths)
    assert [step["status"] for step in turn.steps] == ["success"] * len(paths)
    assert {(project.home / path).read_text(encoding="utf-8") for path in paths} == {"x"}


@pytest.mark.parametrize("name", [".git/config", ".hg/hgrc", "panda.toml", "HEAD", "recipes/x.yaml"])
def test_trust_opens_no_repository(project: ToolProject, name: str) -> None:
    """Files of git or of panda itself are changed by hand alone."""
    assert project.use("file.write", "--trust", path=name, content="x")["status"] == "error"
    assert not (project.home / name).exists()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "app.py",
            "gitconfig.md",
            "src/git/config",
            "objects/x.py",
            "config",
            "refs/heads/main",
            "header.h",
        ),
        *("heads", "src/recipes/views.py", "src/prompts/load.ts", "src/recipes.md"),
        *("makefile.py", "docs/Makefile.md", "requirements.md", "environment.yml", "tests/conftest.py"),
        *("my_models.yaml", "models.yml", "hooks/post.py", "info/index.html", "größe/straße.txt"),
    ],
)
def test_ordinary_files_are_free(project: ToolProject, name: str) -> None:
    """Source files are written, also those whose names only resemble guarded ones."""
    assert project.use("file.write", path=name, content="x")["status"] == "success"
    assert (project.home / name).read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize(
    "path",
    ["lib/config", "lib/CONFIG", "lib/objects/x", "lib/refs/heads/main", "lib/hooks/x", "lib/commondir"],
)
def test_half_a_repository_is_not_completed(project: ToolProject, path: str) -> None:
    """Beside a file HEAD that is there already, nothing is written that would make a repository."""
    (project.home / "lib").mkdir()
    (project.home / "lib" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    assert project.use("file.write", path=path, content="x")["status"] == "error"
    assert project.use("file.write", path="lib/app.py", content="x")["status"] == "success"


def test_virtual_environment_of_any_name(project: ToolProject) -> None:
    """Nothing is written below a directory that is a virtual environment."""
    (project.home / "tools" / "bin").mkdir(parents=True)
    (project.home / "tools" / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    assert project.use("file.write", path="tools/lib/site.py", content="x")["status"] == "error"


def test_guarded_files_are_read(project: ToolProject) -> None:
    """A guarded file can be read, but neither edited nor replaced."""
    (project.home / "Makefile").write_text("all:\n", encoding="utf-8")
    assert project.use("file.read", path="Makefile")["data"]["content"] == "all:"
    assert project.use("file.edit", path="Makefile", old="all", new="x")["status"] == "error"
    assert (project.home / "Makefile").read_text(encoding="utf-8") == "all:\n"


def test_store_is_guarded(project: ToolProject) -> None:
    """The store is neither written nor listed, by whatever name."""
    for name in ("panda-system-docs", "kept"):
        path = f"{name}/users/ann/preferences.md"
        project.write(path, "x")
        own = {"PANDA_ROOT": str(project.home / name)}
        assert project.use("file.write", environ=own, path=path, content="y")["status"] == "error"
        assert path not in project.use("file.list", environ=own)["data"]["files"]


def test_dry_run_guards_alike(project: ToolProject) -> None:
    """A dry run refuses what a run refuses, and writes nothing."""
    before = everything(project)
    for path in ("HEAD", "sub/panda.toml", "folder/new.txt", "file"):
        assert project.use("file.write", "--dry-run", path=path, content="x")["status"] == "error"
    assert project.use("file.write", "--dry-run", path="new.txt", content="x")["status"] == "success"
    assert everything(project) == before


def test_hard_link_is_cut(project: ToolProject) -> None:
    """A file that has another name outside is replaced, not written into."""
    os.link(project.home.parent / "other" / "a.txt", project.home / "linked.txt")
    assert project.use("file.write", path="linked.txt", content="x")["status"] == "success"
    assert (project.home.parent / "other" / "a.txt").read_text(encoding="utf-8") == OUTSIDE


@pytest.mark.parametrize("swapped", ["a folder", "a file"])
def test_link_put_in_between(project: ToolProject, swapped: str) -> None:
    """While somebody swaps a folder, or the file, for a link and back, nothing outside is read or written."""
    folder = project.home / "src"
    place = folder if swapped == "a folder" else folder / "a.txt"
    link = project.home / "link"
    spare = project.home / "spare"
    target = project.home.parent / "other" / ("" if swapped == "a folder" else "a.txt")
    link.symlink_to(target)
    stop = threading.Event()

    def swap() -> None:
        here = os.fsencode(place)
        there = os.fsencode(link)
        exchange = ctypes.CDLL(None).renameat2
        while not stop.is_set():
            exchange(-100, here, -100, there, 2)

    thread = threading.Thread(target=swap)
    before = everything(project, "other")
    thread.start()
    outcomes = set()
    try:
        for number in range(2000):
            read = project.use("file.read", path="src/a.txt")
            search = project.use("file.search", text="secret")
            write = project.use("file.write", path="src/a.txt", content=f"{INSIDE}{number}")
            outcomes |= {read["status"], write["status"]}
            assert OUTSIDE.strip() not in f"{read['data']}{search['data']}"
            if number > 40 and len(outcomes) == 2:
                break
            is_file = swapped == "a file"
            if is_file and not place.is_symlink() and not link.is_symlink():  # a write has taken its place
                spare.symlink_to(target)
                spare.replace(link)
    finally:
        stop.set()
        thread.join()
    assert everything(project, "other") == before
    assert outcomes == {"success", "error"}


def test_hostile_names_are_listed(project: ToolProject) -> None:
    """Files with names that are no text are listed in one line each, and do no harm to the others."""
    for name in (b"caf\xe9.txt", b"a\nb.txt", b"\x1b[2J.txt"):
        (project.home / os.fsdecode(name)).write_text("needle", encoding="utf-8")
    (project.home / "plain.txt").write_text("needle", encoding="utf-8")
    listed = project.use("file.list")["data"]["files"]
    assert {"caf\\xe9.txt", "a\\x0ab.txt", "\\x1b[2J.txt", "plain.txt"} <= set(listed)
    matches = project.use("file.search", text="needle")["data"]["matches"]
    assert [match["path"] for match in matches] == ["plain.txt"]
