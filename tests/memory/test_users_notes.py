"""A user's own note is read whatever it looks like: what panda cannot use of it is text, no turn halts."""

from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda, digest

DATES = (
    "2026-03-14", '"2026-03-14"', "2026-03-14T10:30", "2026-03-14 10:30", "2026-03-14T10:30:00Z",
    "2026-03-14T10:30:00.123Z", "2026-03-14T10:30:00+01:00", "2026-03-14 10:30:00 +0100", "20260314",
    "20260314T103000Z", "2026/03/14", "2026/3/14", "2026.03.14", "2026-3-14", "14.03.2026", "14.3.2026",
    "14.03.2026 10:30", "14-03-2026", "14/03/2026", "03/14/2026", "14 March 2026", "14 Mar 2026",
    "14th March 2026", "14-Mar-2026", "March 14, 2026", "Mar 14 2026", "March 14th, 2026",
    "Saturday, March 14, 2026", "Sat, 14 Mar 2026 10:30:00 +0100", "[[2026-03-14]]", "2026-03-14 (Saturday)",
)  # fmt: skip
UNCLEAR = (
    "03/04/2026",
    "soon",
    "March",
    "14 March",
    "2026-02-30",
    "2026-03-14 and 2026-04-16",
    "{day: 14}",
    "1",
)


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with an empty store."""
    project = Panda(tmp_path / "home")
    assert project("init").code == 0
    return project


def note(panda: Panda, name: str, text: str | bytes) -> Path:
    return panda.write(f"store/users/default/knowledge/{name}", text)


def faults(panda: Panda) -> dict[str, str]:
    """Return what `panda index rebuild` reads as text or skips, by the place in knowledge/."""
    data: Any = panda.json("index", "rebuild")["users"]["default"]
    assert data["problems"] == []
    return {problem["where"].partition("/knowledge/")[2]: problem["message"] for problem in data["as_text"]}


def test_usual_forms_of_dates_are_read(panda: Panda) -> None:
    """Every form is a date, and none is told as text; what is unclear is told with its line."""
    for n, form in enumerate(DATES):
        note(panda, f"{n}.md", f"---\ndate: {form}\n---\n\nThe lamp number {n} is green.\n")
    assert faults(panda) == {}
    for n, form in enumerate(UNCLEAR):
        note(panda, f"unclear {n}.md", f"---\ntitle: T\ndate: {form}\n---\n\nTea.\n")
    assert set(faults(panda)) == {f"unclear {n}.md:3 (date)" for n in range(len(UNCLEAR))}
    assert panda("validate", str(panda.store)).code == 0


ODD: dict[str, str | bytes] = {
    "boiler.md": "---\ndate: next week\nconfidence: high\nphone: 555 0199\n---\n\nOlsen fixed the boiler.\n",
    "rule.md": "---\nThe kayak lies in the shed behind the house.\n",
    "broken.MD": "---\ntags: [a, b\ntitle: x\n---\nThe bike lock opens with 4417.\n",
    "list.markdown": "---\n- one\n- two\n---\nThe garden hose is 20 m long.\n",
    "map.mdown": "---\ntitle: [a, b]\ntags: {a: 1}\naliases: Pumpe\n---\nThe pump came from Jula.\n",
    "logseq.txt": "title:: Pump\nid:: 65f0\n\n- The sauna needs two hours.\n",
    "latin.txt": "The café opens at nine.\n".encode("latin-1"),
    "README": "The ladder is at Ole's place.\n",
}
ANSWERS = {
    "What is the phone number?": "555 0199",
    "Where does the kayak lie?": "shed",
    "What opens the bike lock?": "4417",
}
FOUND = {
    "boiler": "boiler.md", "kayak": "rule.md", "bike": "broken.MD", "hose": "list.markdown",
    "Jula": "map.mdown", "sauna": "logseq.txt", "café": "latin.txt", "ladder": "README",
}  # fmt: skip


def test_odd_notes_are_found_quoted_and_told_once(panda: Panda) -> None:
    """No turn halts or warns because of a note; rebuild and validate tell each with file and line."""
    for name, text in ODD.items():
        note(panda, name, text)
    note(panda, "photo.png", b"\x89PNG\0")
    note(panda, "picture.md", b"\x89PNG\0\xff")
    before = digest(panda.store / "users" / "default" / "knowledge")
    for query, says in ANSWERS.items():
        ended = panda.turn(query)
        assert (ended.code, says in (ended.data["response"] or "")) == (0, True), (query, ended.out)
        assert [line for line in ended.err.splitlines() if not line.startswith(("turn ", "phase "))] == []
    for word, name in FOUND.items():
        assert f"knowledge:{name}" in panda("index", "search", word).out, word
    reported = faults(panda)
    assert set(reported) == {
        "boiler.md:2 (date)", "boiler.md:3 (confidence)", "rule.md:1", "broken.MD:3", "list.markdown:2",
        "map.mdown:2 (title)", "map.mdown:3 (tags)", "latin.txt", "photo.png", "picture.md",
    }  # fmt: skip
    assert [problem["path"] for problem in panda.json("validate", str(panda.store))["as_text"]]
    text = panda("validate", str(panda.store)).out
    assert [text.count(name) for name in ("boiler.md:2", "rule.md:1", "photo.png")] == [1, 1, 1]
    assert digest(panda.store / "users" / "default" / "knowledge") == before


def test_findings_of_notes_are_grouped(panda: Panda) -> None:
    """One kind of fault is said once, with the places below it and how many more there are."""
    for n in range(12):
        note(panda, f"{n:02}.md", "---\ndate: soon\n---\n\nTea.\n")
    errors = panda("index", "rebuild").err
    assert errors.count("date cannot be read") == 1
    assert errors.count(".md:2 (date)") == 10
    assert "and 2 more" in errors


def test_a_note_that_cannot_be_read_stops_no_turn(panda: Panda) -> None:
    """The note is reported in one line, and the turn answers from the others."""
    note(panda, "tea.md", "The tea is in the blue box.\n")
    for name in ("large.md", "huge.md"):
        with note(panda, name, "").open("wb") as file:
            file.truncate(6_000_000)
    ended = panda.turn("Where is the tea?")
    assert (ended.code, "blue box" in ended.data["response"]) == (0, True)
    assert ended.err.count("cannot be read: 2") == 1
    assert "large.md" not in ended.err
    assert panda("index", "rebuild").code == 3


def test_a_byte_order_mark_and_a_name_of_blanks_are_nothing_to_an_answer(panda: Panda) -> None:
    """A mark of the encoding is not quoted, and a note whose name gives no title is read like others."""
    note(panda, "marked.txt", "\ufeffThe dentist is Dr. Okafor of Lagos.\n")
    note(panda, " .md", "cellar rent: 9\n\nBye\n")
    assert panda.turn("Who is the dentist?").data["response"].startswith("The dentist is Dr. Okafor")
    assert "9" in panda.turn("What is the cellar rent?").data["response"]
