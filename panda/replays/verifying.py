"""
Saved turns judged again without a model: files, hashes, gates, budgets and evidence.

What a check needs is taken from the turn itself (its calls, its sections, its steps), so that a memory that
has changed since then finds nothing wrong with an old turn.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from panda.compression.tokens import count_tokens
from panda.documents.context import ContextDocument, render_section
from panda.documents.evidence import check_evidence
from panda.documents.problems import Problem
from panda.documents.sections import SECTIONS
from panda.errors import PandaError
from panda.memory.gathered import answer_items
from panda.phases.turn import MOST_EXECUTIONS
from panda.recipes.journal import text_digest
from panda.recipes.reply import find_fault, parse_object
from panda.storage.checking_turn import check_turn
from panda.storage.layout import (
    CALLS_JSONL,
    CONTEXT_MD,
    GATHERED_CONTEXT_JSON,
    PLAN_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
)
from panda.storage.turn_folder import Metadata, TurnFolder

_WITHOUT_TOOLS = "synthesis"


def verify_turn(folder: TurnFolder) -> list[Problem]:
    """
    Everything that is wrong with a saved turn, judged from its own files.

    Args:
        folder: The turn's directory.

    Returns:
        One problem for each finding; [] if there is none.
    """
    problems = list(check_turn(folder.paths.directory))
    if problems:
        return problems  # what does not read cannot be judged further
    try:
        metadata, calls = folder.read_metadata(), folder.calls()
        document = folder.read_context()
        problems += _check_hashes(folder, calls)
        problems += _check_replies(folder, metadata, calls)
        problems += _check_budgets(folder, document, calls)
        problems += _check_route(folder, metadata)
        problems += _check_answer(folder, metadata, document)
    except PandaError as exc:
        problems.append(Problem(exc.where or str(folder.paths.directory), exc.message, fix=exc.fix))
    return problems


def _check_hashes(folder: TurnFolder, calls: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """Whether what is written out hashes to its name, each hash is spelt out once, and no line is missing."""
    path, problems, known = str(folder.paths / CALLS_JSONL), [], set()
    for line, call in enumerate(calls, 1):
        if call["n"] != line:
            problems.append(Problem(path, f"is call {call['n']}, not {line}: a line is missing", line=line))
        for part in [call.get("prefix") or {}, *(call.get("messages") or ())]:
            digest, content = part.get("sha256"), part.get("content")
            if digest is None:
                continue
            if content is not None and text_digest(content) != digest:
                problems.append(
                    Problem(path, "a prompt is not the text of its hash", line=line, key="sha256")
                )
            if content is None and digest not in known:
                problems.append(Problem(path, f"no line spells out {digest[:12]}…", line=line, key="sha256"))
            known.add(digest)
    return problems


def _check_replies(
    folder: TurnFolder, metadata: Metadata, calls: Sequence[Mapping[str, Any]]
) -> list[Problem]:
    """Whether the last completion of each execution passed its gates; an earlier one was asked again."""
    path, problems = str(folder.paths / CALLS_JSONL), []
    for line, call in enumerate(calls, 1):
        if any(option["logprob"] > 0 or option["tokens"] < 1 for option in call.get("options") or ()):
            problems.append(Problem(path, "an option has no log-probability", line=line, key="options"))
    written = [(line, call) for line, call in enumerate(calls, 1) if call["kind"] == "generate"]
    for _, group in groupby(written, key=lambda one: (one[1].get("execution"), one[1]["recipe"])):
        line, call = list(group)[-1]
        fault = _fault(call)
        if fault and metadata.status in ("approved", "clarify", "failed"):
            message = f"{call['recipe']}: the turn went on with a reply that fails its gate: {fault}"
            problems.append(Problem(path, message, line=line, key="output"))
    return problems


def _fault(call: Mapping[str, Any]) -> str | None:
    if call["finish_reason"] == "length":
        return "cut off at max_tokens"
    schema = call["parameters"].get("schema")
    if not schema:
        return None
    values, error = parse_object(call["output"])
    return error or find_fault(values, schema, optional=())


def _check_budgets(
    folder: TurnFolder, document: ContextDocument, calls: Sequence[Mapping[str, Any]]
) -> list[Problem]:
    problems = []
    for section in document.sections:
        most, size = SECTIONS[section.number].budget_tokens, count_tokens(render_section(section))
        if size > most and section.number > 0:  # the query's own section is never cut
            message = (
                f"§{section.number} has {size:,} tokens, {size - most:,} more than its budget of {most:,}"
            )
            problems.append(Problem(str(folder.paths / CONTEXT_MD), message))
    path = str(folder.paths / CALLS_JSONL)
    for line, call in enumerate(calls, 1):
        output, most_output = call["usage"]["output"], (call.get("parameters") or {}).get("max_tokens")
        if most_output is not None and output is not None and output > most_output:
            message = f"{output} tokens were written, {most_output} were allowed"
            problems.append(Problem(path, message, line=line, key="usage"))
    executions = max((call.get("execution", 0) for call in calls), default=0)
    if executions > MOST_EXECUTIONS:
        message = f"{executions} recipe executions, the most is {MOST_EXECUTIONS}"
        problems.append(Problem(path, message, key="execution"))
    return problems


def _check_route(folder: TurnFolder, metadata: Metadata) -> list[Problem]:
    """Whether the turn went where its own decisions send it."""
    problems = []
    if folder.has(REFLECTION_JSON):
        decision = folder.read_json(REFLECTION_JSON)["decision"]
        if decision == "CLARIFY" and metadata.status == "approved":
            problems.append(_contradiction(folder, REFLECTION_JSON, "decision", decision, metadata))
    if folder.has(PLAN_JSON):
        step = folder.read_json(PLAN_JSON)["next_step"]
        last_plan = max((n for n, phase in enumerate(metadata.route) if phase == 3), default=-1)
        if step == _WITHOUT_TOOLS and 4 in metadata.route[last_plan + 1 :]:
            problems.append(_contradiction(folder, PLAN_JSON, "next_step", step, metadata))
    return problems


def _contradiction(folder: TurnFolder, name: str, key: str, value: object, metadata: Metadata) -> Problem:
    message = f"{value} does not lead to status {metadata.status} by route {list(metadata.route)}"
    return Problem(str(folder.paths / name), message, key=key)


def _check_answer(folder: TurnFolder, metadata: Metadata, document: ContextDocument) -> list[Problem]:
    """Whether an approved answer is that of §5, and each item is held by the nodes it cites."""
    answer = document.section(5)
    if metadata.status != "approved" or answer is None:
        return []
    problems = []
    path = str(folder.paths / CONTEXT_MD)
    if answer.text.strip() != folder.read_text(RESPONSE_MD).strip():
        problems.append(Problem(str(folder.paths / RESPONSE_MD), "is not the answer of §5 in context.md"))
    judgement = document.section(6)
    if judgement is not None and judgement.meta.get("verdict") not in (None, "APPROVE"):
        message = f"§6 says {judgement.meta['verdict']}, but the turn is approved"
        problems.append(Problem(path, message, key="verdict"))
    held = _held(folder, metadata)
    for item in answer_items(answer):
        sources = [text for node_id in item.node_ids for text in held.get(node_id, ())]
        if not sources:
            message = f"{item.text!r:.80} cites {', '.join(item.node_ids)}, which the turn did not gather"
            problems.append(Problem(path, message, key="items"))
        elif missing := [claim.text for claim in check_evidence(item.text, ["\n".join(sources)])]:
            message = f"{', '.join(missing)} in {item.text!r:.80} is not in {', '.join(item.node_ids)}"
            problems.append(Problem(path, message, key="items"))
    return problems


def _held(folder: TurnFolder, metadata: Metadata) -> dict[str, list[str]]:
    """What the turn's own files hold of each node: lines of §2 and claims of its steps."""
    held: dict[str, list[str]] = {f"turn:{folder.number}": [metadata.query]}
    if folder.has(GATHERED_CONTEXT_JSON):
        for section in folder.read_json(GATHERED_CONTEXT_JSON)["sections"]:
            for item in section["items"]:
                for node_id in item["node_ids"]:
                    held.setdefault(node_id, []).append(item["text"])
    for step in folder.steps():
        for claim in step["claims"]:
            held.setdefault(claim["node_id"] or f"turn:{folder.number}", []).append(claim["text"])
    return held
