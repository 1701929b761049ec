"""Quotations, boxes, here documents, settings and rare keys: what of them stays at a quarter or a third."""

import json

import pytest

from panda.compression.compressor import compress
from panda.compression.plans import detect_format, parse_document
from panda.models.cl100k import count_tokens

TALK = "The weather was better than it is now, and somebody walked along the river with a dog. " * 2
MAIL = f"""\
From: Ann <ann@post.example>
To: Bo <bo@print.example>
Subject: Re: Proofs

> 1. Paper: the old one is discontinued, and the mill that made it
>    closed in spring. Which one shall we take?

Take the grey one.

> 2. By the way, {TALK.strip()}
> {TALK.strip()}
> {TALK.strip()}

--
Ann, Harbour Street 3
"""
RUNBOOK = f"""\
Runbook of the order service

{TALK}

+------------------------------------------------+
| Never restart more than one node at a time. An |
| order in flight lives in memory.               |
+------------------------------------------------+

{TALK}
"""
SCRIPT = """\
#!/bin/sh
# Sends the site to a bucket.
set -e
usage() {
    cat <<'USAGE'
Usage: send.sh [-n] TARGET

  -n  build, but send nothing
USAGE
    exit 2
}
[ $# -eq 1 ] || usage
""" + "".join(f'if [ "$1" = target{n} ]; then\n    bucket=bucket{n}\nfi\n' for n in range(12))
WORKFLOW = """\
# SPDX-License-Identifier: MIT
# Permission is hereby granted, free of charge, to any person who gets a copy of this file.
name: checks
on: push
jobs:
  lint:
    runs-on: ubuntu-latest
    steps:
    - name: Check out
      uses: actions/checkout@v4
    - name: Lint
      env:
        COLOUR: always
        LEVEL: all
      run: make lint
  test:
    runs-on: ubuntu-latest
    steps:
    - name: Check out
      uses: actions/checkout@v4
    - name: Test
      env:
        COLOUR: always
        LEVEL: all
      run: make test
"""
MINUTES = f"""\
# Minutes of the committee

Present: Ada, Bea, Cleo

## Water
{TALK}{TALK} The committee voted for the cheaper offer. Bea will write the application by 1 March.

## Bees
{TALK}{TALK}
"""
MOUNTS = "I0402 06:12:01.220134       1 reconcile.go:88] volume pvc-11f2 attached\n" * 20
STATIONS = json.dumps(
    [
        {"name": f"Street {n}", "capacity": 10 + n} | ({"note": "dock 4 jammed"} if n == 17 else {})
        for n in range(40)
    ]
)


@pytest.mark.parametrize(
    ("name", "text", "share", "stays", "goes"),
    [
        ("mail.txt", MAIL, 0.35, ["Take the grey one."], ["Harbour Street"]),
        ("runbook.txt", RUNBOOK, 0.5, ["| Never restart more than one node at a time."], []),
        ("send.sh", SCRIPT, 0.3, ["Usage: send.sh [-n] TARGET", "-n  build, but send nothing"], []),
        ("checks.yml", WORKFLOW, 0.7, ["run: make lint", "run: make test"], ["Permission is", "COLOUR"]),
        ("minutes.md", MINUTES, 0.4, ["voted for the cheaper offer", "by 1 March"], []),
        (
            "volumes.log",
            f"{MOUNTS}E0402 06:14:22.876510       1 reconcile.go:131] attach of pvc-60ee was refused\n",
            0.25,
            ["attach of pvc-60ee was refused"],
            [],
        ),
        ("stations.json", STATIONS, 0.25, ["dock 4 jammed"], []),
    ],
)
def test_what_a_reader_needs_stays(
    name: str, text: str, share: float, stays: list[str], goes: list[str]
) -> None:
    """Answers, warnings in boxes, usage, what a job runs, tasks, errors and what only one entry has stay."""
    budget = int(share * count_tokens(text))
    compressed = compress(text, kind="generic", budget_tokens=budget, name=name).text
    assert count_tokens(compressed) <= budget
    assert [part for part in stays if part not in compressed] == []
    assert [part for part in goes if part in compressed] == []


@pytest.mark.parametrize("name", ["mail.txt", "runbook.txt"])
def test_all_pieces_render_the_text_itself(name: str) -> None:
    """Edges of boxes and marks of quotations stand again where all around them is kept."""
    text = {"mail.txt": MAIL, "runbook.txt": RUNBOOK}[name]
    outline = parse_document(text, detect_format(name, text, "generic"), "generic")
    assert outline.render(set(range(len(outline.pieces)))) == text


def test_a_changelog_is_no_conversation() -> None:
    """Lines as "Fixes:" that come with each version are no speakers; settings of shells are settings."""
    news = "".join(
        f"v{n} (8 May 202{n})\n===\n\nFixes:\n\n * fix {n}\n\nBuild:\n\n * b\n\n" for n in range(4)
    )
    assert detect_format("NEWS.md", news, "generic") == "text"
    assert detect_format("app.env", "HOST=db\nPORT=1\n", "generic") == "settings"
