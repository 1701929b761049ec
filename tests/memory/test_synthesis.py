"""Scope synthesis as a function: worked cases, laws, and the storm."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from panda.documents.records import convert, encode
from panda.memory.fact import parse_scope_facts
from panda.memory.synthesis import (
    Envelope,
    SynthesisRequest,
    find_contenders,
    parse_request,
    rank,
    synthesize,
)
from panda.store.fact import Conflict, Fact, Value, parse_hlc
from tests.scope_vectors import NOW, VECTORS, Vector

LOCAL = SynthesisRequest("local")
RAW_VALUES: tuple[dict[str, Any], ...] = (
    {"type": "string", "v": "a"},
    {"type": "number", "v": 1},
    {"type": "number", "v": 1.0},
    {"type": "boolean", "v": True},
    {"type": "datetime", "v": "2026-01-01T00:00:00Z"},
    {"type": "datetime", "v": "2026-01-01T01:00:00+01:00"},
    {"type": "null"},
    {"type": "list", "v": ["a", 1]},
)


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Fact], list[Conflict]]:
    """A few facts that collide in every way, and conflict records among them, in circles too."""
    made = draw(
        st.lists(
            st.builds(
                Fact,
                id=st.just("none"),
                entity=st.sampled_from(("user:ann", "acme", "panda:resolution:k")),
                relation=st.sampled_from(("tea", "panda:x")) | st.just("tea"),
                value=st.sampled_from([convert(Value, raw) for raw in RAW_VALUES]),
                source=st.just("turn:1"),
                confidence=st.sampled_from((0.0, 0.4, 0.9)),
                scope=st.sampled_from(("local", "local", "team")),
                hlc=st.sampled_from((None, "1.0", "1.000", "1.1", "2.0")),
                valid_until=st.sampled_from((None, NOW, NOW - timedelta(seconds=1))),
            ),
            max_size=10,
        )
    )
    facts = [structs.replace(fact, id=f"f{number}") for number, fact in enumerate(made)]
    ids = st.sampled_from([*(fact.id for fact in facts), "nobody"])
    conflicts = draw(
        st.lists(
            st.builds(
                Conflict,
                conflict_id=st.just("k"),
                fact_a=ids,
                fact_b=ids,
                status=st.sampled_from(("resolved", "open")),
                resolution_fact=ids,
            ),
            max_size=5,
        )
    )
    return facts, conflicts


def ask(facts: list[Fact], conflicts: list[Conflict], request: SynthesisRequest = LOCAL) -> Envelope:
    return synthesize(facts, conflicts, request, now=NOW)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_vectors(vector: Vector) -> None:
    """Each worked case gives its entries and counts, whatever the order of facts and conflicts."""
    for one in vector.orders():
        facts, conflicts = parse_scope_facts(one.document, where="vectors")
        vector.check(encode(ask(facts, conflicts, parse_request(dict(one.request)))))


@settings(max_examples=200, deadline=None)
@given(stores(), st.randoms(use_true_random=False), st.booleans())
def test_order_and_repetition_do_not_matter(
    store: tuple[list[Fact], list[Conflict]], chance: Any, include_expired: bool
) -> None:
    """The answer is the same for every order, for facts told twice, and on asking again."""
    facts, conflicts = store
    request = SynthesisRequest("local", include_expired=include_expired)
    first = ask(facts, conflicts, request)
    assert ask(facts, conflicts, request) == first
    facts, conflicts = facts * 2, conflicts * 2
    chance.shuffle(facts)
    chance.shuffle(conflicts)
    assert encode(ask(facts, conflicts, request)) == encode(first)


@settings(max_examples=200, deadline=None)
@given(stores())
def test_no_entry_comes_from_a_silenced_fact(store: tuple[list[Fact], list[Conflict]]) -> None:
    """Whatever conflicts say, no candidate is a retraction, expired, of another scope, or silenced."""
    facts, conflicts = store
    for subject, group in find_contenders(facts, conflicts, LOCAL, now=NOW).items():
        silence = [
            parse_hlc(fact.hlc)
            for fact in facts
            if (fact.subject, fact.scope, fact.confidence) == (subject, "local", 0)
            and fact.id not in {conflict.resolution_fact for conflict in conflicts}
        ]
        for fact in group:
            assert fact.scope == "local"
            assert fact.confidence > 0
            assert fact.valid_until is None or fact.valid_until >= NOW
            assert not subject[0].startswith("panda:resolution")
            assert all(parse_hlc(fact.hlc) > one for one in silence)


@settings(max_examples=100, deadline=None)
@given(stores())
def test_answers_confirm_themselves(store: tuple[list[Fact], list[Conflict]]) -> None:
    """The winners alone, as facts, give the same entries without a contradiction."""
    envelope = ask(*store)
    winners = [
        Fact(str(n), one.entity, one.relation, one.value, None, one.confidence, "local", one.hlc, None)
        for n, one in enumerate(envelope.summary)
    ]
    shown = {"contradicted": False, "alt_value": UNSET, "alt_confidence": UNSET}
    assert list(ask(winners, []).summary) == [structs.replace(one, **shown) for one in envelope.summary]


def test_storm_of_weak_rivals() -> None:
    """200 weak rivals, each with a value of its own and a later clock, leave the winner and one mark."""
    rivals = [
        {"id": f"r{n}", "value": {"type": "string", "v": f"rival {n}"}, "confidence": 0.3, "hlc": f"9.{n:03}"}
        for n in range(200)
    ]
    winner = {"id": "w", "value": {"type": "string", "v": "winner"}, "confidence": 0.31, "hlc": "1.0"}
    shared = {"entity": "user:ann", "relation": "tea", "source": None, "scope": "local", "valid_until": None}
    document = {"facts": [{**shared, **one} for one in (*rivals, winner)]}
    envelope = ask(*parse_scope_facts(document, where="storm"))
    (entry,) = envelope.summary
    assert entry.value.v == "winner"
    assert entry.alt_value is not UNSET
    assert entry.alt_value.v == "rival 199"
    assert (envelope.fact_count, envelope.contradiction_count) == (201, 1)


def test_ranking_of_ties() -> None:
    """Of equal strength, the smaller canonical value is first, then the smaller id; 1 and 1.0 are equal."""
    values = [{"type": "number", "v": 1.0}, {"type": "number", "v": 1}, {"type": "list", "v": []}]
    facts = [
        Fact(str(9 - n), "e", "r", convert(Value, raw), None, 0.5, "local", None, None)
        for n, raw in enumerate(values)
    ]
    assert [fact.id for fact in rank(facts)] == ["7", "8", "9"]


def test_answer_is_plain_json() -> None:
    """The envelope is JSON with S2's fields, its instant in UTC."""
    envelope = synthesize([], [], SynthesisRequest("team"), now=NOW)
    assert json.loads(json.dumps(encode(envelope))) == {
        "summary": [],
        "synthesized_at": "2026-06-01T12:00:00Z",
        "scope": "team",
        "fact_count": 0,
        "contradiction_count": 0,
        "filtered_count": 0,
    }
