"""The executor with a scripted model: what it asks, what it accepts, what it writes down."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.choosing.decision import Option
from panda.compression.fit import InputDocument
from panda.errors import BudgetExceededError, GateError, HaltError, ModelTimeoutError, ReplyError
from panda.models.contract import Completion, GenerateParams, ScoreParams, Usage
from tests.recipes.books import ListJournal, Runner, schema_of, write_book
from tests.scripted_model import Asked, Reply, ScriptedModel, in_order

TEXT = {"type": "string"}
SAID = '{"why": "So.", "verdict": "yes"}'
"""A reply that is right."""
VERDICT = {"enum": ["yes", "no"]}
SPANS = {
    "type": "array",
    "x-options": "spans",
    "x-many": {"max": 2, "at_least": 0.0, "within": 9.0},
    "x-decide": [{"scorer": "prior"}],
}
ITEMS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["text", "node_ids"],
        "properties": {"text": TEXT, "node_ids": {"type": "array", "items": TEXT}},
    },
}
OPTIONS = {"answer": [Option("s1", "It is.", ("visit:a",), 0.9), Option("s2", "No.", ("turn:1",), 0.1)]}


def runner(
    tmp_path: Path,
    *replies: Reply,
    writes: bool = True,
    scores: bool = True,
    n_ctx: int = 900,
    **changes: object,
) -> Runner:
    """An executor of tests/judge whose model gives these replies in order."""
    model = ScriptedModel(in_order(*replies), writes=writes, scores=scores, n_ctx=n_ctx)
    return Runner(write_book(tmp_path, **changes), model)


def asked(run: Runner) -> list[Asked]:
    """What the model was asked."""
    assert isinstance(run.model, ScriptedModel)
    return run.model.asked


def test_writes_and_scores(tmp_path: Path) -> None:
    """Text and choices come in one reply, choices last; the value's probability in it is the confidence."""
    run = runner(tmp_path, SAID, [-0.1])
    reply = run.run()
    assert reply.values == {"why": "So.", "verdict": "yes"}
    generate, score = asked(run)
    assert isinstance(generate.params, GenerateParams)
    assert generate.params.schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["verdict", "why"],
        "properties": {"why": TEXT, "verdict": VERDICT},
    }
    assert score.prefix == run.model.render_chat(generate.messages)
    (case,) = score.cases
    assert (case.context, case.continuation) == ('{"why": "So.", "verdict": "', "yes")
    assert (reply.attempts, reply.below_threshold) == (1, False)
    assert reply.confidence == pytest.approx(0.9048)
    assert reply.choices["verdict"].scorer == "written"


@pytest.mark.parametrize("verdict", ["yes", "no"])
def test_every_verdict_can_be_reached(tmp_path: Path, verdict: str) -> None:
    """A model that writes and scores gets the verdict that it wrote, whatever a decision list would say."""
    schema = schema_of(why=TEXT, verdict={**VERDICT, "x-decide": [{"choose": "yes"}]})
    said = json.dumps({"why": "The verdict is clear.", "verdict": verdict})
    reply = runner(tmp_path, said, [-0.2], output_schema=schema).run()
    assert (reply.values["verdict"], reply.confidence) == (verdict, pytest.approx(0.8187))


def test_parameters(tmp_path: Path) -> None:
    """Temperature, output budget, timeout and seed come from recipe and journal."""
    run = runner(tmp_path, SAID, [-0.1], temperature=0.25, quality_gates={"timeout_ms": 1500})
    run.run()
    generate, score = asked(run)
    assert isinstance(generate.params, GenerateParams)
    given = generate.params
    assert (given.temperature, given.max_tokens, given.seed, given.timeout_seconds) == (0.25, 100, 101, 1.5)
    assert score.params == ScoreParams(1.5)


def test_scores_only(tmp_path: Path) -> None:
    """A model that does not write is asked for no text: the recipe's template gives it."""
    run = runner(tmp_path, [-1.0, -2.0], writes=False)
    assert run.run().values == {"verdict": "yes", "why": "Because of “Is it so?”."}
    assert [call.is_score for call in asked(run)] == [True]


def test_writes_only(tmp_path: Path) -> None:
    """A model that cannot score writes its choices under the schema, and knows no confidence."""
    run = runner(tmp_path, '{"why": "So.", "verdict": "no"}', scores=False)
    reply = run.run()
    assert (reply.values, reply.confidence) == ({"why": "So.", "verdict": "no"}, None)
    assert reply.choices["verdict"].value == "no"


def test_neither_writes_nor_scores(tmp_path: Path) -> None:
    """A model that only writes choices still gets its text from templates, spans included."""
    run = runner(
        tmp_path, '{"answer": ["s2", "s2"]}', writes=False, scores=False,
        output_schema=schema_of(answer=SPANS, items=ITEMS), templates={"items": {"spans": "answer"}},
    )  # fmt: skip
    reply = run.run(options=OPTIONS)
    assert reply.values["items"] == [{"text": "No.", "node_ids": ["turn:1"]}]
    (call,) = asked(run)
    assert isinstance(call.params, GenerateParams)
    assert call.params.schema is not None
    assert list(call.params.schema["properties"]) == ["answer"]  # type: ignore[call-overload]  # a schema is open


def test_sources_of_templates(tmp_path: Path) -> None:
    """A choice that only feeds templates is made for a model that does not write, and for no other."""
    changes: dict[str, Any] = {
        "output_schema": schema_of(answer=SPANS, items=ITEMS),
        "templates": {"items": {"spans": "answer"}},
    }
    quoting = runner(tmp_path, writes=False, **changes)
    assert quoting.run(options=OPTIONS).values == {
        "answer": ["s1", "s2"],
        "items": [{"text": "It is.", "node_ids": ["visit:a"]}, {"text": "No.", "node_ids": ["turn:1"]}],
    }
    for scores in (True, False):
        writing = runner(tmp_path, '{"items": []}', scores=scores, **changes)
        assert writing.run(options=OPTIONS).values == {"items": []}


def test_options_without_choice(tmp_path: Path) -> None:
    """A single choice among no options is left out, whoever makes it."""
    schema = {"type": "object", "properties": {"one": {**TEXT, "x-options": "spans"}}}
    for scores in (True, False):
        run = runner(tmp_path, scores=scores, output_schema=schema, templates=None)
        assert run.run(options={"one": []}).values == {}
        assert asked(run) == []


def test_text_format(tmp_path: Path) -> None:
    """Another format than JSON is free text, and its reply is the property `text`."""
    run = runner(tmp_path, "Just so.", output_format="text", output_schema=None, templates=None)
    assert run.run().values == {"text": "Just so."}


def test_retry_carries_the_error(tmp_path: Path) -> None:
    """An invalid reply is refused, and the next attempt is told why, with another seed."""
    run = runner(tmp_path, '{"why": 1, "verdict": "yes"}', SAID, [-0.1])
    assert run.run().attempts == 2
    first, second, _ = asked(run)
    assert "refused" not in first.text
    assert "Your last reply was refused =====\n$.why: 1 is not of type 'string'" in second.text
    assert isinstance(second.params, GenerateParams)
    assert second.params.seed == 102
    assert first.messages[0] == second.messages[0]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("So.", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"why": "a"} b', "not JSON"),
        ("{}", "'verdict' is a required property"),
        (Completion('{"why": "So."}', "length", Usage(1, 0, 100), 0.0), "cut after 100 tokens"),
    ],
)
def test_refused_replies(tmp_path: Path, reply: Reply, why: str) -> None:
    """What is no JSON object of the schema is refused; so is output that was cut, even if it would do."""
    run = runner(tmp_path, reply, quality_gates={"max_retries": 0})
    with pytest.raises(ReplyError, match=why) as caught:
        run.run()
    assert caught.value.received is not None
    assert caught.value.where == f"{tmp_path}/recipes/tests/judge.yaml"


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_most_retries(tmp_path: Path, retries: int) -> None:
    """After max_retries further attempts the turn halts, and every attempt counted as an execution."""
    run = runner(tmp_path, *["x"] * (retries + 1), quality_gates={"max_retries": retries})
    with pytest.raises(ReplyError, match=f"in {retries + 1} attempts"):
        run.run()
    assert run.journal.executions == ["tests/judge"] * (retries + 1)


def test_most_executions(tmp_path: Path) -> None:
    """Retries within an execution count against the turn's most executions."""
    run = runner(tmp_path, "x", "x")
    run.journal.most = 1
    with pytest.raises(HaltError, match="too many executions"):
        run.run()
    assert len(asked(run)) == 1


def test_timeout_is_not_retried(tmp_path: Path) -> None:
    """A call that took too long halts at once."""
    run = runner(tmp_path, ModelTimeoutError("too slow"), '{"why": "So."}')
    with pytest.raises(ModelTimeoutError):
        run.run()
    assert len(asked(run)) == 1
    assert [line["success"] for line in run.log] == [False]


def test_a_cut_reply_is_asked_for_without_what_may_be_missing(tmp_path: Path) -> None:
    """After a reply that was cut the next attempt leaves out lenient texts; other faults cost none."""
    schema = schema_of(why=TEXT, reading={"type": "object", "x-lenient": True}, verdict=VERDICT)
    cut = Completion('{"why": "So.", "reading": {', "length", Usage(1, 0, 100), 0.0)
    for first, kept in ((cut, False), ("x", True)):
        run = runner(tmp_path / str(kept), first, SAID, scores=False, output_schema=schema)
        assert run.run().values["verdict"] == "yes"
        for one, shown in zip(asked(run), (True, kept), strict=True):
            assert isinstance(one.params, GenerateParams)
            assert ("reading" in one.params.schema["properties"]) is shown  # type: ignore[index,operator]  # a schema is open
            assert ('"reading"' in one.messages[0].content) is shown


THRESHOLD = {"confidence_threshold": 0.8, "max_retries": 1}


def test_confidence_over_threshold(tmp_path: Path) -> None:
    """A choice that is sure enough passes the gate."""
    gates = {**THRESHOLD, "below_threshold": "halt"}
    reply = runner(tmp_path, [-1.0, -9.0], writes=False, quality_gates=gates).run()
    assert (reply.below_threshold, reply.confidence) == (False, pytest.approx(0.9997))


@pytest.mark.parametrize("below", ["proceed", "clarify"])
def test_below_threshold_is_said(tmp_path: Path, below: str) -> None:
    """With proceed and clarify the reply comes back and says that it is below."""
    gates = {**THRESHOLD, "below_threshold": below}
    reply = runner(tmp_path, [-1.0, -1.1], writes=False, quality_gates=gates).run()
    assert (reply.below_threshold, reply.attempts) == (True, 1)
    assert reply.asks_back is (below == "clarify")


def test_below_threshold_halts(tmp_path: Path) -> None:
    """With halt the turn halts at once, with both numbers."""
    gates = {**THRESHOLD, "below_threshold": "halt"}
    with pytest.raises(GateError, match=r"0\.525 is below 0\.8"):
        runner(tmp_path, [-1.0, -1.1], writes=False, quality_gates=gates).run()


def test_below_threshold_retries(tmp_path: Path) -> None:
    """With retry the attempt counts as failed, and the next one is told so."""
    gates = {**THRESHOLD, "below_threshold": "retry"}
    replies = (SAID, [-1.1], SAID.replace("So.", "b"), [-0.1])
    run = runner(tmp_path, *replies, quality_gates=gates)
    reply = run.run()
    assert (reply.attempts, reply.values["why"]) == (2, "b")
    assert "below 0.8" in asked(run)[2].text


@pytest.mark.parametrize("below", ["proceed", "clarify", "halt", "retry"])
def test_unknown_confidence_meets_no_gate(tmp_path: Path, below: str) -> None:
    """A gate on a confidence that nobody knows is not applied, which the log says; the reply stands."""
    gates = {**THRESHOLD, "below_threshold": below}
    run = runner(tmp_path, '{"why": "a", "verdict": "no"}', scores=False, quality_gates=gates)
    reply = run.run()
    assert (reply.values["verdict"], reply.confidence, reply.attempts) == ("no", None, 1)
    assert (reply.gate, reply.below_threshold, reply.asks_back) == ("not_measured", False, False)
    assert [line["gate"] for line in run.log] == ["not_measured"]


@pytest.mark.parametrize(("scored", "gate"), [([-1.0, -9.0], "passed"), ([-1.0, -1.1], "below")])
def test_the_log_names_the_gate(tmp_path: Path, scored: list[float], gate: str) -> None:
    """A measured gate is passed or missed, and the log says which; without a threshold there is none."""
    run = runner(tmp_path, scored, writes=False, quality_gates=THRESHOLD)
    assert run.run().asks_back is False
    assert [line["gate"] for line in run.log] == [gate]
    run = runner(tmp_path / "open", scored, writes=False)
    run.run()
    assert [line["gate"] for line in run.log] == [None]


def test_no_schema_validation(tmp_path: Path) -> None:
    """With schema_validation off any object passes."""
    run = runner(tmp_path, '{"why": 1}', quality_gates={"schema_validation": False})
    assert run.run().values["why"] == 1


LONG = " ".join(f"Thing {n} is here." for n in range(50))
"""200 words in sentences of four."""


def test_documents_are_fitted(tmp_path: Path) -> None:
    """Documents over the input budget are cut, whole sentences at a time; the query's section never."""
    budget = {"total": 1000, "prompt": 300, "input": 150, "output": 100}
    run = runner(tmp_path, SAID, [-0.1], token_budget=budget)
    section = InputDocument("§0 User Query", "w" + " w" * 99)
    (cut,) = run.run(documents=[InputDocument("plan.json", LONG), section]).cuts
    assert (cut.name, cut.before_tokens) == ("plan.json", 300)
    assert 20 < cut.after_tokens <= 47
    text = asked(run)[0].text
    assert section.text in text
    assert text.count("is here.") < 12
    assert "[…]" in text
    assert run.log[-1]["compression_savings"] == 300 - cut.after_tokens


def test_documents_fit_the_window(tmp_path: Path) -> None:
    """The model's own tokens count too: prompt and output stay within its window."""
    documents = [InputDocument("d", LONG)]
    run = runner(tmp_path, SAID, [-0.1], n_ctx=250)
    assert run.run(documents=documents).cuts[0].after_tokens < 200
    assert run.model.count_model_tokens(run.model.render_chat(asked(run)[0].messages)) <= 150


def test_retries_fit_the_window(tmp_path: Path) -> None:
    """The error text of a retry takes its room from the documents."""
    documents = [InputDocument("d", LONG)]
    run = runner(tmp_path, "x", SAID, [-0.1], n_ctx=250)
    run.run(documents=documents)
    first, second = (run.model.count_model_tokens(run.model.render_chat(a.messages)) for a in asked(run)[:2])
    assert first <= 150
    assert second <= 150


def test_prompt_shows_what_is_asked_for(tmp_path: Path) -> None:
    """The schema in the prompt has the properties that the model is to write, and no others."""
    for scores, replies in ((True, (SAID, [-0.1])), (False, (SAID,))):
        run = runner(tmp_path, *replies, scores=scores, output_schema=schema_of(why=TEXT, verdict=VERDICT))
        run.run()
        shown = asked(run)[0].messages[0].content
        assert 0 < shown.index('"why"') < shown.index('"verdict"')


def test_protected_text_does_not_fit(tmp_path: Path) -> None:
    """When what is protected does not fit, budget or window, it is an error with the numbers."""
    query = InputDocument("§0 User Query", "w " * 400)
    with pytest.raises(BudgetExceededError, match="window of 250 tokens"):
        runner(tmp_path, n_ctx=250).run(documents=[query])
    with pytest.raises(BudgetExceededError, match="window of 80 tokens"):
        runner(tmp_path, n_ctx=80).run()
    with pytest.raises(BudgetExceededError, match="the inputs need 600 tokens"):
        runner(tmp_path).run(documents=[InputDocument("§0 User Query", "w" + " w" * 599)])


def test_compression_off(tmp_path: Path) -> None:
    """With compression off, inputs over the budget are an error."""
    run = runner(tmp_path, compression={"enabled": False})
    with pytest.raises(BudgetExceededError, match="compression is off"):
        run.run(documents=[InputDocument("d", f"{LONG}\n\n{LONG}\n\n{LONG}")])


def test_nothing_is_cut_that_is_not_sent(tmp_path: Path) -> None:
    """A model whose choices have prompts of their own gets no documents, so none is cut."""
    schema = schema_of(verdict={**VERDICT, "x-decide": [{"choose": "yes"}]})
    run = runner(tmp_path, writes=False, output_schema=schema, templates=None)
    reply = run.run(documents=[InputDocument("d", f"{LONG}\n\n{LONG}\n\n{LONG}")])
    assert (reply.values["verdict"], reply.cuts) == ("yes", ())


def test_calls_are_written_down(tmp_path: Path) -> None:
    """Each call is one record: what was asked with hashes and parameters, what came, what it cost."""
    run = runner(tmp_path, SAID, [-0.1])
    run.run()
    generate, choose = run.journal.calls
    assert (generate["phase"], generate["recipe"], generate["attempt"]) == (6, "tests/judge", 1)
    assert (generate["kind"], choose["kind"]) == ("generate", "choose")
    assert set(generate["hashes"]) == {"recipe", "prompts", "schema", "model", "version"}
    assert (generate["output"], generate["finish_reason"]) == (SAID, "stop")
    assert generate["parameters"]["seed"] == 101
    assert generate["usage"]["output"] == 4
    assert choose["property"] == "verdict"
    assert [(option["continuation"], option["logprob"]) for option in choose["options"]] == [("yes", -0.1)]


def test_prefixes_are_written_once(tmp_path: Path) -> None:
    """The unchanging message stands in the journal once, later only its hash; the other one always."""
    run = runner(tmp_path, "x", SAID, [-0.1])
    run.run()
    (first_system, first_user), (second_system, second_user) = (c["messages"] for c in run.journal.calls[:2])
    assert first_system["content"].startswith("You judge.")
    assert "content" not in second_system
    assert first_system["sha256"] == second_system["sha256"]
    assert "User query" in first_user["content"]
    assert "User query" in second_user["content"]


def test_known_scores_are_not_asked_again(tmp_path: Path) -> None:
    """The same options after the same prefix cost nothing the second time, and the journal says so."""
    run = runner(tmp_path, [-1.0, -2.0], writes=False)
    assert run.run().values == run.run().values
    assert len(asked(run)) == 1
    again = run.journal.calls[1]
    assert [option["known"] for option in again["options"]] == [True, True]
    assert again["usage"] == {"prompt": 0, "reused": 0, "output": 0}


def test_log(tmp_path: Path) -> None:
    """The executions log has one line an execution, with tokens, retries and outcome."""
    run = runner(tmp_path, "x", SAID, [-0.1])
    run.run()
    (line,) = run.log
    assert (line["recipe"], line["model_layer"], line["model"]) == ("judge", "MIND", "scripted")
    assert (line["turn_id"], line["timestamp"]) == ("turn_000007", "2026-01-04T14:30:00Z")
    assert (line["success"], line["retries"], line["confidence"]) == (True, 1, pytest.approx(0.9048))
    used = [call["usage"] for call in run.journal.calls]
    tokens = line["tokens"]
    assert tokens["prompt"] + tokens["input"] == sum(usage["prompt"] for usage in used)
    assert tokens["total"] == tokens["prompt"] + tokens["input"] + sum(usage["output"] for usage in used)


def test_unknown_usage_stays_unknown(tmp_path: Path) -> None:
    """Tokens that a server does not tell are null in journal and log, never 0."""
    completion = Completion('{"why": "a", "verdict": "yes"}', "stop", Usage(None, None, 5), 0.0)
    run = runner(tmp_path, completion, scores=False)
    run.run()
    assert run.journal.calls[0]["usage"] == {"prompt": None, "reused": None, "output": 5}
    unknown = dict.fromkeys(("prompt", "input", "reused", "total"))
    assert run.log[0]["tokens"] == {**unknown, "output": 5}


def test_same_seed_each_run(tmp_path: Path) -> None:
    """An execution asks the journal for its seeds, so the same turn asks the same again."""
    runs = [runner(tmp_path, SAID, [-0.1]) for _ in range(2)]
    for run in runs:
        run.journal = ListJournal()
        run.run()
    assert runs[0].journal.calls == runs[1].journal.calls
