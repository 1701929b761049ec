"""What is wrong with a compressed document, found without what compression uses."""

import json
import re
from typing import Any

import yaml

MARK = re.compile(r"\[…[^\]]*\]")
"""What stands where something was left out, with or without what was counted."""


def invented(output: str, source: str) -> list[str]:
    """Numbers and URLs of a result that its source lacks, found without what compression uses."""
    said = MARK.sub(" ", output)
    numbers = re.findall(r"\d+(?:[.,:]\d+)*", said)
    urls = [url.rstrip('.,;\\"') for url in re.findall(r"https?://[^\s<>\"')\]|`]+", said)]
    return [found for found in (*numbers, *urls) if found not in source]


def damaged(output: str, source: str, *, is_json: bool) -> list[str]:
    """What is broken in the form of a result."""
    if is_json:
        json.loads(output, parse_int=str)  # numbers may have any length
        return []
    problems = []
    if is_open(output) and not is_open(source):
        problems.append("a fence is open")
    rest = iter(line.rstrip() for line in source.split("\n"))
    for line in output.split("\n"):
        if re.match(r"#{1,6} ", line) and line.rstrip() not in rest:
            problems.append(f"out of order: {line}")
    for block in re.findall(r"^```yaml\n(_meta:.*?)^```", output, re.DOTALL | re.MULTILINE):
        values: Any = yaml.safe_load(block)
        assert isinstance(values, dict)
    lines = output.split("\n")
    rows = {line.strip() for line in source.split("\n")}
    for k, line in enumerate(lines):
        if re.search(r"\| \[…[^\]]*\] \|", line) and line.strip() not in rows:
            head = next(lines[n] for n in range(k, -1, -1) if re.fullmatch(r"[\s|:-]*-[\s|:-]*", lines[n]))
            borders = re.findall(r"(?<!\\)\|", line)  # an escaped bar is a character of its cell
            if len(borders) != head.strip().strip("|").count("|") + 2:
                problems.append(f"lost cells: {line}")
    return problems


def is_open(text: str) -> bool:
    """Whether a fence is left open."""
    mark = ""
    for line in text.split("\n"):
        found = re.match(r"\s*(?:[-*+]\s+)?(`{3,}(?=[^`]*$)|~{3,})", line)
        if mark:
            mark = "" if line.strip().startswith(mark) and set(line.strip()) == {mark[0]} else mark
        elif found:
            mark = found[1]
    return bool(mark)
