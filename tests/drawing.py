"""The drawing of who imports whom, made from the imports themselves: `python -m tests.drawing`."""

from collections.abc import Mapping
from functools import cache
from html import escape

from tests.file_map import ROOT
from tests.test_layers import FILES, imports_of, module_of, part_of

TARGET = ROOT / "docs" / "structure.svg"
ROLES = {
    "cli": "commands, output, exit codes",
    "view": "pages over the store",
    "serving": "HTTP and MCP",
    "actions": "what commands and servers do",
    "batches": "many queries, each run once",
    "replays": "saved turns run again, compared",
    "forget": "what was told, taken out",
    "app": "puts the parts together",
    "trust": "what may reach out",
    "settings": "options, environment, panda.toml",
    "pipeline": "runs the phases in order",
    "evals": "labelled cases, fits",
    "history": "conversations, exported, imported",
    "phases": "the eight phases of a turn",
    "tools": "what plans may call",
    "recipes": "model calls and their budgets",
    "choosing": "choices: scorers and heads",
    "compression": "documents within budgets",
    "retrieval": "candidates from the index",
    "memory": "facts, nodes, the gathered context",
    "session": "what a conversation carries",
    "models": "GGUF files and servers",
    "storage": "turns, files, index, logs",
    "web": "pages, searched and read",
    "engines": "processes that run tasks",
    "documents": "context.md, memory files, evidence",
    "language": "English, all of it",
    "errors": "every exception",
}
"""What each package or top-level module is for."""
WIDTH, HEIGHT, GAP, BELOW = 190, 40, 14, 40


def dependencies() -> dict[str, set[str]]:
    """What each part of the package imports, without what follows from its other imports."""
    found: dict[str, set[str]] = {name: set() for name in ROLES}
    for path in FILES:
        own = part_of(module_of(path)).removeprefix("panda.")
        others = {part_of(one).removeprefix("panda.") for one in imports_of(path) if one.startswith("panda.")}
        if own in found:
            found[own] |= (others & found.keys()) - {own}

    @cache
    def reached(name: str) -> frozenset[str]:
        return frozenset(found[name]).union(*map(reached, found[name]))

    return {
        name: {one for one in own if not any(one in reached(other) for other in own - {one})}
        for name, own in found.items()
    }


def rows(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The parts from the top down, each below all that import it."""

    @cache
    def depth(name: str) -> int:
        return max((depth(other) + 1 for other, own in imports.items() if name in own), default=0)

    return [[name for name in imports if depth(name) == row] for row in range(max(map(depth, imports)) + 1)]


def drawing() -> str:
    """The SVG: a box a part, a line from each to what it imports."""
    imports = dependencies()
    grid = rows(imports)
    width = max(len(row) for row in grid) * (WIDTH + GAP) + GAP
    place: dict[str, tuple[int, int]] = {}
    for y, row in enumerate(grid):
        left = (width - len(row) * (WIDTH + GAP) + GAP) // 2
        place |= {name: (left + x * (WIDTH + GAP), GAP + y * (HEIGHT + BELOW)) for x, name in enumerate(row)}
    lines = [
        f'<line x1="{place[name][0] + WIDTH // 2}" y1="{place[name][1] + HEIGHT}"'
        f' x2="{place[other][0] + WIDTH // 2}" y2="{place[other][1]}"/>'
        for name in imports
        for other in sorted(imports[name])
    ]
    boxes = [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>'
        f'<text x="{x + WIDTH // 2}" y="{y + 17}" class="name">{name}</text>'
        f'<text x="{x + WIDTH // 2}" y="{y + 32}">{escape(ROLES[name])}</text>'
        for name, (x, y) in place.items()
    ]
    height = len(grid) * (HEIGHT + BELOW)
    style = (
        "line{stroke:#9aa5b1}rect{fill:#f5f7fa;stroke:#52606d}"
        "text{font:10px sans-serif;text-anchor:middle;fill:#3e4c59}"
        ".name{font:bold 13px sans-serif;fill:#102a43}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
            f"<style>{style}</style>",
            '<rect width="100%" height="100%" style="fill:white;stroke:none"/>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(drawing(), encoding="utf-8")
