"""The README's file map, made from the first line of each module's docstring: `python -m tests.file_map`."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- file map -->", "<!-- end of file map -->"


def file_map() -> str:
    """One line a module of the package that says something."""
    lines = []
    for path in sorted((ROOT / "panda").rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if docstring and path.name != "__init__.py":
            lines.append(f"- `{path.relative_to(ROOT).as_posix()}`: {docstring.splitlines()[0]}")
    return "\n".join(lines)


def with_map(readme: str) -> str:
    """The README with its map as it must be."""
    before, _, rest = readme.partition(BEGIN)
    return f"{before}{BEGIN}\n{file_map()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    target = ROOT / "README.md"
    target.write_text(with_map(target.read_text(encoding="utf-8")), encoding="utf-8")
