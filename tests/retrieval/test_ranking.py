"""What `panda index search` finds, and in which order."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda
from tests.store_files import NOW, render_instant, write_note, write_research, write_turn


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project of ann without a turn, that searches by words alone."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.user_directory.mkdir(parents=True)
    panda.write("models.yaml", "models: {}\nlayers: {}\nencoder: null\n")
    return panda


def save(panda: Panda, number: int, query: str, response: str = "x", session: str = "", **more: Any) -> None:
    """Save a turn, in a session of its own unless one is named."""
    write_turn(
        panda.user_directory,
        number,
        query=query,
        response=response,
        session=session or f"s{number}",
        **more,
    )


def search(panda: Panda, query: str, *words: str, now: datetime = NOW) -> dict[str, dict[str, Any]]:
    """Return what is found, by node, best first."""
    environ = {"PANDA_NOW": render_instant(now)}
    data = panda.json("index", "search", *words, "--explain", query, **environ)
    return {result["node_id"]: result for result in data["results"]}


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
def test_words_are_found(panda: Panda, text: str, query: str) -> None:
    """Other endings, accents, units, and words of scripts without spaces."""
    save(panda, 1, text)
    save(panda, 2, "something else")
    assert list(search(panda, query)) == ["turn:1"]


def test_neighbours_of_the_session(panda: Panda) -> None:
    """A turn is found through its neighbours, the previous one before the next, and never across sessions."""
    for number, text in ((1, "nothing"), (2, "hamster"), (3, "nothing"), (4, "nothing")):
        save(panda, number, text, session="b" if number == 4 else "a")
    assert list(search(panda, "hamster")) == ["turn:2", "turn:3", "turn:1"]
    save(panda, 9, "hamster", session="b")
    assert set(search(panda, "hamster")) == {"turn:2", "turn:3", "turn:1", "turn:4", "turn:9"}


def test_relative_dates(panda: Panda) -> None:
    """The words "last week" find the turns of that week, as of now."""
    for number, days in ((1, 0), (2, 7), (3, 14)):
        save(panda, number, "we talked", at=NOW + timedelta(days=days))
    query = "What did we do last week?"
    assert next(iter(search(panda, query, now=NOW + timedelta(days=14)))) == "turn:2"
    assert next(iter(search(panda, query, now=NOW + timedelta(days=7)))) == "turn:1"


def test_who_said_it(panda: Panda) -> None:
    """Of turns with the same words, the one in which the named person says them comes first."""
    save(panda, 1, "Mel: I bought a kayak", "Ann: Nice, Ann here")
    save(panda, 2, "Mel: Nice, Mel here", "Ann: I bought a kayak")
    assert next(iter(search(panda, "When did Ann buy a kayak?"))) == "turn:2"
    assert next(iter(search(panda, "When did Mel buy a kayak?"))) == "turn:1"


def test_knowledge_by_section(panda: Panda) -> None:
    """A long document is found by the section that speaks of the query."""
    note = "# Pets\nGeneral.\n\n## Hamsters\nThey need wheels.\n\n## Birds\nThey fly.\n"
    write_note(panda.user_directory, "pets.md", note)
    result = search(panda, "do hamsters need wheels")["knowledge:pets.md"]
    assert result["header"] == "Knowledge pets.md: pets > Pets > Hamsters"


def test_bounds(panda: Panda) -> None:
    """Session and time bound what is found."""
    for number in (1, 2, 3):
        save(panda, number, "apple", at=NOW + timedelta(days=number), session="s")
    save(panda, 4, "apple", session="t")
    assert set(search(panda, "apple", "--session", "s")) == {"turn:1", "turn:2", "turn:3"}
    since = render_instant(NOW + timedelta(days=3))
    assert list(search(panda, "apple", "--since", since)) == ["turn:3"]
    assert search(panda, "apple", "--session", "unknown") == {}


def test_research_is_told_as_it_is_now(panda: Panda) -> None:
    """The quality of research is told as decayed, its expiry as it is."""
    times = {"created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z"}
    write_turn(panda.user_directory, 1, query="pets", response="x")
    write_research(panda.user_directory, 1, topic="pets.hamster", summary="Wheels compared", **times)
    result = search(panda, "wheels", now=datetime(2026, 2, 1, tzinfo=UTC))["research:pets.hamster"]
    assert (result["research"]["expired"], result["research"]["quality"]) == (True, 0.62)


def test_any_query_is_a_query(panda: Panda) -> None:
    """No text is a syntax error."""
    save(panda, 1, "apple")
    for query in ('"', "a AND", "NEAR(", "*", "999999 months ago", "in the year 0000"):
        assert panda("index", "search", "--", query).code == 0, query


def test_score_of_words(panda: Panda) -> None:
    """A turn's score is BM25 (1.2, 0.75) of its words, the previous turn's half, the next's a fifth."""
    for number, text in enumerate(("apple pie", "apple apple pear tart with cream", "plum cake"), 1):
        save(panda, number, text, session="a")
    save(panda, 4, "apple", session="b")
    results = search(panda, "apple")
    lengths = [7, 11, 7, 6]  # terms of query and reply, and four of date and session
    mean = sum(lengths) / 4
    around = [
        lengths[0] + 0.5 * mean + 0.2 * lengths[1],
        lengths[1] + 0.5 * lengths[0] + 0.2 * lengths[2],
        lengths[2] + 0.5 * lengths[1] + 0.2 * mean,
        lengths[3] + 0.7 * mean,
    ]
    weight = math.log1p((4 - 3 + 0.5) / (3 + 0.5))
    for number, count in enumerate((1 + 0.2 * 2, 2 + 0.5 * 1, 0.5 * 2, 1), 1):
        norm = 1.2 * (0.25 + 0.75 * around[number - 1] / (1.7 * mean))
        score = weight * 2.2 * count / (count + norm)
        assert results[f"turn:{number}"]["why"]["bm25"] == pytest.approx(score, abs=1e-4), number
    scores = [result["score"] for result in results.values()]
    assert scores == sorted(scores, reverse=True)


def test_score_of_a_period(panda: Panda) -> None:
    """A named day adds half a term's weight to its turns, a quarter to those of the seven days after it."""
    day = datetime(2026, 1, 5, tzinfo=UTC)
    for number, hours in enumerate((-1, 0, 23, 24, 24 * 8 - 1, 24 * 8), 1):
        save(panda, number, "talk", at=day + timedelta(hours=hours))
    results = search(panda, "on 2026-01-05", now=day + timedelta(days=30))
    weight = 0.5 * math.log1p((6 - 4 + 0.5) / (4 + 0.5))
    bonuses = {node_id: result["why"]["bonuses"] for node_id, result in results.items()}
    points = {node_id: bonus["period"] for node_id, bonus in bonuses.items() if "period" in bonus}
    assert points == {
        "turn:2": pytest.approx(weight, abs=0.01),
        "turn:3": pytest.approx(weight, abs=0.01),
        "turn:4": pytest.approx(weight / 2, abs=0.01),
        "turn:5": pytest.approx(weight / 2, abs=0.01),
    }


def bonuses(panda: Panda, query: str) -> dict[str, dict[str, float]]:
    """Return the bonuses of what is found, by node, best first."""
    return {node_id: result["why"]["bonuses"] for node_id, result in search(panda, query).items()}


def test_who_is_meant_by_pronouns(panda: Panda) -> None:
    """What "I" said is in the user's part of a turn, what "you" said in the reply: a bonus of half."""
    save(panda, 1, "kayak", "Nice.")
    save(panda, 2, "Nice.", "kayak")
    mine = bonuses(panda, "did I mention a kayak")
    yours = bonuses(panda, "did you mention a kayak")
    assert (next(iter(mine)), next(iter(yours))) == ("turn:1", "turn:2")
    assert mine == {"turn:1": {"speaker": 1.5}, "turn:2": {}}
    result = search(panda, "did I mention a kayak")["turn:1"]
    assert result["score"] == pytest.approx(1.5 * result["why"]["bm25"], abs=1e-3)


def test_kind_of_answer(panda: Panda) -> None:
    """A question for a time or a number prefers turns that hold one."""
    save(panda, 1, "the kayak", "It was in 2023.")
    save(panda, 2, "the kayak", "It was fun, really.")
    when = bonuses(panda, "when was the kayak")
    assert when["turn:1"]["answer"] == 1.2
    assert "answer" not in when["turn:2"]
    assert "answer" not in bonuses(panda, "where was the kayak")["turn:1"]
    assert bonuses(panda, "how many kayaks")["turn:1"]["answer"] == 1.2


def test_words_near_each_other(panda: Panda) -> None:
    """Words of the query within eight terms of each other count a fifth more."""
    between = " ".join(f"word{n}" for n in range(20))
    save(panda, 1, f"red {between} kayak")
    save(panda, 2, f"red kayak {between}")
    assert bonuses(panda, "red kayak") == {"turn:2": {"nearness": 1.2}, "turn:1": {}}


@pytest.mark.parametrize(
    ("query", "numbers"),
    [("apple of last week", [1, 2]), ("last week", [2]), ("who are you?", [3])],
)
def test_words_of_a_time_are_not_searched(panda: Panda, query: str, numbers: list[int]) -> None:
    """The words "last week" are no words to look for; the commonest ones are, if nothing else is there."""
    save(panda, 1, "apple pie", at=NOW - timedelta(days=60))
    save(panda, 2, "plums", at=NOW - timedelta(days=7))
    save(panda, 3, "who are you? last of the week", at=NOW - timedelta(days=60))
    assert sorted(search(panda, query)) == [f"turn:{number}" for number in numbers]
