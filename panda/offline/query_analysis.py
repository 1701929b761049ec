"""What a message is and means, for phase 0."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from panda.messages.clauses import clause_texts, says_otherwise
from panda.messages.forget_requests import find_forget_request
from panda.messages.reading import Agreement, Mood, Reading
from panda.offline.offline_models import OfflineModels
from panda.offline.selecting import best
from panda.session.message import MessageSignals, UserMessage, interpret, referred_turns
from panda.steps.inputs import QueryInputs
from panda.steps.request import Request

_MAX_CLAUSES = 24
_REFERENCE_PRIOR = 0.5
_SURELY_FORGETS = 0.7
_RECAPS = 0.6
"""Probability from which on a message wants to be told what was said."""


def analyse_query(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return type, intent and needs of the query, what it means, and what it refers to."""
    inputs = request.inputs_as(QueryInputs)
    text = request.asked

    def label(name: str) -> str:
        return best(models.classify(name, text) or models.classify_by_examples(name, text))

    message = inputs.message
    target = _target(request, message, models)
    signals = read_signals(request, models)
    meaning = interpret(message, signals, target=target)
    intent = label("intent")
    if intent == "greeting" and not meaning.reading.talk and (signals or message.has_documents):
        intent = "query"
    needs_prices = label("current_prices") == "True"
    needs_live_data = label("live_data") == "True" and (needs_prices or not meaning.reading.details)
    reply = {
        "query_type": label("query_type"),
        "intent": intent,
        "needs_current_prices": needs_prices,
        "needs_live_data": needs_live_data,
        "content_reference": meaning.follow_up.option if meaning.follow_up else target,
        "resolved_query": meaning.resolved_query,
        "reading": _written(meaning.reading, request.query, signals),
    }
    return {name: value for name, value in reply.items() if value is not None}


def _target(request: Request, message: UserMessage, models: OfflineModels) -> str | None:
    """Return the id of what an open reference means; None where there is nothing that it may mean."""
    last = message.follow_up.option if message.follow_up else None
    options = [option for option in request.options_of("content_reference") if option.id != last]
    scores = models.rank(request.asked, options, prior=_REFERENCE_PRIOR) if options else {}
    return best(scores) if scores and scores[best(scores)] >= 0 else None


def read_signals(request: Request, models: OfflineModels) -> MessageSignals | None:
    """Return what the classifiers say of a message; None where there are none."""
    text = request.asked
    moods = models.classify("mood", text)
    if not moods:
        return None
    forgets = models.classify("forget", text)["forget"]
    recap = models.classify("recap", text)["recap"]
    talk = models.classify("talk", text)["talk"]
    clauses = clause_texts(request.query)[:_MAX_CLAUSES]
    of_clauses = {clause: models.classify_message("mood", clause) for clause in clauses}
    return MessageSignals(
        moods=moods,
        clauses=cast(Mapping[str, Mapping[Mood, float]], of_clauses),
        agreement=cast(Agreement, best(models.classify("agreement", text))),
        is_recap=recap > max(_RECAPS, moods["tells"]),
        talk=talk if talk > recap else 0.0,
        forgets=forgets if forgets >= _SURELY_FORGETS else 0.0,
    )


def _written(reading: Reading, query: str, signals: MessageSignals | None) -> dict[str, Any]:
    """Return a reading as the schema of the recipe has it, with the wish to forget."""
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(reading))
    for name in ("details", "now", "address", "pasted"):
        values.pop(name, None)
    turns = [{"words": referred.words, "refs": [*referred.refs]} for referred in referred_turns(query)]
    values["references"] = [entry for entry in values.get("references", ()) if entry not in turns]
    if signals is not None and signals.forgets > 0:
        corrects = signals.moods["tells"] > signals.forgets and says_otherwise(query)
        if find_forget_request(query) is not None or not corrects:
            values["forgets"] = True
    return values
