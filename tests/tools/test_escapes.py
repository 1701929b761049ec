"""Attempts to get out of a project, or to plant what other programs obey, through the tools of code mode."""

import ctypes
import os
import threading
from pathlib import Path

import pytest

from panda.tools.contract import ToolResult
from panda.tools.project import Project
from panda.tools.table import run_tool
from tests.tools.test_limits import context_of

INSIDE, OUTSIDE = "inside\n", "a secret of somebody else\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with links to what lies beside it."""
    found, other = tmp_path / "project", tmp_path / "other"
    (found / "src" / "deep").mkdir(parents=True)
    (other / "deep").mkdir(parents=True)
    (found / "src" / "a.txt").write_text(INSIDE, encoding="utf-8")
    for path in (other / "a.txt", other / "deep" / "a.txt"):
        path.write_text(OUTSIDE, encoding="utf-8")
    (found / "file").symlink_to(other / "a.txt")
    (found / "folder").symlink_to(other)
    (found / "back").symlink_to(found / "src")
    (found / "circle").symlink_to("circle")
    (found / "nowhere").symlink_to(other / "new.txt")
    (found / "src" / "up").symlink_to("../..")
    (found / "src" / "root").symlink_to("/")
    os.mkfifo(found / "pipe")
    return found


def use(project: Path, name: str, **arguments: object) -> ToolResult:
    """What a tool gives in the project; trusted=True as with --trust, query="" as if no file was named."""
    trusted = arguments.pop("trusted", False) is True
    query = str(arguments.pop("query", f"Write {arguments.get('path')}, please."))
    guarded, environ = (project.parent / "store", project / "panda-system-docs"), {"PATH": os.environ["PATH"]}
    given = Project(project, guarded, environ=environ, query=query, trusted=trusted)
    return run_tool(name, arguments, context_of(project.parent, project=given, limit_seconds=20))


def everything(root: Path) -> dict[str, bytes | str]:
    """All files and links below a directory."""
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize(
    "path",
    [
        *(
            "..",
            "../other/a.txt",
            "src/../../other/a.txt",
            "./../other/a.txt",
            "src/deep/../../../other/a.txt",
        ),
        *("/etc/passwd", "//etc/passwd", "~/a.txt", "~root/a.txt", "..\\other\\a.txt", "C:\\a.txt"),
        *("file", "folder/a.txt", "folder/deep/a.txt", "folder/../other/a.txt", "folder/new.txt", "nowhere"),
        *("back/a.txt", "src/up/other/a.txt", "src/root/etc/passwd", "circle", "circle/a.txt", "src/a.txt/x"),
        *(
            "a\0b",
            "a\nb",
            "a\rb",
            "a\x1b[2Jb",
            "a\u2028b",
            "\udcff.txt",
            "\ud800",
            "x" * 300,
        ),
        *("pipe", "src", ".", "./", "src/deep"),
    ],
    ids=ascii,
)
def test_no_way_out(project: Path, path: str) -> None:
    """What leads outside, passes a link, or is no file is neither read nor written nor listed."""
    before = everything(project.parent)
    for name, arguments in (
        ("file.read", {"path": path}),
        ("file.write", {"path": path, "content": "x"}),
        ("file.edit", {"path": path, "old": "secret", "new": "x"}),
    ):
        result = use(project, name, **arguments)
        assert (result.status, result.data) == ("error", None), name
        assert OUTSIDE.strip() not in str(result.error)
    for name, arguments in (
        ("file.list", {"directory": path}),
        ("file.search", {"text": "secret", "directory": path}),
    ):
        result = use(project, name, **arguments)
        assert "other" not in str(result.data)
        assert OUTSIDE.strip() not in str(result.data)
    assert everything(project.parent) == before


@pytest.mark.parametrize("folder", ["", "sub/", "a/b/c/"])
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
def test_what_others_obey_is_guarded(project: Path, folder: str, name: str) -> None:
    """What git, pip, make, direnv or panda obey is not written, at any depth and however it is spelled."""
    before = everything(project.parent)
    result = use(project, "file.write", path=folder + name, content="x")
    assert (result.status, result.data) == ("error", None)
    assert everything(project.parent) == before
    assert not (project / "sub").exists()


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


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "there"])
@pytest.mark.parametrize("name", LOOKED_FOR, ids=ascii)
def test_what_programs_look_for_is_written_only_with_trust(
    project: Path, name: str, *, is_there: bool
) -> None:
    """Neither if it is there nor if the query names it; the error says why, and what allows it."""
    if is_there:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("before", encoding="utf-8")
    before = everything(project.parent)
    refused = use(project, "file.write", path=name, content="x")
    assert (refused.status, everything(project.parent)) == ("error", before)
    assert "programs look for a file of that name" in str(refused.error)
    assert "or run the command with --trust" in str(refused.error)
    assert use(project, "file.write", trusted=True, path=name, content="x").status == "success"


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("notes.txt", "Tidy up the notes, please."),
        ("lib/app.py", "Write app.pyc and xapp.py and lib/app.py.txt"),
        ("app.py", "Write lib/app.py and my-app.py"),
        ("lib/build_it", "build_it"),
        ("Notes.txt", ""),
        ("json.py", "Why does import json fail?"),
        ("src/new/helper.sh", "Change src/a.txt"),
    ],
)
def test_a_new_file_is_made_only_if_the_query_names_it(project: Path, path: str, query: str) -> None:
    """A file that is not there and that nobody asked for is refused; the error says how to allow it."""
    refused = use(project, "file.write", path=path, content="x", query=query)
    assert (refused.status, (project / path).exists()) == ("error", False)
    assert "the query does not name it" in str(refused.error)
    assert "name the file in the query, or run the command with --trust" in str(refused.error)
    assert use(project, "file.write", path=path, content="x", query=f"Write {path}.").status == "success"
    assert (
        use(project, "file.write", path=f"t/{path}", content="x", query="", trusted=True).status == "success"
    )


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("src/a.txt", "Tidy up."),
        ("app.py", "Please write `app.py`."),
        ("app.py", "Write ./app.py"),
        ("lib/app.py", "Add an app.py to lib"),
        ("my notes.md", 'Create "my notes.md"'),
        ("gr\u00f6\u00dfe.txt", "Schreibe gro\u0308\u00dfe.txt"),
        ("lib/build_it", "Write lib/build_it, which builds it"),
    ],
)
def test_what_is_there_or_named_is_written(project: Path, path: str, query: str) -> None:
    """A file that exists is written without being named, and one that is named however the user marks it."""
    assert use(project, "file.write", path=path, content="x", query=query).status == "success"
    assert (project / path).read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("name", [".git/config", ".hg/hgrc", "panda.toml", "HEAD", "recipes/x.yaml"])
def test_trust_opens_no_repository(project: Path, name: str) -> None:
    """What belongs to git or to panda itself is changed by hand alone."""
    assert use(project, "file.write", trusted=True, path=name, content="x").status == "error"
    assert not (project / name).exists()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "app.py",
            "gitconfig.md",
            "src/git/config",
            "objects/x.py",
            "config",
        ),
        *(
            "refs/heads/main",
            "header.h",
            "heads",
            "src/recipes/views.py",
            "src/prompts/load.ts",
            "src/recipes.md",
        ),
        *("makefile.py", "docs/Makefile.md", "requirements.md", "environment.yml", "tests/conftest.py"),
        *("my_models.yaml", "models.yml", "hooks/post.py", "info/index.html", "größe/straße.txt"),
    ],
)
def test_ordinary_files_are_free(project: Path, name: str) -> None:
    """Source files are written, also those whose names only resemble guarded ones."""
    assert use(project, "file.write", path=name, content="x").status == "success"
    assert (project / name).read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize(
    "path",
    ["lib/config", "lib/CONFIG", "lib/objects/x", "lib/refs/heads/main", "lib/hooks/x", "lib/commondir"],
)
def test_half_a_repository_is_not_completed(project: Path, path: str) -> None:
    """Beside a file HEAD that is there already, nothing is written that would make a repository."""
    (project / "lib").mkdir()
    (project / "lib" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    assert use(project, "file.write", path=path, content="x").status == "error"
    assert use(project, "file.write", path="lib/app.py", content="x").status == "success"


def test_virtual_environment_of_any_name(project: Path) -> None:
    """Nothing is written below a directory that is a virtual environment."""
    (project / "tools" / "bin").mkdir(parents=True)
    (project / "tools" / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    assert use(project, "file.write", path="tools/lib/site.py", content="x").status == "error"


def test_guarded_files_are_read(project: Path) -> None:
    """What is guarded can be read, but neither edited nor replaced."""
    (project / "Makefile").write_text("all:\n", encoding="utf-8")
    assert use(project, "file.read", path="Makefile").data["content"] == "all:"
    assert use(project, "file.edit", path="Makefile", old="all", new="x").status == "error"
    assert (project / "Makefile").read_text(encoding="utf-8") == "all:\n"


def test_store_is_guarded(project: Path) -> None:
    """The store is neither written nor listed."""
    (project / "panda-system-docs" / "users" / "ann").mkdir(parents=True)
    path = "panda-system-docs/users/ann/preferences.md"
    (project / path).write_text("x", encoding="utf-8")
    assert use(project, "file.write", path=path, content="y").status == "error"
    assert path not in use(project, "file.list").data["files"]


def test_dry_run_guards_alike(project: Path) -> None:
    """A dry run refuses what a run refuses."""
    given = Project(project, dry=True, query="HEAD, sub/panda.toml, folder/new.txt and file")
    context = context_of(project.parent, project=given)
    for path in ("HEAD", "sub/panda.toml", "folder/new.txt", "file"):
        assert run_tool("file.write", {"path": path, "content": "x"}, context).status == "error"
    assert given.overlay == {}


def test_hard_link_is_cut(project: Path) -> None:
    """A file that has another name outside is replaced, not written into."""
    os.link(project.parent / "other" / "a.txt", project / "linked.txt")
    assert use(project, "file.write", path="linked.txt", content="x").status == "success"
    assert (project.parent / "other" / "a.txt").read_text(encoding="utf-8") == OUTSIDE


@pytest.mark.parametrize("swapped", ["a folder", "a file"])
def test_link_put_in_between(project: Path, swapped: str) -> None:
    """While somebody swaps a folder, or the file, for a link and back, nothing outside is read or written."""
    place = project / "src" if swapped == "a folder" else project / "src" / "a.txt"
    link, spare = project / "link", project / "spare"
    target = project.parent / "other" / ("" if swapped == "a folder" else "a.txt")
    link.symlink_to(target)
    stop = threading.Event()

    def swap() -> None:
        here, there, exchange = os.fsencode(place), os.fsencode(link), ctypes.CDLL(None).renameat2
        while not stop.is_set():
            exchange(-100, here, -100, there, 2)

    thread = threading.Thread(target=swap)
    before = everything(project.parent / "other")
    given = Project(project)
    context = context_of(project.parent, project=given)
    thread.start()
    outcomes = set()
    try:
        for number in range(5000):
            read = run_tool("file.read", {"path": "src/a.txt"}, context)
            found = run_tool("file.search", {"text": "secret"}, context)
            write = run_tool("file.write", {"path": "src/a.txt", "content": f"{INSIDE}{number}"}, context)
            outcomes |= {read.status, write.status}
            assert OUTSIDE.strip() not in f"{read.data}{found.data}"
            if number > 100 and len(outcomes) == 2:
                break
            is_file = swapped == "a file"
            if is_file and not place.is_symlink() and not link.is_symlink():  # a write has taken its place
                spare.symlink_to(target)
                spare.replace(link)
    finally:
        stop.set()
        thread.join()
    assert everything(project.parent / "other") == before
    assert outcomes == {"success", "error"}


def test_hostile_names_are_listed(project: Path) -> None:
    """Files with names that are no text are listed in one line each, and do no harm to the others."""
    for name in (b"caf\xe9.txt", b"a\nb.txt", b"\x1b[2J.txt"):
        (project / os.fsdecode(name)).write_text("needle", encoding="utf-8")
    (project / "plain.txt").write_text("needle", encoding="utf-8")
    listed = use(project, "file.list").data["files"]
    assert {"caf\\xe9.txt", "a\\x0ab.txt", "\\x1b[2J.txt", "plain.txt"} <= set(listed)
    found = use(project, "file.search", text="needle").data["matches"]
    assert [match["path"] for match in found] == ["plain.txt"]


def test_text_that_is_no_unicode(project: Path) -> None:
    """Half a character in a text is an error, and nothing is written."""
    result = use(project, "file.write", path="a.txt", content="\ud800")
    assert "halves of characters" in str(result.error)
    assert not (project / "a.txt").exists()
