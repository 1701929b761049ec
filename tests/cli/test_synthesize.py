"""`panda synthesize`, run in this process."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api import Ended, Panda, tree
from tests.scope_vectors import NOW_TEXT, VECTORS, Vector

FACT: dict[str, Any] = {
    "id": "a",
    "entity": "user:default",
    "relation": "tea",
    "value": {"type": "text", "v": "Assam,\nblack"},
    "source": "turn:1",
    "confidence": 0.9,
    "scope": "local",
    "hlc": "1.000",
    "valid_until": None,
}
RIVAL = {**FACT, "id": "b", "value": {"type": "string", "v": "Assam, black"}, "confidence": 0.4}
CONFLICT = {"conflict_id": "k", "fact_a": "a", "fact_b": "b", "status": "resolved", "resolution_fact": "r"}
OPTIONS = {"entity": "--entity", "relation": "--relation", "min_confidence": "--min-confidence"}


class Asking(Panda):
    """Runs `panda synthesize` on a file of facts."""

    def ask(self, document: object, *words: str) -> Ended:
        """Put the document into the file, and ask."""
        self.write("facts.json", document if isinstance(document, str) else json.dumps(document))
        return self("synthesize", *words, "--facts", "facts.json")


@pytest.fixture
def panda(tmp_path: Path) -> Asking:
    """A project without a store."""
    return Asking(tmp_path / "project", PANDA_NOW=NOW_TEXT)


def words_of(vector: Vector) -> list[str]:
    """The command line of a request."""
    request = dict(vector.request)
    words = ["--scope", request.pop("scope")]
    if request.pop("include_expired", False):
        words.append("--include-expired")
    if "as_of" in request:
        words += ["--as-of", request.pop("as_of")]
    return words + [part for key, value in request.items() for part in (OPTIONS[key], str(value))]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_vectors(vector: Vector, panda: Asking) -> None:
    """`--json` gives each worked case's envelope as its data."""
    vector.check(panda.ask(vector.document, *words_of(vector), "--json").data)


VALUES: tuple[dict[str, Any], ...] = (
    {"type": "string", "v": "a"},
    {"type": "number", "v": 1},
    {"type": "number", "v": 1.0},
    {"type": "boolean", "v": True},
    {"type": "datetime", "v": "2026-01-01T00:00:00Z"},
    {"type": "datetime", "v": "2026-01-01T01:00:00+01:00"},
    {"type": "null", "v": None},
    {"type": "list", "v": ["a", 1]},
)
EXPIRED = "2026-06-01T11:59:59Z"


@st.composite
def documents(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """A few facts that collide in every way, and conflict records among them, in circles too."""
    facts = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "entity": st.sampled_from(("user:ann", "acme", "panda:resolution:k")),
                    "relation": st.sampled_from(("tea", "tea", "panda:x")),
                    "value": st.sampled_from(VALUES),
                    "source": st.just("turn:1"),
                    "confidence": st.sampled_from((0.0, 0.4, 0.9)),
                    "scope": st.sampled_from(("local", "local", "team")),
                    "hlc": st.sampled_from((None, "1.0", "1.000", "1.1", "2.0")),
                    "valid_until": st.sampled_from((None, NOW_TEXT, EXPIRED)),
                }
            ),
            max_size=10,
        )
    )
    facts = [{**fact, "id": f"f{number}"} for number, fact in enumerate(facts)]
    ids = st.sampled_from([*(fact["id"] for fact in facts), "nobody"])
    status = st.sampled_from(("resolved", "open"))
    record = {
        "conflict_id": st.just("k"),
        "fact_a": ids,
        "fact_b": ids,
        "status": status,
        "resolution_fact": ids,
    }
    return {"facts": facts, "conflicts": draw(st.lists(st.fixed_dictionaries(record), max_size=5))}


PROPERTY = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@PROPERTY
@given(documents(), st.randoms(use_true_random=False), st.sampled_from([(), ("--include-expired",)]))
def test_order_and_repetition_do_not_matter(
    panda: Asking, document: dict[str, list[Any]], chance: Random, words: tuple[str, ...]
) -> None:
    """The answer is the same for every order, and for facts and conflicts told twice."""
    first = panda.ask(document, "--scope", "local", "--json", *words).data
    again = {name: values * 2 for name, values in document.items()}
    for values in again.values():
        chance.shuffle(values)
    assert panda.ask(again, "--scope", "local", "--json", *words).data == first


@PROPERTY
@given(documents())
def test_no_entry_comes_from_a_silenced_fact(panda: Asking, document: dict[str, list[Any]]) -> None:
    """Whatever conflicts say, no value is that of a retraction, or of an expired or other scope's fact."""
    data = panda.ask(document, "--scope", "local", "--json").data
    live = [
        fact
        for fact in document["facts"]
        if fact["scope"] == "local" and fact["confidence"] > 0 and fact["valid_until"] != EXPIRED
    ]
    resolutions = {conflict["resolution_fact"] for conflict in document["conflicts"]}
    for entry in data["summary"]:
        about = [fact for fact in document["facts"] if is_about(fact, entry) and fact["scope"] == "local"]
        silence = [
            clock_of(fact) for fact in about if fact["confidence"] == 0 and fact["id"] not in resolutions
        ]
        sources = [fact for fact in live if fact["confidence"] == entry["confidence"]]
        assert any(all(clock_of(fact) > silent for silent in silence) for fact in sources), entry
        assert not entry["entity"].startswith("panda:resolution")


def is_about(fact: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Return whether a fact speaks of the entity and relation of an entry."""
    return (fact["entity"], fact["relation"]) == (entry["entity"], entry["relation"])


def clock_of(fact: dict[str, Any]) -> tuple[int, int]:
    """Return the clock of a fact; one without a clock is older than all others."""
    if fact["hlc"] is None:
        return (-2, 0)
    seconds, _, count = fact["hlc"].partition(".")
    return (int(seconds), int(count))


@PROPERTY
@given(documents())
def test_answers_confirm_themselves(panda: Asking, document: dict[str, list[Any]]) -> None:
    """The winners alone, as facts, give the same entries without a contradiction."""
    summary = panda.ask(document, "--scope", "local", "--json").data["summary"]
    keys = ("entity", "relation", "value", "confidence", "scope", "hlc")
    winners = [
        {"id": str(number), "source": None, "valid_until": None, **{key: entry[key] for key in keys}}
        for number, entry in enumerate(summary)
    ]
    again = panda.ask({"facts": winners}, "--scope", "local", "--json").data["summary"]
    assert again == [{**{key: entry[key] for key in keys}, "contradicted": False} for entry in summary]


def test_storm_of_weak_rivals(panda: Asking) -> None:
    """200 weak rivals, each with a value of its own and a later clock, leave the winner and one mark."""
    rivals = [
        {
            **FACT,
            "id": f"r{n}",
            "value": {"type": "string", "v": f"rival {n}"},
            "confidence": 0.3,
            "hlc": f"9.{n:03}",
        }
        for n in range(200)
    ]
    winner = {**FACT, "id": "w", "value": {"type": "string", "v": "winner"}, "confidence": 0.41}
    document = {"facts": [*rivals, winner]}
    data = panda.ask(document, "--scope", "local", "--json").data
    (entry,) = data["summary"]
    assert (entry["value"]["v"], entry["alt_value"]["v"]) == ("winner", "rival 199")
    assert (data["fact_count"], data["contradiction_count"]) == (201, 1)
    weak = panda.ask(document, "--scope", "local", "--min-confidence", "0.5", "--json").data
    assert (weak["summary"], weak["filtered_count"]) == ([], 1)


def test_ranking_of_ties(panda: Asking) -> None:
    """Higher confidence wins, then the later clock, then the smaller value; 1 and 1.0 do not contradict."""
    number = {**FACT, "value": {"type": "number", "v": 1.0}}
    same = {**number, "id": "b", "value": {"type": "number", "v": 1}}
    empty = {**number, "id": "c", "value": {"type": "list", "v": []}}
    for rivals, value, contradicted in (
        ([number, same], 1, False),
        ([same, empty], [], True),
        ([{**same, "hlc": "2.0"}, empty], 1, True),
        ([{**same, "hlc": "2.0"}, {**empty, "confidence": 0.91}], [], True),
    ):
        (entry,) = panda.ask({"facts": rivals}, "--scope", "local", "--json").data["summary"]
        assert (entry["value"]["v"], entry["contradicted"]) == (value, contradicted)


def test_contradiction_stands_out(panda: Asking) -> None:
    """A contradicted entry shows the mark and both values, with types where they look alike."""
    ended = panda.ask({"facts": [RIVAL, FACT, {**FACT, "id": "c", "relation": "cup"}]}, "--scope", "local")
    assert ended.rows == [
        "user:default\tcup\tAssam, black\t0.9\t\t\t",
        "user:default\ttea\tAssam, black (text)\t0.9\tCONTRADICTED\tAssam, black (string)\t0.4",
    ]
    assert ended.err == "scope local: 3 facts, 2 entries, 1 contradicted\n"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--scope", "planet"), "--scope"),
        (("--scope", "local", "--entity", " \t"), "--entity"),
        (("--scope", "local", "--relation", ""), "--relation"),
        (("--scope", "local", "--min-confidence", "nan"), "--min-confidence"),
        (("--scope", "local", "--min-confidence", "1.01"), "--min-confidence"),
        (("--scope", "local", "--as-of", "soon"), "--as-of"),
    ],
)
def test_wrong_options(words: tuple[str, ...], option: str, panda: Asking) -> None:
    """A wrong option is an error that names it, also as JSON."""
    assert f"where: {option}\n" in panda.ask({"facts": []}, *words).err
    ended = panda.ask({"facts": []}, *words, "--json")
    assert (ended.code, ended.error["where"]) == (2, option)


def test_scope_is_needed(panda: Asking) -> None:
    """Without a scope nothing is shown."""
    assert panda.ask({"facts": []}).code == 2


WRONG_FIELDS: list[tuple[str, list[object]]] = [
    ("id", [None, " \t", 7]),
    ("entity", [None, " \t", 7]),
    ("relation", [None, " \t", 7]),
    ("source", [7]),
    ("confidence", [None, -0.001, 1.001, True, "0.5", [0.5], 10**20, 10**400]),
    ("scope", [None, " \t", 7, "Local", "global", ["local"]]),
    ("hlc", [" \t", 7, "1", "1.", ".1", "-1.0", "1.0.0", "1e3.0", "²3.0"]),
    ("valid_until", [" \t", 7, "soon", "2026-13-01", "2026-01-01T25:00:00", True]),
]
WRONG_VALUES: list[object] = [
    None,
    7,
    {},
    {"v": "x"},
    {"type": "string"},
    {"type": "text", "v": None},
    {"type": "String", "v": "x"},
    {"type": ["string"], "v": "x"},
    {"type": "string", "v": "x", "unit": "kg"},
    {"type": "null", "v": 0},
    {"type": "boolean", "v": 1},
    {"type": "boolean", "v": "true"},
    {"type": "number", "v": True},
    {"type": "number", "v": "1"},
    {"type": "datetime", "v": "yesterday"},
    {"type": "datetime", "v": 1780315200},
    {"type": "ref", "v": " "},
    {"type": "list", "v": "a"},
    {"type": "list", "v": [["a"]]},
    {"type": "list", "v": [{"type": "string", "v": "a"}]},
    "Assam",
    ["string", "Assam"],
]
WRONG_DOCUMENTS: list[tuple[object, str]] = [
    ([], "facts"),
    ({}, "facts"),
    ({"facts": {}}, "facts"),
    ({"facts": [3]}, "facts[0]"),
    ({"facts": [], "conflicts": {}}, "conflicts"),
    ({"facts": [], "conflicts": ["k"]}, "conflicts[0]"),
    ({"facts": [], "conflicts": [{**CONFLICT, "fact_b": 3}]}, "conflicts[0].fact_b"),
    ({"facts": [], "conflicts": [{**CONFLICT, "status": None}]}, "conflicts[0].status"),
    ({"facts": [], "conflicts": [{**CONFLICT, "resolution_fact": None}]}, "conflicts[0].resolution_fact"),
    ({"facts": [FACT, {**FACT, "source": "else"}]}, "facts[1].id"),
]


def test_wrong_facts_are_named(panda: Asking) -> None:
    """A wrong or missing field, value or record is an error that names its index and key; NaN is no JSON."""
    wrong = [
        *WRONG_DOCUMENTS,
        *(
            ({"facts": [FACT, {**RIVAL, key: value}]}, f"facts[1].{key}")
            for key, values in WRONG_FIELDS
            for value in values
        ),
        *(({"facts": [FACT, {**RIVAL, "value": value}]}, "facts[1].value") for value in WRONG_VALUES),
        *(
            ({"facts": [{name: FACT[name] for name in FACT if name != key}]}, f"facts[0].{key}")
            for key in FACT
            if key not in ("hlc", "valid_until")
        ),
    ]
    for document, place in wrong:
        ended = panda.ask(document, "--scope", "local", "--json")
        assert ended.code == 2, document
        assert ended.error["where"].removeprefix("facts.json (").startswith(place), (document, ended.error)
    assert "NaN is no JSON number" in panda.ask('{"facts": [NaN]}', "--scope", "local").err
    assert panda.ask("[", "--scope", "local").code == 2


def test_more_than_is_needed(panda: Asking) -> None:
    """Other keys are ignored, a clock and an end may be missing, a fact told twice, a number large."""
    small = {key: value for key, value in FACT.items() if key not in ("hlc", "valid_until")}
    large = {"type": "number", "v": 10**400}
    facts = [{**small, "value": large, "kind": "fact"}, {**small, "value": large}]
    data = panda.ask({"facts": facts, "now": "x"}, "--scope", "local", "--json").data
    assert [entry["value"]["v"] for entry in data["summary"]] == [10**400]


def test_memory_of_the_user(panda: Asking) -> None:
    """Without --facts the user's memory is asked: log, conflict records, and what was just edited by hand."""
    words = ("synthesize", "--scope", "local", "--user", "ann")
    assert panda(*words).code == 2
    ann = panda.store / "users/ann"
    ann.mkdir(parents=True)
    assert panda.json(*words)["fact_count"] == 0
    more = {"kind": "fact", "source_turn": 1, "asserted_at": NOW_TEXT, "content_type": "general_fact"}
    log = panda.write_lines("store/users/ann/memory.jsonl", {**FACT, **more}, {**RIVAL, **more})
    assert panda.json(*words)["contradiction_count"] == 1
    settled = {"conflict_id": "k", "fact_a": "a", "fact_b": "b", "status": "resolved", "resolution_fact": "b"}
    panda.write_lines("store/users/ann/conflicts.jsonl", settled)
    (entry,) = panda.json(*words)["summary"]
    assert (entry["value"]["type"], entry["contradicted"]) == ("string", False)
    before = tree(panda.store)
    (ann / "preferences.md").write_text("---\ncup: blue\n---\n", encoding="utf-8")
    entries = panda.json(*words)["summary"]
    by_hand = [(entry["entity"], entry["relation"], entry["value"]["v"]) for entry in entries]
    assert ("user:ann", "cup", "blue") in by_hand
    (ann / "preferences.md").unlink()
    assert tree(panda.store) == before
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**FACT, **more, "id": "c", "scope": "world"}) + "\n")
    ended = panda(*words, "--json")
    assert ended.error["where"].startswith(f"{log}:3")
