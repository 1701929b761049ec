"""What a turn notes of what its user told: staged by code as soon as it is needed, applied at every save."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from panda.documents.memory_file import is_statement, render_value, statement_key
from panda.documents.text import escape_quote
from panda.language.reading import Statement
from panda.language.statements import says_only
from panda.language.words import split_terms
from panda.memory.fact import Assertion, Subject
from panda.memory.memory import Action, StagedValue, Value, listed, normalise_entity, stage_value
from panda.memory.past import Moment
from panda.memory.value import SaidKind
from panda.models.contract import Encoder
from panda.phases.turn import Turn
from panda.retrieval.closeness import measure_closeness
from panda.storage.layout import STAGED_MEMORY_JSON

_CORRECTED, _BY_WORDS, _AHEAD = 0.7, 0.4, 0.15
"""How close what is corrected is to what corrects it, by words alone too; how much closer than all else."""
_MAY_HOLD = {"has": ("has", "owns")}
"""Lists that something may have been in."""


@dataclass(frozen=True)
class Noted:
    """One thing that was told, as the user is answered."""

    text: str
    """The sentence, word for word."""
    node_id: str
    """Where it is kept."""
    key: str | None
    """What of; None if that is not sure."""
    value: Any
    """Of the key, all of a list; None without a key, or if nothing is left."""
    replaces: str | None
    """What was said before and no longer holds; None if nothing does."""

    @property
    def line(self) -> str:
        """What was understood: the key with its value, and what that replaces; "" if nothing was."""
        said = f"{self.key}: {render_value(self.value)}" if self.key else ""
        replaced = f"instead of: {self.replaces}" if self.replaces else ""
        return ", ".join(filter(None, [said, replaced]))


class Noting:
    """
    Stages what is told.

    Args:
        user: Whose turns.
        moment: The memory as the turn found it.
        encoder: Finds what a correction corrects; None leaves words to decide.
    """

    def __init__(self, user: str, moment: Moment, encoder: Encoder | None) -> None:
        self._user = user
        self._moment = moment
        self._encoder = encoder

    def of(self, turn: Turn) -> tuple[Noted, ...]:
        """
        What a turn notes; staged_memory.json holds it from then on.

        Raises:
            FileFormatError, StoreError: The user's memory cannot be read.
        """
        if not turn.reading.statements:
            return ()
        given = turn.read(STAGED_MEMORY_JSON) if turn.folder.has(STAGED_MEMORY_JSON) else {}
        if "noted" not in given:
            noted, staged = _Staging(turn, self._user, self._moment, self._encoder).stage_all()
            told = [one.to_json() for one in staged]
            others = [one for one in given.get("staged", ()) if not one.get("told")]
            given = {
                "staged": [*others, *told],
                "noted": [asdict(one) for one in noted],
                "applied": False,
            }
            turn.folder.write_json(STAGED_MEMORY_JSON, given)
        return tuple(Noted(**one) for one in given["noted"])


class _Staging:
    """What the statements of one turn come to, against the memory as it was."""

    def __init__(self, turn: Turn, user: str, moment: Moment, encoder: Encoder | None) -> None:
        self._turn, self._user, self._encoder = turn, user, encoder
        self._log, self._now = moment.memory.log, turn.context.front.created_at
        self._lists: dict[tuple[str, str], Value] = {}
        self._staged: dict[tuple[str, str, Action], StagedValue] = {}

    def stage_all(self) -> tuple[list[Noted], list[StagedValue]]:
        statements = self._turn.reading.statements
        sentences = list(dict.fromkeys(one.text for one in statements))
        noted = []
        for n, text in enumerate(sentences, 1):
            key = statement_key(self._turn.turn, n)
            own = [one for one in statements if one.text == text]
            self._stage("statement", key, text, text)
            keyed = [made for one in own if one.key is not None and (made := self._keyed(one)) is not None]
            noted += keyed or [self._unkeyed(own[0], key)]
        return noted, list(self._staged.values())

    def _keyed(self, one: Statement) -> Noted | None:
        """A statement with a key; None if it takes something from a list that holds no such thing."""
        assert one.key is not None  # the caller looked
        if one.action == "removes":
            return self._removed(one)
        entity = self._entity(one)
        kind: SaidKind = "preference" if one.entity is None else "fact"
        replaces: str | None = None
        value: Value = one.value
        if one.action == "adds":
            value = listed(self._held(entity, one.key), value, "adds")
            self._lists[entity, one.key] = value
            self._stage(kind, one.key, one.value, one.text, action="adds")
        else:
            held = self._held(entity, one.key)
            self._stage(kind, one.key, value, one.text, entity=one.entity)
            if held is not None and held != value:
                replaces = render_value(held)
                self._take_back(entity, one.key, replaces)
        prefix = "memory" if kind == "preference" else "fact"
        node_id = f"{prefix}:{Subject('local', entity, one.key).key(self._user)}"
        return Noted(one.text, node_id, one.key, _plain(value), replaces)

    def _removed(self, one: Statement) -> Noted | None:
        entity = self._entity(one)
        for key in _MAY_HOLD.get(one.key or "", (one.key or "",)):
            held = self._held(entity, key)
            for item in held if isinstance(held, tuple) else (held,):
                if not _names(str(item), str(one.value)):
                    continue
                left = listed(held, item, "removes")
                self._lists[entity, key] = left
                self._stage("preference", key, (item,), one.text, action="removes")
                self._take_back(entity, key, str(item))
                node_id = f"memory:{Subject('local', entity, key).key(self._user)}"
                return Noted(one.text, node_id, key, _plain(left) or None, str(item))
        return None

    def _unkeyed(self, one: Statement, key: str) -> Noted:
        corrected = self._corrected(one.text) if one.action in ("corrects", "removes") else None
        replaces = None
        if corrected is not None:
            replaces = str(corrected.fact.value.v)
            self._stage("statement", corrected.fact.relation, replaces, one.text, action="retracts")
        return Noted(one.text, f"fact:{key}", None, None, replaces)

    def _corrected(self, text: str) -> Assertion | None:
        """What the user said before of the same thing, if that is clear."""
        standing = list(self._standing())
        near = measure_closeness(text, [str(one.fact.value.v) for one in standing], self._encoder)
        ranked = sorted(zip(near, standing, strict=True), key=lambda pair: -pair[0])
        ahead = ranked[0][0] - (ranked[1][0] if len(ranked) > 1 else 0.0) if ranked else 0.0
        least = _BY_WORDS if self._encoder is None else _CORRECTED
        return ranked[0][1] if ranked and ranked[0][0] >= least and ahead >= _AHEAD else None

    def _take_back(self, entity: str, key: str, value: str) -> None:
        """Retract the sentences that told a value which no longer holds, and nothing else."""
        turns = {one.source_turn for one in self._log.of(Subject("local", entity, key))}
        for one in self._standing():
            said = str(one.fact.value.v)
            if one.source_turn in turns and value.casefold() in said.casefold() and says_only(said, key):
                self._stage("statement", one.fact.relation, said, said, action="retracts")

    def _standing(self) -> Iterator[Assertion]:
        """The user's own words that still hold."""
        for subject in self._log.subjects("local"):
            if is_statement(subject.relation):
                yield from self._log.contenders(subject, now=self._now)[:1]

    def _held(self, entity: str, key: str) -> Value:
        """What holds of a key; None for nothing."""
        if (entity, key) in self._lists:
            return self._lists[entity, key]
        winner = next(iter(self._log.contenders(Subject("local", entity, key), now=self._now)), None)
        return winner.fact.value.v if winner is not None else None

    def _entity(self, one: Statement) -> str:
        return f"user:{self._user}" if one.entity is None else normalise_entity(one.entity)

    def _stage(
        self,
        kind: SaidKind,
        key: str,
        value: Value,
        text: str,
        *,
        entity: str | None = None,
        action: Action = "sets",
    ) -> None:
        one = stage_value(
            user=self._user,
            kind=kind,
            relation=key,
            value=value,
            text=text,
            source_turn=self._turn.turn,
            entity=entity,
            action=action,
            told=True,
        )
        before = self._staged.get((one.entity, key, action))
        if before is not None and action in ("adds", "removes"):
            one = replace(one, value=listed(before.value, one.value, "adds"))
        self._staged[one.entity, key, action] = one


def _names(item: str, words: str) -> bool:
    """Whether words name an item of a list: all of them stand in it."""
    return set(split_terms(words)) <= set(split_terms(item)) and bool(split_terms(words))


def _plain(value: Value) -> object:
    return list(value) if isinstance(value, tuple) else value


def render_noted(noted: Sequence[Noted], mark: str = "") -> str:
    """
    The lines that say what was noted.

    Args:
        noted: What was.
        mark: Behind each sentence, where a list of sources follows.

    >>> print(render_noted([Noted("I moved to Porto.", "memory:location", "location", "Porto", "Lisbon")]))
    Noted: I moved to Porto.
    - location: Porto, instead of: Lisbon
    """
    lines: dict[str, str] = {}
    for one in noted:
        lead = f"Noted: {escape_quote(one.text)}{mark}"
        lines[lead] = lines.get(lead, "") + (f"\n- {one.line}" if one.line else "")
    return "\n\n".join(lead + rest for lead, rest in lines.items())
