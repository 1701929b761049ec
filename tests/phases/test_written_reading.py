"""Phase 0 with a model that writes, on a server: it fills the reading itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.models.contract import GenerateParams
from panda.models.openai import OpenAiModel
from panda.session.file import load_session
from tests.builders import file_of
from tests.loopback import Server
from tests.script import APPROVED, PRICE, Script
from tests.scripted_model import Asked
from tests.scripted_turns import Preferring, Ran, laptop_store, run_turn
from tests.served_turns import Served

NOTHING: dict[str, Any] = {
    "clauses": [],
    "mood": "asks",
    "references": [],
    "exclusions": [],
    "clears": None,
    "periods": [],
    "limits": [],
    "agreement": None,
    "recap": False,
    "all": False,
    "statements": [],
}


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on loopback."""
    running = Server()
    yield running
    running.close()


def say(server: Server, layout: Any, query: str, reading: object, **analyzer: Any) -> Ran:
    """One turn whose query a served model reads as given."""
    replies = {**APPROVED["analyzer"], **analyzer, "reading": reading}
    if reading == "absent":
        del replies["reading"]
    script = Script(analyzer=replies, answer={"items": []})
    return run_turn(layout, query, model=Served(server, script))


def kept(ran: Ran) -> dict[str, Any]:
    """The reading of a turn."""
    found: dict[str, Any] = file_of(ran.folder, "query_analysis.json")["reading"]
    return found


def first_turn(server: Server, tmp_path: Path) -> tuple[Any, str]:
    """A store whose session has spoken of a laptop, and that laptop's ref."""
    layout = laptop_store(tmp_path)
    ran = run_turn(layout, model=Served(server, Script()))
    assert ran.error is None, ran.error
    session = load_session(layout.of("ann"), "default")
    assert session is not None
    refs = [one.ref for one in session.carry.registry.records if "LOQ" in one.label]
    return layout, refs[0]


def test_reading_is_the_models(server: Server, tmp_path: Path) -> None:
    """Every part of a written reading holds, whatever rules would say; the choices are not asked for."""
    layout, ref = first_turn(server, tmp_path)
    query = "No, not that Lenovo! Anna moved to Bern. List every tent under $90 that I saw last week."
    reading: dict[str, Any] = {
        "clauses": [{"text": "No, not that Lenovo!", "mood": "orders"}],
        "mood": "orders",
        "references": [{"words": "that Lenovo", "refs": [ref]}],
        "exclusions": [{"ref": ref, "action": "drop", "words": "not that Lenovo"}],
        "clears": None,
        "periods": [{"start": "2026-01-02", "end": "2026-01-03", "words": "last week"}],
        "limits": [{"text": "under $90", "key": "budget_max", "value": "USD 90"}],
        "agreement": None,
        "recap": False,
        "all": False,
        "statements": [
            {"text": "Anna moved to Bern.", "key": "town", "value": "Bern", "entity": "Anna", "action": None}
        ],
    }
    ran = say(server, layout, query, reading, resolved_query="Which tents under $90?")
    assert ran.error is None, ran.error
    shown = {"statements": [{name: v for name, v in reading["statements"][0].items() if v is not None}]}
    assert kept(ran) == {name: v for name, v in {**reading, **shown}.items() if v not in (None, [], False)}
    analysis = file_of(ran.folder, "query_analysis.json")
    assert analysis["resolved_query"] == "Which tents under $90?"
    assert analysis["references"] == [ref]
    assert analysis["constraints"] == [{"key": "budget_max", "value": "USD 90", "text": "under $90"}]
    dropped = file_of(ran.folder, "reflection.json")["entity_curation"]["dropped"]
    assert [(one["ref"], one["reason"]) for one in dropped] == [(ref, "the user said “not that Lenovo”")]
    assert file_of(ran.folder, "staged_memory.json")["noted"][0]["node_id"] == "fact:anna#town"
    (asked,) = ran.asked("analyzer")
    assert isinstance(asked.params, GenerateParams)
    properties: Any = (asked.params.schema or {})["properties"]
    assert not {"mood", "orders", "asks", "tells", "agreement", "looks_back"} & set(properties)
    assert f"- {ref} | Lenovo LOQ 15" in asked.text
    assert "Today is" in asked.text
    assert asked.params.max_tokens == 800
    assert ran.problems == []


def test_rules_add_nothing(server: Server, tmp_path: Path) -> None:
    """A model that reads nothing out of a query is not overruled by what its words look like."""
    layout, _ = first_turn(server, tmp_path)
    ran = say(server, layout, "forget the Lenovo, I live in Bern, what did we talk about last week?", NOTHING)
    assert ran.error is None, ran.error
    assert kept(ran) == {"mood": "asks"}
    assert not ran.folder.has("staged_memory.json")
    assert "entity_curation" not in file_of(ran.folder, "reflection.json")


def test_what_cannot_be_is_dropped_and_told(server: Server, tmp_path: Path) -> None:
    """A bad part is left out with a warning, at the first attempt; the turn goes on."""
    layout, ref = first_turn(server, tmp_path)
    bad = {
        **NOTHING,
        "mood": "whistles",
        "exclusions": [
            {"ref": "made_up", "action": "drop", "words": "tent"},
            {"ref": ref, "action": "drop", "words": "no Lenovo"},
            None,
        ],
        "limits": 7,
        "statements": [{"text": "I own a tent"}],
        "colour": "red",
    }
    ran = say(server, layout, "How much is the tent?", bad)
    assert ran.error is None, ran.error
    assert len(ran.asked("analyzer")) == 1
    assert kept(ran) == {"mood": "asks"}
    told = [one for one in ran.turn.warnings if one.startswith("reading: dropped ")]
    assert len(told) == 6
    assert "reading: dropped exclusions[0]: there is no entity 'made_up'" in told
    assert "reading: dropped exclusions[1]: 'no Lenovo' does not stand in the query" in told
    assert ran.problems == []


@pytest.mark.parametrize("reading", ["absent", None, [], "asks", {}, dict.fromkeys(NOTHING)])
def test_missing_reading(server: Server, tmp_path: Path, reading: object) -> None:
    """A reading that is missing, null, empty or no object halts nothing and costs no second attempt."""
    ran = say(server, laptop_store(tmp_path), "How much is the Lenovo LOQ 15?", reading)
    assert ran.metadata.status == "approved", ran.error
    assert len(ran.asked("analyzer")) == 1
    assert kept(ran)["mood"] == "asks"


def test_what_was_dropped_comes_back_when_named(server: Server, tmp_path: Path) -> None:
    """An entity that was ruled out is back as soon as a reading refers to it."""
    layout, ref = first_turn(server, tmp_path)
    drop = {**NOTHING, "exclusions": [{"ref": ref, "action": "drop", "words": "Forget the Lenovo"}]}
    say(server, layout, "Forget the Lenovo.", drop)
    back = {**NOTHING, "references": [{"words": "that Lenovo", "refs": [ref]}]}
    ran = say(server, layout, "How heavy is that Lenovo?", back)
    assert kept(ran)["exclusions"] == [{"ref": ref, "action": "keep", "words": ""}]
    retained = file_of(ran.folder, "reflection.json")["entity_curation"]["retained"]
    assert [one["ref"] for one in retained] == [ref]


def test_agreement_is_the_models(server: Server, tmp_path: Path) -> None:
    """To an open question a query agrees if the model says so, in whatever words."""
    layout = laptop_store(tmp_path)
    asking = {"tools": [], "next_step": "clarify", "question": "Do you mean the Lenovo?"}
    run_turn(layout, "How much is it?", model=Served(server, Script(planner=asking)))
    ran = say(server, layout, "righty ho", {**NOTHING, "agreement": "agrees"})
    assert kept(ran)["agreement"] == "agrees"
    assert file_of(ran.folder, "query_analysis.json")["pending"]["agreed"] is True


def test_choosing_models_keep_their_heads(tmp_path: Path) -> None:
    """A model that only chooses is not asked for a reading; its choices and rules make it."""
    model = Preferring("PROCEED", PRICE, "informational", "query", "question")
    ran = run_turn(laptop_store(tmp_path), "My landlord is Ms. Roth.", model, writes=False, scores=True)
    assert [one["key"] for one in kept(ran)["statements"]] == ["landlord"]
    assert not any("reading:" in one for one in ran.turn.warnings)


def test_a_reply_that_was_cut_is_asked_for_without_the_reading(server: Server, tmp_path: Path) -> None:
    """A model that goes on and on in its reading does not halt the turn; rules read the query then."""
    script = Script(answer={"items": []})

    def going_on(asked: Asked) -> Any:
        assert isinstance(asked.params, GenerateParams)
        properties: Any = (asked.params.schema or {})["properties"]
        return "cut" if "reading" in properties else script(asked)

    ran = run_turn(laptop_store(tmp_path), "My landlord is Ms. Roth.", model=Served(server, going_on))
    assert ran.metadata.status == "approved", ran.error
    assert len(ran.asked("analyzer")) == 2
    assert [one["key"] for one in kept(ran)["statements"]] == ["landlord"]


def test_server_is_real(server: Server) -> None:
    """What these tests ask goes over HTTP."""
    assert issubclass(Served, OpenAiModel)
    assert server.url.startswith("http://127.0.0.1:")
