"""The answer as a model writes it and as the user reads it: paragraphs, lists, tables, marks, sources."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from panda.documents.safe_text import escape_marks, escape_quote
from panda.store.reason import Reason
from panda.store.records import GatheredItem, Line

_MARK = re.compile(r"[ \t]?\[(\d{1,3}(?:[ ]*,[ ]*\d{1,3})*)\](?!\()")
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})")
_CODE_INDENT = ("    ", "\t")
MOST_ITEMS = 12  # lines of one list that are quoted
_ALIKE = 0.8


def cited_paragraphs(text: str, node_ids: Sequence[str]) -> list[GatheredItem]:
    """
    The paragraphs, lists, tables and code blocks of a markdown answer without their marks `[n]`, each with
    the nodes that these name: `[1]` is the first of *node_ids*. One that marks none of them cites all, and so
    must be held by them.

    >>> found = cited_paragraphs("It costs $697 [1].\\n\\nIt is light.", ["visit:a", "turn:2"])
    >>> [(one.text, one.node_ids) for one in found]
    [('It costs $697.', ('visit:a',)), ('It is light.', ('visit:a', 'turn:2'))]
    """
    items = []
    for part in _paragraphs(text):
        lines = part.split("\n")
        code = _code_lines(lines)
        prose = "\n".join(line for at, line in enumerate(lines) if at not in code)
        marked = [int(n) for marks in _MARK.findall(prose) for n in re.findall(r"\d+", marks)]
        cited = tuple(dict.fromkeys(node_ids[n - 1] for n in marked if 0 < n <= len(node_ids)))
        bare = [line if at in code else _MARK.sub("", line) for at, line in enumerate(lines)]
        plain = "\n".join(bare).strip("\n").rstrip()
        if plain.strip() and node_ids:
            items.append(GatheredItem(plain, cited or tuple(node_ids)))
    return items


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    written = text.strip("\n").rstrip().splitlines()
    code = _code_lines(written)
    for at, line in enumerate(written):
        if line.strip() or at in code:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _code_lines(lines: Sequence[str], *, is_closed: bool = False) -> set[int]:
    """
    Return which lines are fenced code, at any indentation, with the fences. What is left open goes
    to the end, or with *is_closed* is none.
    """
    code: set[int] = set()
    fence = ""
    opened = len(lines)
    for at, line in enumerate(lines):
        match = _FENCE.match(line)
        if fence or match:
            code.add(at)
        if match and not fence:
            fence = match["fence"]
            opened = at
        elif match and match["fence"].startswith(fence) and not line[match.end() :].strip():
            fence = ""
    if fence and is_closed:
        return {at for at in code if at < opened}
    return code


def list_name(line: Line) -> str:
    """The list that a line belongs to or introduces, among those of all nodes; "" if there is none."""
    own = line.list_id or line.heads
    return f"{line.node} {own}" if own else ""


def without_doubles(lines: Sequence[Line]) -> list[Line]:
    """The lines without those that say nearly the same as an earlier one, all numbers and names included."""
    distinct: list[Line] = []
    for line in lines:
        if not any(_is_double(line.text.split(), other.text.split()) for other in distinct):
            distinct.append(line)
    return distinct


def _is_double(words: Sequence[str], others: Sequence[str]) -> bool:
    mine, theirs = ({word.casefold() for word in side} for side in (words, others))
    differing = mine ^ theirs
    tells = any(
        word != word.lower() or not word.isalpha()
        for word in (*words, *others)
        if word.casefold() in differing
    )
    return not tells and len(mine & theirs) / len(mine | theirs) >= _ALIKE


def render_answer(
    lines: Sequence[Line],
    places: Mapping[str, str],
    *,
    left_out: Mapping[str, int],
    lead: Sequence[str] = (),
    leads: Mapping[GatheredItem, str],
    line_numbers: Mapping[str, Sequence[int]] | None = None,
) -> str:
    """
    The answer as the user reads it: each line with its marks and what leads in (*leads*), then the list of
    sources, *places* by node, and what was computed. Neighbours of one list stand as one; *left_out* tells
    how many of a list are not quoted, *line_numbers* by node where in its file the lines stand.
    """
    numbers = {node_id: n for n, node_id in enumerate(places, 1)}
    blocks: list[str] = []
    names = ["" if line.item in leads else _group_name(line) for line in lines]
    for name, group in groupby(zip(names, lines, strict=True), key=lambda pair: pair[0]):
        together = [line for _, line in group]
        marks = ["".join(f" [{numbers[node_id]}]" for node_id in line.node_ids) for line in together]
        if name == Reason.COMPARED and len(together) > 1:
            blocks += [_comparison(together, marks)]
        elif name and (len(together) > 1 or left_out.get(name)):
            blocks += _list_blocks(together, marks)
            if left_out.get(name):
                blocks[-1] += f"\n\n… and {left_out[name]} more in {places[together[0].node]}"
        else:
            pairs = zip(together, marks, strict=True)
            blocks += [f"{leads.get(line.item, '')}{_marked(line.text, mark)}" for line, mark in pairs]
    at = {node_id: f":{','.join(map(str, own))}" for node_id, own in (line_numbers or {}).items()}
    sources = [
        f"- [{numbers[node_id]}] {node_id}, {place}{at.get(node_id, '')}" for node_id, place in places.items()
    ]
    figures = dict.fromkeys((part.value, part.expression) for line in lines for part in line.computed)
    computed = [f"- {value} = {expression}" for value, expression in figures]
    cited = ["Sources:\n" + "\n".join([*sources, *computed])] if sources else []
    return "\n\n".join([*lead, *blocks, *cited])


def _group_name(line: Line) -> str:
    is_field = Reason.COMPARED in line.why and line.text.startswith(f"{line.above}: ")
    return Reason.COMPARED if is_field else list_name(line)


def _comparison(lines: Sequence[Line], marks: Sequence[str]) -> str:
    """A table of fields of pages, "Tent: price $40", a column for each page."""
    columns: dict[str, str] = {}
    rows: dict[str, dict[str, str]] = {}
    for line, mark in zip(lines, marks, strict=True):
        field, _, value = escape_quote(line.text.removeprefix(f"{line.above}: ")).partition(" ")
        columns[line.above] = f"{escape_quote(line.above)}{mark}"
        rows.setdefault(field, {})[line.above] = value.replace("|", r"\|")
    table = [["", *columns.values()], ["---"] * (len(columns) + 1)]
    table += [[field, *(cells.get(thing, "") for thing in columns)] for field, cells in rows.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def _list_blocks(lines: Sequence[Line], marks: Sequence[str]) -> list[str]:
    if lines[0].heads:
        head = f"{escape_quote(lines[0].text)}{marks[0]}"
        if len(lines) == 1:
            return [head]
        return [head, *_list_blocks(lines[1:], marks[1:])[-1:]]
    carried = next((line.carried for line in lines if line.carried), "")
    blocks = [f"{escape_quote(carried.strip())}"] if carried else []
    texts = [line.text.removeprefix(carried) for line in lines]
    cells = [_cells(text) for text in texts]
    if all(line.form == "row" for line in lines) and len({tuple(row) for row in cells}) == 1 and cells[0]:
        rows = [[escape_marks(cell) for cell in row.values()] for row in cells]
        table = [[escape_marks(head) for head in cells[0]], ["---"] * len(cells[0])]
        table += [[*row[:-1], row[-1] + mark] for row, mark in zip(rows, marks, strict=True)]
        return [*blocks, "\n".join(f"| {' | '.join(row)} |" for row in table)]
    listed = []
    for line, text, mark in zip(lines, texts, marks, strict=True):
        if line.form == "code":
            bullet = "  "
        elif line.number is None:
            bullet = "- "
        else:
            bullet = f"{line.number}. "
        listed.append(f"{bullet}{escape_quote(text)}{mark}")
    return [*blocks, "\n".join(listed)]


def _cells(row: str) -> dict[str, str]:
    pairs = [cell.partition(": ") for cell in row.split("; ")]
    return {head: cell for head, _, cell in pairs} if all(joint for _, joint, _ in pairs) else {}


def _marked(text: str, mark: str) -> str:
    if "\n" not in text:
        return escape_quote(text) + mark
    lines = text.split("\n")
    code = _code_lines(lines, is_closed=True)
    lines = [line if at in code else _escape_line(line) for at, line in enumerate(lines)]
    ends_in_code = len(lines) - 1 in code or lines[-1].startswith(_CODE_INDENT)
    if ends_in_code or lines[-1].rstrip().endswith("|"):
        return "\n".join(lines) + f"\n\n({mark.strip()})"
    return "\n".join(lines) + mark


def _escape_line(line: str) -> str:
    """Return a line of prose in which an indented fence that nothing closes opens no code either."""
    match = _FENCE.match(line)
    indent = match.start("fence") if match else 0
    return line[:indent] + escape_quote(line[indent:])
