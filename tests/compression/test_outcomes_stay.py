"""What came of a meeting, a ticket or a run stays: decisions, actions, workarounds, errors, totals."""

from pathlib import Path

import pytest

from tests.api import Panda

TALK = (
    "{name} thinks that the {thing} is too old, and that the money for a new one was there last year. "
    "Others recall that the {thing} was mended in spring, when the weather was better than it is now. "
    "It is not clear who has the papers, nor whether the shop that sold it is still there."
)
MINUTES = f"""\
# Minutes of the garden club

Date: 5 November 2026
Present: Ada, Bea, Cleo, Dora, and three guests from the neighbouring club

## 1. Mower
{TALK.format(name="Ada", thing="mower")}

**Decision:** buy a second-hand mower for at most 400 euros.

## 2. Shed
{TALK.format(name="Bea", thing="shed")}

## 3. Pump
{TALK.format(name="Cleo", thing="pump")}

## Actions
- Ada: ask three shops for offers, by 20 November
- Dora: measure the shed, by 1 December

Next meeting: 14 January 2027, in the library
"""
NOTES = f"""\
notes of the move, weekend of 7 november

sat
08:50 everyone is there. {TALK.format(name="Kim", thing="router")}
11:20 {TALK.format(name="Lee", thing="switch")}
15:40 {TALK.format(name="Max", thing="rack")}

todo
- Kim: delete the old cluster on 15 nov, not before
- Lee: rotate seven passwords until 30 nov
"""
TICKET = f"""\
[#18] Nightly export sends invoices twice
Status: In progress
Reporter: Imogen Falk

Since Saturday some customers got the same invoice twice. {TALK.format(name="Imogen", thing="mailer")}

Log of worker 3:
  02:11:07 INFO export batch 1 acked
  02:11:09 ERROR checkpoint write failed: no space left on device
  02:14:55 INFO export starting from batch 1

Bashir Noori, 2026-09-28 10:40
  {TALK.format(name="Bashir", thing="disk")}

Petra Lind, 2026-09-28 11:30
  {TALK.format(name="Petra", thing="spool")}

Bashir Noori, 2026-09-28 15:20
  Seen. {TALK.format(name="Quentin", thing="patch")} Workaround until then: set batch_size=5000.

Imogen Falk, 2026-09-30 16:55
  {TALK.format(name="Legal", thing="mail")} Release of 4.18.2 moved to 5 October.
"""
MAIL = f"""\
Return-Path: <ann@post.example>
From: Ann Ode <ann@post.example>
To: service@moebel.example
Date: Mon, 2 Nov 2026 20:31:02 +0100
Subject: Order 7740 - wrong table top

Dear Sir or Madam,

this is my third message about order 7740. {TALK.format(name="The driver", thing="table")}

{TALK.format(name="My neighbour", thing="top")} {TALK.format(name="Ms Petersen", thing="label")}

I would like the following:

1. Deliver the right top by Friday 20 November.
2. If you cannot do that, say so by 9 November, in writing.

{TALK.format(name="My aunt", thing="delivery note")}
"""
RUNS = "\n".join(
    [
        "Test results: passed: 2,625",
        *(f"FAILED: net/Socket{n}.java is not ready within {n} s" for n in range(2)),
        *(f"Running: net/channel{n}/Case.java with module m{n}" for n in range(90)),
        *(f"FAILED: {word}/Case.java" for word in ("rmi", "nio", "awt", "sql", "xml", "jar", "zip", "url")),
        "Test results: passed: 4,254",
        "Test results: passed: 5,973; failed: 9; error: 4",
        "nothing to clean up",
    ]
)


@pytest.mark.parametrize(
    ("name", "text", "share", "stays"),
    [
        (
            "minutes.md",
            MINUTES,
            0.4,
            ["at most 400 euros", "by 20 November", "by 1 December", "14 January 2027"],
        ),
        ("notes.txt", NOTES, 0.3, ["on 15 nov, not before", "until 30 nov"]),
        (
            "ticket.txt",
            TICKET,
            0.35,
            ["ERROR checkpoint write failed", "set batch_size=5000", "moved to 5 October"],
        ),
        (
            "mail.txt",
            MAIL,
            0.5,
            ["From: Ann", "To: service", "Date: Mon", "Subject: Order 7740", "by Friday 20 Nov", "by 9 Nov"],
        ),
        ("runs.log", RUNS, 0.07, ["passed: 2,625", "passed: 4,254", "passed: 5,973; failed: 9; error: 4"]),
    ],
)
def test_what_came_of_it_stays(tmp_path: Path, name: str, text: str, share: float, stays: list[str]) -> None:
    """Decisions, actions, errors, workarounds, requests and totals stay where most of the talk goes."""
    panda = Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))
    panda.write(name, text)
    size = panda.json("compress", name, "--budget", "100000")["before_tokens"]
    compressed = panda.json("compress", name, "--budget", str(int(share * size)))["text"]
    assert [part for part in stays if part not in compressed] == []
