"""What validate finds in a store: each kind of damage, with its file, and nothing in a sound store."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import structs

from panda.documents.context import Section, Text
from panda.errors import NotFoundError
from panda.store.files import write_json
from panda.store.layout import Layout, TurnPaths, UserStore
from panda.store.records import BY_DIRECTORY, BY_NAME, Next, Status
from panda.store.turns import claim_turn
from panda.store.validate import check_store
from tests.builders import build_store, import_line, still_clock

MANIFEST = {"visit_id": "visit_abc123", "url": "https://a.example/x", "visited_at": "2026-01-03T13:20:00Z"}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return build_store(tmp_path)


def found(layout: Layout, *paths: Path) -> list[tuple[str, str]]:
    """Place, relative to the root, and message of each problem."""
    return [
        (str(problem.where).removeprefix(f"{layout.root}/"), problem.message)
        for problem in check_store(layout, paths)
    ]


def add_visit(paths: TurnPaths, slug: str, **changes: object) -> None:
    write_json(paths.webpage_cache / slug / "manifest.json", {**MANIFEST, **changes})
    write_json(paths.webpage_cache / slug / "extracted.json", {"title": "Lenovo LOQ 15", "price": "$697.00"})


def test_a_sound_store_has_no_problems(layout: Layout) -> None:
    """Imported turns, a claimed one, visits, memory and an empty root are all well."""
    claim_turn(UserStore(layout.root, "demo", still_clock), "default", "chat", "## 1. Reflection Decision")
    add_visit(layout.of("demo").turn(1), "a-0123456789")
    layout.of("demo").preferences.write_text("---\nbudget: $500-800\n---\n")
    assert found(layout) == []
    assert check_store(Layout(layout.root / "nothing")) == []


@pytest.mark.parametrize(
    "text",
    [
        "## 2. Gathered Context",
        "```\nnever closed",
        "```yaml\n_meta:\n  source_type: fact\n```",
        "---\nturn: 9\n---\n",
        "\r## 5. Synthesis\r\n\x00\x1b[2J\u202e\n\n",
        "\\\\## 0. User Query\n" * 3000,
    ],
)
def test_no_query_or_response_makes_a_store_unsound(tmp_path: Path, text: str) -> None:
    """Text that looks like structure is imported, reads back exactly, and validate finds nothing."""
    layout = build_store(
        tmp_path, import_line(turn=1, query=text, response=text, summary=text, topics=[text])
    )
    assert found(layout) == []
    document = UserStore(layout.root, "demo", still_clock).open(1).read_context()
    assert [(one.number, one.text) for one in document.sections] == [(0, text), (5, text)]


def rewrite(layout: Layout, name: str, change: Callable[[str], str]) -> None:
    path = layout.of("demo").turn(2) / name
    path.write_text(change(path.read_text()))


CONTEXT = "users/demo/turns/turn_000002/context.md"
METADATA = "users/demo/turns/turn_000002/metadata.json"


@pytest.mark.parametrize(
    ("name", "change", "where", "words"),
    [
        (
            "context.md",
            lambda t: t.replace("## 5. Synthesis\n\nAnswer 2.\n", ""),
            CONTEXT,
            "Synthesis` is missing",
        ),
        ("context.md", lambda t: t + "\n## 6. Validation\n\nok\n", CONTEXT, "Validation` is one too many"),
        ("context.md", lambda t: t + "\n## 5. Synthesis\n\nagain\n", f"{CONTEXT}:18", "second time"),
        ("context.md", lambda t: t + "\n## 2. Gathered Context\n", f"{CONTEXT}:18", "after section 5"),
        (
            "context.md",
            lambda t: t.replace("---\n", "", 1),
            f"{CONTEXT}:1",
            "does not begin with its front matter",
        ),
        (
            "context.md",
            lambda t: t + "\n```yaml\n_meta:\n  a: [\n```\n",
            f"{CONTEXT}:20 (_meta)",
            "not valid YAML",
        ),
        (
            "context.md",
            lambda t: t.replace("turn: 2", "turn: 3"),
            f"{CONTEXT}:1 (turn)",
            "turn is 3 here and 2 in metadata",
        ),
        (
            "metadata.json",
            lambda t: t.replace("imported", "odd"),
            f"{METADATA}:8 (status)",
            "status is 'odd'",
        ),
        (
            "metadata.json",
            lambda t: t.replace('"turn": 2', '"turn": 3'),
            f"{METADATA} (turn)",
            "is of turn 3",
        ),
        ("metadata.json", lambda t: t.replace("{", "{\n!", 1), f"{METADATA}:2", "not valid JSON"),
        ("metadata.json", lambda t: t.replace('"demo"', '"eva"'), f"{METADATA} (user_id)", "is of user eva"),
    ],
)
def test_damage_in_a_turn_is_found(
    layout: Layout, name: str, change: Callable[[str], str], where: str, words: str
) -> None:
    """The problem names the file, and line or key where there is one; the other turns stay sound."""
    rewrite(layout, name, change)
    problems = found(layout)
    assert any(place == where and words in message for place, message in problems), problems
    assert all("turn_000002" in place for place, _ in problems)
    assert found(layout, layout.of("demo").turn(2).directory) == problems


def test_missing_files_of_a_turn_are_found(layout: Layout) -> None:
    """metadata.json and context.md always, response.md when there was an answer."""
    for number, name in ((1, "context.md"), (2, "metadata.json"), (3, "response.md")):
        (layout.of("demo").turn(number) / name).unlink()
    assert found(layout) == [
        (f"users/demo/turns/turn_00000{number}/{name}", f"{name} is missing")
        for number, name in ((1, "context.md"), (2, "metadata.json"), (3, "response.md"))
    ]


@pytest.mark.parametrize(
    ("status", "route", "going_on", "sections", "sound"),
    [
        ("approved", (0, 1, 2, 3, 5, 6, 7), None, (0, 1, 2, 3, 5, 6), True),
        ("approved", (0, 1, 2, 3, 5, 6, 7), None, (0, 1, 2, 3, 4, 5, 6), False),
        ("approved", (0, 1, 2, 3, 4, 5, 6, 7), None, (0, 1, 2, 3, 5, 6), False),
        ("failed", (0, 1, 2, 3, 4, 5, 6, 3, 5, 6, 7), None, (0, 1, 2, 3, 5, 6), True),
        ("clarify", (0, 1, 7), None, (0, 1), True),
        ("halted", (0, 1), 2, (0, 1), True),
        ("halted", (0, 1), 2, (0,), False),
        ("running", (0, 1, 2), 3, (0, 1, 2, 3), True),
        ("running", (0, 1, 2), 3, (0, 1, 2, 3, 4), False),
        ("running", (0, 1, 2, 3, 4, 5, 6), 5, (0, 1, 2, 3, 4), True),
        ("gathered", (0, 1, 2), None, (0, 1, 2), True),
    ],
)
def test_sections_are_those_that_status_and_route_imply(
    tmp_path: Path,
    status: Status,
    route: tuple[int, ...],
    going_on: int | None,
    sections: tuple[int, ...],
    sound: bool,
) -> None:
    """Exactly those; a process that died may have left the section of its next phase."""
    store = UserStore(tmp_path, "demo", still_clock)
    folder = claim_turn(store, "default", "chat", "q")
    body = tuple(Section(number, (Text("x"),)) for number in sections)
    folder.write_context(replace(folder.read_context(), sections=body))
    folder.write_text("response.md", "x")
    next_phase = None if going_on is None else Next(phase=going_on, round=0, attempt=0)
    folder.write_metadata(
        structs.replace(folder.read_metadata(), status=status, route=route, next=next_phase)
    )
    assert (check_store(Layout(tmp_path)) == []) is sound


def test_visits_need_a_manifest_and_an_id_of_their_own(layout: Layout) -> None:
    """A directory without manifest, and one visit_id in two turns, are found."""
    add_visit(layout.of("demo").turn(1), "a-0123456789")
    add_visit(layout.of("demo").turn(3), "a-0123456789")
    (layout.of("demo").turn(2).webpage_cache / "b-0123456789").mkdir(parents=True)
    messages = [message for _, message in found(layout)]
    first = layout.of("demo").turn(1).webpage_cache / "a-0123456789"
    assert messages == [
        "manifest.json is missing",
        "extracted.json is missing",
        f"visit_id visit_abc123 is that of {first} too",
    ]


def test_files_beside_the_turns_are_checked(layout: Layout) -> None:
    """Memory files, the memory log, the counter, interventions, leftovers, names of turns."""
    user = layout.of("demo").home
    layout.of("demo").preferences.write_text("---\nbudget: [\n---\n")
    layout.of("demo").memory_log.write_text('{"id": 1}\n{"torn": ')
    layout.of("demo").turn_counter.write_text("2\n")
    (user / ".facts.md.0123456789ab.panda.tmp").write_text("")
    (layout.of("demo").turn(1) / ".plan.json.0123456789ab.tmp").write_text("")
    (layout.of("demo").turns / "turn_12").mkdir()
    layout.interventions.mkdir()
    (layout.interventions / "x.json").write_text("{}")
    problems = found(layout)
    text = "\n".join(f"{place}: {message}" for place, message in problems)
    assert "users/demo/preferences.md:3: the front matter is not valid YAML" in text
    assert "users/demo/memory.jsonl:1 (entity): entity is missing" in text
    assert "users/demo/memory.jsonl:2: not valid JSON" in text
    assert "users/demo/turn_counter: holds 2, but there is a turn 3" in text
    assert text.count("temporary file left by a write that was cut short") == 2
    assert "turn_12: not the name of a turn" in text
    assert "interventions/x.json:1 (id): id is missing" in text


def test_single_files_and_directories_can_be_checked(layout: Layout) -> None:
    """A file, a user, a turns directory or any other directory gives its own problems alone."""
    rewrite(layout, "metadata.json", lambda text: text.replace("imported", "odd"))
    bad = layout.of("demo").turn(2) / "metadata.json"
    for path in (
        bad,
        layout.of("demo").home,
        layout.of("demo").turns,
        layout.root,
        layout.of("demo").home.parent,
    ):
        assert [where for where, _ in found(layout, path)] == [f"{METADATA}:8 (status)"]
    assert found(layout, layout.of("demo").turn(1).directory, layout.of("demo").turn(2) / "context.md") == []
    with pytest.raises(NotFoundError, match="no such file"):
        check_store(layout, [layout.root / "missing"])


def test_a_step_whose_number_is_not_its_name_is_found(layout: Layout) -> None:
    """steps/step_02.json must be of step 2, and fit its schema."""
    step = {
        "step": 1,
        "tool": "doc.search",
        "arguments": {},
        "status": "success",
        "data": None,
        "error": None,
    }
    step |= {"claims": [], "entities": [], "artifacts": [], "seconds": 0.1, "text": ""}
    step |= {"plan": 0, "round": 1, "goal": None, "kind": "read", "note": None, "conclusion": None}
    paths = layout.of("demo").turn(1)
    write_json(paths.step(1), step)
    write_json(paths.step(2), step)
    write_json(paths.step(3), {**step, "step": 3, "status": "fine"})
    assert [message for _, message in found(layout)] == [
        "status is 'fine'",
        "is of step 1, its name is another",
    ]


def test_every_schema_is_itself_valid() -> None:
    """Each record gives a JSON Schema of 2020-12."""
    assert len(BY_NAME) >= 18
    for record in (*BY_NAME.values(), *BY_DIRECTORY.values()):
        Draft202012Validator.check_schema(msgspec.json.schema(record))
