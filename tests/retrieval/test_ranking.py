"""What is found, and in which order."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from panda.retrieval.ranking import Bounds, rank_rows
from panda.retrieval.research import find_research
from panda.storage.index import Index
from panda.storage.layout import Layout
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
    path = layout.knowledge("ann") / "pets.md"
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


def test_research_by_topic_and_words(layout: Layout, index: Index) -> None:
    """Research is looked up by topic or words; its quality is told as decayed, its expiry as it is."""
    fields = {
        "quality_score": 0.9,
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
    }
    write_research(layout, 1, {"topic": "pets.hamster", "summary": "Wheels compared", **fields})
    write_research(layout, 2, {"topic": "commerce.laptop", "summary": "Prices"})
    index.freshen("ann")
    now = datetime(2026, 2, 1, tzinfo=UTC)
    (by_topic,) = index.read("ann", lambda view: find_research(view, now, topic="pets.hamster"))
    (by_words,) = index.read("ann", lambda view: find_research(view, now, words="which wheel is best"))
    everything = index.read("ann", lambda view: find_research(view, now))
    assert by_topic == by_words
    assert (by_topic.is_expired, round(by_topic.quality or 0, 2)) == (True, 0.62)
    assert [one.entry.topic for one in everything] == ["pets.hamster", "commerce.laptop"]


@pytest.mark.parametrize(
    "query", ["", " ", '"', "a AND", "NEAR(", "*", "\0", "999999 months ago", "in the year 0000"]
)
def test_any_query_is_a_query(layout: Layout, index: Index, query: str) -> None:
    """No text is a syntax error."""
    write_turn(layout, 1, query="apple", response="x")
    assert isinstance(found(index, query), list)
