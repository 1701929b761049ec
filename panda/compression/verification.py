"""Whether a compressed document is true to its source, complete where it must be, and whole in form."""

import json
import re
from collections.abc import Sequence
from typing import Any

from panda.compression.documents import MARK
from panda.compression.json_pieces import load_json
from panda.documents.evidence import check_evidence
from panda.documents.markdown import Block, read_blocks, split_cells
from panda.documents.yaml_text import parse_yaml
from panda.models.cl100k import count_tokens

_QUOTED = re.compile(r"[\"“«„]([^\"”»“\n]{2,80})[\"”»“]")


def verify(
    output: str,
    source: str,
    *,
    protected: Sequence[str],
    budget_tokens: int,
    is_json: bool,
) -> list[str]:
    """
    What is wrong with a compressed document, one line a problem; one made of JSON must be JSON (S3 §24).

    >>> verify("It costs $5.", "It costs $6.", protected=[], budget_tokens=4, is_json=False)
    ['5 tokens, 1 more than the budget of 4', 'price $5 is not in the source']
    """
    problems = []
    size = count_tokens(output)
    if size > budget_tokens:
        problems.append(f"{size} tokens, {size - budget_tokens} more than the budget of {budget_tokens}")
    said, known = output, source
    if is_json:
        try:
            said, known = _values(load_json(output)), _values(load_json(source))
        except (ValueError, RecursionError):
            return [*problems, "no longer valid JSON"]
    problems += [f"{claim.kind} {claim.text} is not in the source" for claim in check_evidence(said, [known])]
    plain = " ".join(known.split())
    for name in _QUOTED.findall(said):
        if MARK not in name and " ".join(name.split()) not in plain:
            problems.append(f"the quoted {name!r} is not in the source")
    squeezed = "".join(said.split())
    problems += [
        f"protected text is missing: {text[:60]!r}"
        for text in protected
        if "".join(text.split()) not in squeezed
    ]
    return problems if is_json else [*problems, *_form_problems(output, source)]


def _form_problems(output: str, source: str) -> list[str]:
    problems = []
    blocks, known = read_blocks(output), read_blocks(source)
    if not all(block.is_closed for block in blocks) and all(block.is_closed for block in known):
        problems.append("a fence is left open")
    lines, known_lines = output.split("\n"), source.split("\n")
    left = iter(known_lines[block.first].strip() for block in known if block.kind == "heading")
    headings = (lines[block.first].strip() for block in blocks if block.kind == "heading")
    missing = next((line for line in headings if line not in left), None)
    if missing is not None:
        problems.append(f"the heading {missing!r} is new or out of order")
    return [*problems, *_table_problems(blocks, lines, known_lines), *_meta_problems(output, source)]


def _table_problems(blocks: Sequence[Block], lines: Sequence[str], known_lines: Sequence[str]) -> list[str]:
    known = {line.strip() for line in known_lines}
    for block in blocks:
        if block.kind == "table" and block.is_ruled:
            cells = len(split_cells(lines[block.first]))
            for row in lines[block.first + 2 : block.end]:
                if row.strip() not in known and (MARK not in row or len(split_cells(row)) != cells):
                    return [f"the table row {row.strip()[:60]!r} has lost cells"]
    return []


def _meta_problems(output: str, source: str) -> list[str]:
    for block in re.findall(r"^```yaml\n(_meta:.*?)^```", output, re.DOTALL | re.MULTILINE):
        if block in source:
            continue
        try:
            parse_yaml(block)
        except ValueError as exc:
            return [f"_meta: {exc}"]
    return []


def _values(value: Any, key: str = "") -> str:
    """All keys and values of a JSON value as lines of text; values of a list have its key."""
    if isinstance(value, dict):
        return "\n".join([key, *(_values(item, name) for name, item in value.items())])
    if isinstance(value, list):
        return "\n".join([key, *(_values(item, key) for item in value)])
    said = value if isinstance(value, str) else json.dumps(value)
    return f"{key}: {said}" if key else said
