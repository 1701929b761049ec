"""What a query decides on the entities of its session, by rule and with what a model adds."""

from collections.abc import Sequence
from typing import Literal

import pytest
from msgspec.structs import replace

from panda.messages.reading import Reading
from panda.session.registry import (
    CLEARED,
    CurationChange,
    curation_of_reading,
    find_decisions,
    find_references,
    uses_excluded,
    with_written,
)
from panda.store.carry import EMPTY, Carry, Curation, Entity, ListedEntity, State

Action = Literal["retain", "demote", "drop", "clear_all"]
LABELS = {"a": "Lenovo LOQ 15", "b": "HP Victus 15", "c": "Baked cod", "d": "Cod soup", "e": "Pescara ferry"}


def carry(**states: State) -> Carry:
    """A session that talks of LABELS, in these states; the others are active."""
    records = tuple(
        Entity(
            ref=ref,
            type="dish" if ref in "cd" else "item",
            label=label,
            target=None,
            state=states.get(ref, "active"),
            turns=(1,),
            source=None,
            reason="the user said “no”" if ref in states else None,
        )
        for ref, label in LABELS.items()
    )
    return replace(EMPTY, registry=replace(EMPTY.registry, records=records))


def curate(query: str, state: Carry, mentioned: Sequence[str] = ()) -> Curation:
    """What a query decides on the entities of its session."""
    exclusions, clears = find_decisions(query, state, mentioned)
    return curation_of_reading(Reading(exclusions=exclusions, clears=clears))


def refs(found: Curation) -> dict[str, list[str]]:
    """The refs of a curation by what becomes of them, where there are any."""
    kinds = {"retained": found.retained, "demoted": found.demoted, "dropped": found.dropped}
    return {kind: [one.ref for one in judged] for kind, judged in kinds.items() if judged}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Something light, no cod please", {"demoted": ["c", "d"]}),
        ("Something light, no cod soup please", {"demoted": ["d"]}),
        ("no ferry", {"demoted": ["e"]}),
        ("no dishes", {"demoted": ["c", "d"]}),
        ("no peanuts, thanks", {}),
        ("no green peanuts of any kind, thanks", {}),
        ("forget the HP Victus", {"dropped": ["b"]}),
        ("forget the HP, keep the Lenovo", {"retained": ["a"], "dropped": ["b"]}),
        ("How much is the Lenovo LOQ 15?", {}),
        ("no cod, forget the cod soup", {"demoted": ["c"], "dropped": ["d"]}),
        ("keep the baked cod, forget the cod soup", {"retained": ["c"], "dropped": ["d"]}),
        ("keep the cod, forget the cod soup", {"dropped": ["d"]}),
        ("Don't forget the HP Victus", {"retained": ["b"]}),
        ("never forget the HP", {"retained": ["b"]}),
        ("please don’t remove the HP", {"retained": ["b"]}),
        ("How do I remove the battery of the Lenovo LOQ 15?", {}),
        ("where can I drop the HP off?", {}),
        ("Laptops with less than 15 inches", {}),
        ("Do I have to start over if the HP crashes?", {}),
        ("Can I get the HP without a keyboard?", {}),
        ("the battery of the HP is dead, remove it", {}),
        ("If you drop the HP, does it break?", {}),
        ("keep the HP cool", {}),
        ("drop the HP or the Lenovo", {}),
        ("Without the HP we have two laptops", {}),
    ],
)
def test_rules(query: str, expected: dict[str, list[str]]) -> None:
    """Exclusions demote, removals drop, "keep" keeps: what their words name; questions decide nothing."""
    found = curate(query, carry())
    assert refs(found) == expected
    assert (found.clear_all, found.reason) == (False, None)


PUT_ASIDE: list[tuple[str, dict[str, State], dict[str, list[str]]]] = [
    ("And the HP Victus 15?", {"b": "demoted"}, {"retained": ["b"]}),
    ("And the HP Victus 15?", {"b": "dropped"}, {"retained": ["b"]}),
    ("And the HP?", {"b": "demoted"}, {"retained": ["b"]}),
    ("And the Lenovo LOQ 15?", {"b": "demoted"}, {}),
    ("no HP Victus 15", {"b": "demoted"}, {}),
    ("forget the HP Victus 15", {"b": "demoted"}, {"dropped": ["b"]}),
]


@pytest.mark.parametrize(("query", "states", "expected"), PUT_ASIDE)
def test_what_is_named_comes_back(
    query: str, states: dict[str, State], expected: dict[str, list[str]]
) -> None:
    """What was put aside comes back when it is named, in part too, not when it is excluded once more."""
    assert refs(curate(query, carry(**states))) == expected


def test_references_count_as_names() -> None:
    """Words such as "it" and "the second one" mean what the query's references mean."""
    assert refs(curate("drop it", carry(), ["b"])) == {"dropped": ["b"]}
    assert refs(curate("forget that one", carry(), ["b"])) == {"dropped": ["b"]}
    assert refs(curate("get rid of it", carry(), ["a"])) == {"dropped": ["a"]}
    assert refs(curate("drop it", carry())) == {}
    assert refs(curate("forget it", carry(), ["b"])) == {}
    assert refs(curate("How much is it?", carry(b="demoted"), ["b"])) == {"retained": ["b"]}


def test_reasons_are_the_users_words() -> None:
    """Each decision says which words of the user it rests on; long ones are clipped."""
    (one,) = curate("forget the HP Victus", carry()).dropped
    assert one.reason == "the user said “forget the HP Victus”"
    back = curate("And the HP Victus 15?", carry(b="demoted")).retained
    assert [one.reason for one in back] == ["the user names it again"]
    cleared = curate("Let's start over.", carry())
    assert (cleared.clear_all, cleared.reason) == (True, "the user said “start over”")
    assert refs(cleared) == {}


def written(*rows: tuple[str, Action]) -> list[CurationChange]:
    """What a model wrote: ref and action each."""
    return [CurationChange(ref=ref, action=action, reason=f"{action} {ref}") for ref, action in rows]


def test_a_model_adds_to_the_rules() -> None:
    """A model's decisions come after those of the rules, once for each entity, and never against them."""
    rules = curate("forget the HP Victus", carry())
    rows = written(
        ("b", "retain"), ("a", "retain"), ("a", "drop"), ("c", "demote"), ("d", "drop"), ("x", "drop")
    )
    found = with_written(rules, rows, carry(), "forget the HP Victus")
    assert refs(found) == {"retained": ["a"], "demoted": ["c"], "dropped": ["b", "d"]}
    assert (found.clear_all, found.reason) == (False, None)
    assert found.demoted[0].reason == "demote c"


def test_a_model_brings_nothing_back_by_itself() -> None:
    """What was put aside comes back by a model's word only if the user names it; demoting needs no name."""
    rows = written(("b", "retain"), ("c", "demote"))
    query = "What else is there?"
    assert refs(with_written(Curation(), rows, carry(b="demoted", c="demoted"), query)) == {"demoted": ["c"]}
    query = "Is the HP Victus 15 light?"
    found = with_written(Curation(), rows, carry(b="demoted"), query)
    assert refs(found) == {"retained": ["b"], "demoted": ["c"]}


def test_a_model_may_clear_all() -> None:
    """Clearing takes the reason of the rules where they cleared, else the model's, clipped."""
    clear = [CurationChange(ref="", action="clear_all", reason="new topic " * 40)]
    found = with_written(Curation(), clear, carry(), "Now to something else.")
    assert found.clear_all
    assert found.reason is not None
    assert found.reason.startswith("new topic new topic")
    assert len(found.reason) <= 160
    rules = curate("Let's start over.", carry())
    assert with_written(rules, clear, carry(), "Let's start over.").reason == rules.reason
    assert with_written(rules, [], carry(), "Let's start over.") == rules


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["Compare the HP Victus 15 with others"], ["b"]),
        (["Look at b"], ["b"]),
        (["Look at b2, at b_2 and at my_b"], []),
        (["Compare the HP with others"], []),
        (["Compare laptops without the HP Victus 15"], []),
        (["Look at the Lenovo LOQ 15"], []),
        ([], []),
    ],
)
def test_plans_that_use_what_is_excluded(texts: list[str], found: list[str]) -> None:
    """A plan that names an excluded entity, by ref or label, is caught; excluding it again is no use."""
    state = carry(b="demoted")
    records = tuple(
        replace(one, ref="item_b" if one.ref == "b" else one.ref) for one in state.registry.records
    )
    state = replace(state, registry=replace(state.registry, records=records))
    said = [text.replace("at b", "at item_b").replace("my_b", "my_item_b") for text in texts]
    assert [one.ref for one in uses_excluded(said, state)] == ["item_b" for _ in found]


def test_what_was_only_cleared_may_be_used() -> None:
    """What went because everything was cleared, or for no reason, is not excluded; nor what is back."""
    cases: list[tuple[State, str | None]] = [
        ("dropped", f"{CLEARED} at turn 3"),
        ("dropped", None),
        ("active", "the user names it again"),
    ]
    for now, reason in cases:
        state = carry(b=now)
        records = tuple(
            replace(one, reason=reason) if one.ref == "b" else one for one in state.registry.records
        )
        cleared = replace(state, registry=replace(state.registry, records=records))
        assert uses_excluded(["Compare the HP Victus 15"], cleared) == []


def test_ranks_pass_over_what_was_put_aside() -> None:
    """The cheapest is the cheapest of what is left, and ranking brings nothing back."""
    state = carry(b="dropped")
    texts = {"a": "Lenovo LOQ 15: $697", "b": "HP Victus 15: $599", "e": "Ferry: $900"}
    items = tuple(ListedEntity(ref=ref, text=text) for ref, text in texts.items())
    listing = replace(state.registry.listing, items=items, turn=1)
    state = replace(state, registry=replace(state.registry, listing=listing))
    (found,) = find_references("how heavy is the cheapest?", state)
    assert found.refs == ("a",)
    assert curate("how heavy is the cheapest?", state, found.refs) == Curation()


@pytest.mark.parametrize(
    ("states", "expected"), [({}, ()), ({"b": "demoted"}, ("a",)), ({"a": "dropped"}, ("b",))]
)
def test_a_name_that_two_share_means_the_one_that_is_left(
    states: dict[str, State], expected: tuple[str, ...]
) -> None:
    """If one of two things of a name was put aside, the other is meant; else it stays open."""
    state = carry(**states)
    labels = {"a": "Lenovo LOQ 15", "b": "Lenovo Yoga 7"}
    records = (replace(record, label=labels.get(record.ref, "")) for record in state.registry.records)
    state = replace(state, registry=replace(state.registry, records=tuple(records)))
    (reference,) = find_references("How heavy is that Lenovo?", state)
    assert reference.refs == expected
