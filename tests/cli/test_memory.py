"""`panda memory`: as a user types it."""

import json
from pathlib import Path

import pytest

from panda.documents.times import render_time
from panda.store.layout import Layout
from tests.api import Ended, run_here
from tests.stores import NOW


class Shell:
    """Runs `panda memory …` on a store of its own."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self.layout.of("ann").home.mkdir(parents=True)

    def __call__(self, *words: str, stdin: str = "", group: str | None = "memory") -> Ended:
        options = ["--root", str(self.layout.root), "--user", "ann"]
        environ = {"PANDA_NOW": render_time(NOW)}
        end = words.index("--") if "--" in words else len(words)
        arguments = [*([group] if group else []), *words[:end], *options, *words[end:]]
        return run_here(arguments, environ, stdin)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "store")


def test_set_get_list_history_retract(shell: Shell) -> None:
    """What is set can be got, listed, looked up in the history and taken back."""
    assert shell("set", "budget", "$500").code == 0
    assert shell("set", "budget", "$900").code == 0
    assert shell("get", "budget").out == "$900\n"
    rows = [line.split("\t") for line in shell("list").rows]
    assert rows == [
        ["budget", "$900", "0.95", "HIGH", "2026-01-04T14:30:00Z", "user:ann", "preference", "local", ""]
    ]
    history = [line.split("\t")[1:3] for line in shell("history", "budget").rows]
    assert history == [["$500", "0.95"], ["$500", "retracted"], ["$900", "0.95"]]
    assert (shell("retract", "budget").code, shell("get", "budget").code) == (0, 2)
    assert shell("list").out == ""
    assert "budget" not in shell.layout.of("ann").preferences.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["900"], {"type": "string", "v": "900"}),
        (["--type", "number", "--", "-1.5e3"], {"type": "number", "v": -1500.0}),
        (["true", "--type", "boolean"], {"type": "boolean", "v": True}),
        (["--type", "null"], {"type": "null"}),
        (["a", "b"], {"type": "list", "v": ["a", "b"]}),
        (["a", "--type", "list"], {"type": "list", "v": ["a"]}),
        (["Acme Corp", "--type", "ref"], {"type": "ref", "v": "Acme Corp"}),
        (["2026-01-04", "--type", "datetime"], {"type": "datetime", "v": "2026-01-04"}),
    ],
)
def test_types(shell: Shell, words: list[str], value: dict[str, object]) -> None:
    """A value is a string unless a type is given, or there are several."""
    appended = shell("set", "k", "--json", *words).value["data"]["appended"]
    assert [one["value"] for one in appended] == [value]


@pytest.mark.parametrize(
    "words",
    [
        ["k"],
        ["k", " "],
        [" ", "x"],
        ["panda:k", "x"],
        ["k", "x", "--type", "number"],
        ["k", "nan", "--type", "number"],
        ["k", "x", "--type", "boolean"],
        ["k", "x", "--type", "thing"],
        ["k", "x", "--type", "null"],
        ["k", "1", "2", "--type", "number"],
        ["k", "x", "--scope", "world"],
        ["k", "x", "--entity", " "],
        ["k", "x", "--entity", "acme", "--kind", "preference"],
        ["k", "x", "--kind", "wish"],
        ["k", "x", "--valid-until", "tomorrow"],
    ],
)
def test_wrong_usage(shell: Shell, words: list[str]) -> None:
    """What cannot be remembered is refused with 2 and a fix, and nothing is written."""
    ended = shell("set", *words)
    assert (ended.code, ended.out) == (2, "")
    assert "error: " in ended.err
    assert not shell.layout.of("ann").memory_log.exists()


def test_scopes_and_entities(shell: Shell) -> None:
    """Scopes are apart; the files show the local one, facts of others with their entity."""
    shell("set", "ceo", "Ada", "--entity", "Acme Corp")
    shell("set", "ceo", "Bob", "--entity", "acme corp", "--scope", "team")
    shell("set", "acme-corp#cfo", "Cy", "--valid-until", "2026-01-01")
    assert (shell("get", "acme-corp#ceo").out, shell("get", "acme-corp#cfo").code) == ("Ada\n", 2)
    assert shell("get", "ceo", "--entity", "Acme Corp", "--scope", "team").out == "Bob\n"
    listed = [line.split("\t") for line in shell("list", "--entity", "acme corp").rows]
    assert [(row[0], row[1], row[7], row[8]) for row in listed] == [
        ("acme-corp#ceo", "Ada", "local", ""),
        ("acme-corp#cfo", "Cy", "local", "expired"),
        ("acme-corp#ceo", "Bob", "team", ""),
    ]
    assert len(shell("list", "--scope", "team").rows) == 1
    assert shell("list", "--kind", "preference").out == ""


def test_many_from_standard_input(shell: Shell) -> None:
    """JSON lines are remembered in order; a line that is impossible is named before any is kept."""
    lines = [{"key": f"k{n}", "value": n} for n in range(45)]
    lines.append({"key": "ceo", "value": {"type": "ref", "v": "Ada"}, "entity": "acme", "scope": "team"})
    ended = shell("set", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert (ended.code, len(shell("list").rows)) == (0, 46)
    before = shell.layout.of("ann").memory_log.read_bytes()
    for junk in ("{", "[]", '{"key": "x"}', '{"key": "x", "value": " "}', '{"key": "x", "value": 1, "a": 2}'):
        ended = shell("set", "-", stdin='{"key": "new", "value": 1}\n\n' + junk)
        assert (ended.code, "stdin:3" in ended.err) == (2, True)
    assert shell.layout.of("ann").memory_log.read_bytes() == before


def test_edit_by_hand(shell: Shell) -> None:
    """A value typed into the file is listed with .50 and its date; what happened is told on stderr."""
    shell.layout.of("ann").preferences.write_text("---\ncity:  Salem # here\n---\n", encoding="utf-8")
    ended = shell("list")
    assert ended.rows[0].split("\t")[:5] == ["city", "Salem", "0.50", "MEDIUM", "2026-01-04T14:30:00Z"]
    assert "taken in: city, typed by hand" in ended.err
    assert "taken in" not in shell("list").err


def test_store_that_cannot_be_written(shell: Shell) -> None:
    """A store marked as read-only is read, edits by hand included, and nothing is written."""
    shell.layout.read_only_mark.touch()
    shell.layout.of("ann").preferences.write_text("---\ncity: Salem\n---\n", encoding="utf-8")
    assert shell("get", "city").out == "Salem\n"
    assert "not taken in yet" in shell("list").out
    assert shell("set", "city", "Rome").code == 2
    assert [path.name for path in shell.layout.of("ann").home.iterdir()] == ["preferences.md"]


def test_contradictions(shell: Shell, tmp_path: Path) -> None:
    """Another machine's fact contradicts, is shown with both values, and is settled."""
    shell("set", "pet", "cat")
    fact = {
        "id": "o1",
        "entity": "user:ann",
        "relation": "pet",
        "value": {"type": "string", "v": "dog"},
        "source": "agent:x",
        "confidence": 0.6,
        "scope": "local",
        "hlc": "5.000",
        "valid_until": None,
    }
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"facts": [fact], "conflicts": []}, indent=1), encoding="utf-8")
    assert shell("merge", str(other)).code == 0
    assert "contradicted: dog (0.60, agent:x)" in shell("list").out
    assert (shell("lint").code, shell("lint").rows[0].split("\t")[0]) == (3, "contradiction")
    conflict = shell("conflicts").rows[0].split("\t")[0]
    assert shell("resolve", conflict).code == 2
    assert shell("resolve", conflict, "--winner", "nobody").code == 2
    assert shell("resolve", conflict[:12], "--winner", "o1").code == 0
    assert (shell("get", "pet").out, shell("conflicts").out, shell("lint").code) == ("dog\n", "", 0)
    assert shell("resolve", conflict, "--winner", "o1").code == 2
    records = shell.layout.of("ann").conflicts_log.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["status"] for line in records] == ["resolved"]


def test_merge_tells_lines_from_a_document_by_shape(shell: Shell, tmp_path: Path) -> None:
    """A log whose first line speaks of "facts", and a document of facts on one line or many, are merged."""
    shell("set", "motto", 'stick to "facts"')
    lines = shell.layout.of("ann").memory_log.read_text(encoding="utf-8")
    values = [json.loads(line) for line in lines.splitlines()]
    merged = []
    for name, text in (
        ("log", lines),
        ("one", json.dumps({"facts": values})),
        ("many", json.dumps({"conflicts": [], "facts": values}, indent=1)),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        merged.append(shell("merge", str(tmp_path / name), "--user", "bob").code)
    assert merged == [0, 0, 0]
    torn = tmp_path / "torn"
    torn.write_text('{\n "facts": [\n', encoding="utf-8")
    assert shell("merge", str(torn)).code == 2


def test_merge_of_junk(shell: Shell, tmp_path: Path) -> None:
    """A file that holds no facts is refused with its line; one that is not there with 74."""
    junk = tmp_path / "junk.jsonl"
    junk.write_text('\n{"id": 1}\n', encoding="utf-8")
    ended = shell("merge", str(junk), "--json")
    assert (ended.code, f"{junk}:2" in ended.value["error"]["where"]) == (2, True)
    assert shell("merge", str(tmp_path / "none")).code == 74


def test_validate_finds_what_was_typed_oddly(shell: Shell) -> None:
    """Keys typed twice or in both files, keys of no memory, lists that say otherwise, records of nothing."""
    shell("set", "pet", "cat")
    preferences, facts = shell.layout.of("ann").preferences, shell.layout.of("ann").facts
    assert shell("validate", str(shell.layout.users), group=None).out == ""
    text = preferences.read_text(encoding="utf-8").replace("- pet: cat", "- pet: dog")
    preferences.write_text(text.replace("---\n", "---\ntea: a\ntea: b\n'panda:x': 1\n", 1), encoding="utf-8")
    facts.write_text("---\npet: fish\n---\n", encoding="utf-8")
    record = {"conflict_id": "c1", "fact_a": "f1", "fact_b": "f2", "status": "open"}
    lines = [json.dumps(record), json.dumps({**record, "status": "resolved"}), "{}"]
    shell.layout.of("ann").conflicts_log.write_text(f"{lines[0]}\n", encoding="utf-8")
    ended = shell("validate", str(shell.layout.users), group=None)
    lines_of_out = (
        line for line in ended.out.splitlines() if "(mode): warning: " not in line
    )  # of files made here
    found = [line for line in lines_of_out if not line.startswith("  fix")]
    assert (ended.code, len(found)) == (3, 5)
    for part in (
        "c1 names facts",
        "'panda:x' is no key",
        "tea is there more",
        "pet is in pref",
        "the list shows",
    ):
        assert sum(part in line for line in found) == 1
    shell.layout.of("ann").conflicts_log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ended = shell("validate", str(shell.layout.of("ann").conflicts_log), group=None)
    named = (line.split(":")[1] for line in ended.out.splitlines() if "conflicts.jsonl" in line)
    assert {place.split()[0] for place in named} == {"2", "3"}


def test_what_is_typed_by_hand_is_told(shell: Shell) -> None:
    """What is nested in a value counts as a text, which `validate` tells."""
    path = shell.layout.of("ann").preferences
    path.write_text("---\nbudget: {min: 500, max: 800}\n---\n", encoding="utf-8")
    assert shell("get", "budget").out == "min 500, max 800\n"
    found = shell("validate", str(path), "--json", group=None).value["data"]["unquotable"]
    assert [one["message"] for one in found] == [
        "what is nested in budget counts as the text 'min 500, max 800'"
    ]


def test_a_blank_file_deletes_nothing(shell: Shell) -> None:
    """It is made again; a front matter without keys takes all back."""
    shell("set", "pet", "cat")
    path = shell.layout.of("ann").preferences
    path.write_text("\n", encoding="utf-8")
    assert shell("get", "pet").out == "cat\n"
    assert "- pet: cat" in path.read_text(encoding="utf-8")
    path.write_text("---\n---\n", encoding="utf-8")
    assert shell("get", "pet").code == 2


def test_a_day_ends_with_its_last_second(shell: Shell) -> None:
    """What is to hold until a day holds on that day; a text is printed with its line breaks."""
    day = render_time(NOW)[:10]
    shell("set", "lease", "-", "--valid-until", day, stdin="Main St 1\nOregon")
    ended = shell("get", "lease", "--json").value["data"]
    assert (ended["valid_until"], ended["expired"]) == (f"{day}T23:59:59Z", False)
    assert shell("get", "lease").out == "Main St 1\nOregon\n"
    assert shell("set", "-", "x").code == 2
