"""What is found, and in which order."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from panda.actions.search import find_research
from panda.index.index import Index
from panda.retrieval.ranking import Bounds, Ranked, rank_rows, searched_words
from panda.store.layout import Layout
from tests.stores import NOW, write_research, write_turn


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def index(layout: Layout) -> Iterator[Index]:
    index = Index(layout)
    yield index
    index.close()


def found(index: Index, query: str, now: datetime | None = None, bounds: Bounds | None = None) -> list[str]:
    index.freshen("ann")
    ranked = index.read("ann", lambda view: rank_rows(view, query, now=now, bounds=bounds or Bounds()))
    return [one.entry.node_id for one in ranked]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I was running home", "run"),
        ("Das Café am Eck", "cafe"),
        ("An RTX 4060 with 16GB", "16gb"),
        ("東京都に行きました", "東京"),
        ("猫が好き", "猫"),
        ("ภาษาไทยสนุก", "ภาษา"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("owns_macbook_pro", "macbook"),
    ],
)
def test_words_are_found(layout: Layout, index: Index, text: str, query: str) -> None:
    """Other endings, accents, units, and words of scripts without spaces."""
    write_turn(layout, 1, query=text, response="x", session="a")
    write_turn(layout, 2, query="something else", response="x", session="b")
    assert found(index, query) == ["turn:1"]


def test_neighbours_of_the_session(layout: Layout, index: Index) -> None:
    """A turn is found through its neighbours, the previous one before the next, and never across sessions."""
    for number, text in ((1, "nothing"), (2, "hamster"), (3, "nothing"), (4, "nothing")):
        write_turn(layout, number, query=text, response="x", session="b" if number == 4 else "a")
    assert found(index, "hamster") == ["turn:2", "turn:3", "turn:1"]
    write_turn(layout, 9, query="hamster", response="x", session="b")
    assert set(found(index, "hamster")) == {"turn:2", "turn:3", "turn:1", "turn:4", "turn:9"}


def test_relative_dates(layout: Layout, index: Index) -> None:
    """The words "last week" find the turns of that week, as of the time given or of the newest turn."""
    for number, days in ((1, 0), (2, 7), (3, 14)):
        write_turn(
            layout,
            number,
            query="we talked",
            response="x",
            at=NOW + timedelta(days=days),
            session=f"{number}",
        )
    assert found(index, "What did we do last week?", NOW + timedelta(days=14))[0] == "turn:2"
    assert found(index, "What did we do last week?", NOW + timedelta(days=7))[0] == "turn:1"
    assert found(index, "what was last week")[0] == "turn:2"


def test_who_said_it(layout: Layout, index: Index) -> None:
    """Of turns with the same words, the one in which the named person says them comes first."""
    write_turn(layout, 1, query="Mel: I bought a kayak", response="Ann: Nice, Ann here", session="a")
    write_turn(layout, 2, query="Mel: Nice, Mel here", response="Ann: I bought a kayak", session="b")
    assert found(index, "When did Ann buy a kayak?")[0] == "turn:2"
    assert found(index, "When did Mel buy a kayak?")[0] == "turn:1"


def test_knowledge_by_section(layout: Layout, index: Index) -> None:
    """A long document is found by the section that speaks of the query."""
    path = layout.of("ann").knowledge / "pets.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Pets\nGeneral.\n\n## Hamsters\nThey need wheels.\n\n## Birds\nThey fly.\n", "utf-8")
    index.freshen("ann")
    query = "do hamsters need wheels"
    first = index.read("ann", lambda view: rank_rows(view, query, bounds=Bounds())[0].entry)
    assert (first.node_id, first.header) == ("knowledge:pets.md", "Knowledge pets.md: pets > Pets > Hamsters")


def test_bounds(layout: Layout, index: Index) -> None:
    """Sessions, times and turn numbers bound what is found."""
    for number in (1, 2, 3):
        write_turn(layout, number, query="apple", response="x", at=NOW + timedelta(days=number), session="s")
    write_turn(layout, 4, query="apple", response="x", session="t")
    assert set(found(index, "apple", bounds=Bounds(session="s"))) == {"turn:1", "turn:2", "turn:3"}
    assert found(index, "apple", bounds=Bounds(since=NOW + timedelta(days=3))) == ["turn:3"]
    assert set(found(index, "apple", bounds=Bounds(before_turn=3))) == {"turn:1", "turn:2"}
    assert found(index, "apple", bounds=Bounds(session="unknown")) == []


def test_research_is_told_as_it_is_now(layout: Layout, index: Index) -> None:
    """The quality of research is told as decayed, its expiry as it is."""
    fields = {
        "quality_score": 0.9,
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
    }
    write_research(layout, 1, {"topic": "pets.hamster", "summary": "Wheels compared", **fields})
    write_research(layout, 2, {"topic": "commerce.laptop", "summary": "Prices"})
    index.freshen("ann")
    now = datetime(2026, 2, 1, tzinfo=UTC)
    found = index.read("ann", lambda view: find_research(view, now))
    assert (found[0].is_expired, round(found[0].quality or 0, 2)) == (True, 0.62)
    assert [one.entry.node_id for one in found] == ["research:pets.hamster", "research:commerce.laptop"]


@pytest.mark.parametrize(
    "query", ["", " ", '"', "a AND", "NEAR(", "*", "\0", "999999 months ago", "in the year 0000"]
)
def test_any_query_is_a_query(layout: Layout, index: Index, query: str) -> None:
    """No text is a syntax error."""
    write_turn(layout, 1, query="apple", response="x")
    assert isinstance(found(index, query), list)


def ranked(index: Index, query: str, now: datetime | None = None) -> dict[str, Ranked]:
    """What is found, by node, in order."""
    index.freshen("ann")
    rows = index.read("ann", lambda view: rank_rows(view, query, now=now, bounds=Bounds()))
    return {one.entry.node_id: one for one in rows}


def test_score_of_words(layout: Layout, index: Index) -> None:
    """A turn's score is BM25 (1.2, 0.75) of its words, the previous turn's half, the next's a fifth."""
    texts = ("apple pie", "apple apple pear tart with cream", "plum cake")
    for number, text in enumerate(texts, 1):
        write_turn(layout, number, query=text, response="x", session="a")
    write_turn(layout, 4, query="apple", response="x", session="b")
    found = ranked(index, "apple")
    lengths = [float(one) for one in index.read("ann", lambda view: list(view.statistics.lengths))]
    mean = sum(lengths) / 4
    around = [
        lengths[0] + 0.5 * mean + 0.2 * lengths[1],
        lengths[1] + 0.5 * lengths[0] + 0.2 * lengths[2],
        lengths[2] + 0.5 * lengths[1] + 0.2 * mean,
        lengths[3] + 0.7 * mean,
    ]
    counts = [1 + 0.2 * 2, 2 + 0.5 * 1, 0.5 * 2, 1]
    weight = math.log1p((4 - 3 + 0.5) / (3 + 0.5))
    for number, (count, size) in enumerate(zip(counts, around, strict=True), 1):
        norm = 1.2 * (0.25 + 0.75 * size / (1.7 * mean))
        assert found[f"turn:{number}"].bm25 == pytest.approx(weight * 2.2 * count / (count + norm), rel=1e-4)
    scores = [one.score for one in found.values()]
    assert scores == sorted(scores, reverse=True)


def test_score_of_a_period(layout: Layout, index: Index) -> None:
    """A named day adds half a term's weight to its turns, a quarter to those of the seven days after it."""
    day = datetime(2026, 1, 5, tzinfo=UTC)
    for number, hours in enumerate((-1, 0, 23, 24, 24 * 8 - 1, 24 * 8), 1):
        write_turn(
            layout, number, query="talk", response="x", at=day + timedelta(hours=hours), session=f"{number}"
        )
    found = ranked(index, "on 2026-01-05", day + timedelta(days=30))
    weight = 0.5 * math.log1p((6 - 4 + 0.5) / (4 + 0.5))
    points = {node: one.bonuses["period"] for node, one in found.items() if "period" in one.bonuses}
    assert points == {
        "turn:2": pytest.approx(weight),
        "turn:3": pytest.approx(weight),
        "turn:4": pytest.approx(weight / 2),
        "turn:5": pytest.approx(weight / 2),
    }


@pytest.mark.parametrize(
    ("query", "words"),
    [("apple of last week", ["apple"]), ("last week", []), ("who are you?", ["who", "are", "you"])],
)
def test_words_of_a_time_are_not_searched(query: str, words: list[str]) -> None:
    """The words "last week" are no words to look for; the commonest ones are, if nothing else is there."""
    assert searched_words(query, NOW) == words


def test_who_is_meant_by_pronouns(layout: Layout, index: Index) -> None:
    """What "I" said is in the user's part of a turn, what "you" said in the reply: a bonus of half."""
    write_turn(layout, 1, query="kayak", response="Nice.", session="a")
    write_turn(layout, 2, query="Nice.", response="kayak", session="b")
    mine, yours = ranked(index, "did I mention a kayak"), ranked(index, "did you mention a kayak")
    assert (next(iter(mine)), next(iter(yours))) == ("turn:1", "turn:2")
    assert mine["turn:1"].bonuses == {"speaker": pytest.approx(1.5)}
    assert mine["turn:2"].bonuses == {}
    assert mine["turn:1"].score == pytest.approx(1.5 * mine["turn:1"].bm25)


def test_kind_of_answer(layout: Layout, index: Index) -> None:
    """A question for a time or a number prefers turns that hold one."""
    write_turn(layout, 1, query="the kayak", response="It was in 2023.", session="a")
    write_turn(layout, 2, query="the kayak", response="It was fun, really.", session="b")
    found = ranked(index, "when was the kayak")
    assert found["turn:1"].bonuses["answer"] == pytest.approx(1.2)
    assert "answer" not in found["turn:2"].bonuses
    assert "answer" not in ranked(index, "where was the kayak")["turn:1"].bonuses
    assert ranked(index, "how many kayaks")["turn:1"].bonuses["answer"] == pytest.approx(1.2)


def test_words_near_each_other(layout: Layout, index: Index) -> None:
    """Words of the query within eight terms of each other count a fifth more."""
    between = " ".join(f"word{n}" for n in range(20))
    write_turn(layout, 1, query=f"red {between} kayak", response="x", session="a")
    write_turn(layout, 2, query=f"red kayak {between}", response="x", session="b")
    found = ranked(index, "red kayak")
    assert found["turn:2"].bonuses == {"nearness": pytest.approx(1.2)}
    assert found["turn:1"].bonuses == {}
