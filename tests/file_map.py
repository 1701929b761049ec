"""docs/files.md, made from the first line of each module's docstring: `python -m tests.file_map`."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "files.md"


def file_map() -> str:
    """The page: one line a module of the package that says something, by its folder."""
    lines = ["# The files of panda/", ""]
    folder = ROOT / "panda"
    for path in sorted((ROOT / "panda").rglob("*.py"), key=lambda path: (path.parent, path.name)):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if docstring and path.name != "__init__.py":
            if path.parent != folder:
                folder = path.parent
                lines += ["", f"## {folder.relative_to(ROOT / 'panda').as_posix()}", ""]
            lines.append(f"- `{path.relative_to(ROOT).as_posix()}`: {docstring.splitlines()[0]}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(file_map(), encoding="utf-8")
