"""Phase 7: what was learnt is kept, the turn joins its session, the index gets a summary (S1 §11, S4)."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from msgspec import structs

from panda.documents.context import Phase
from panda.documents.safe_text import one_line, shorten, strip_citations
from panda.errors import FileFormatError, HaltError, Problem, StoreError
from panda.memory.gathered import answer_items
from panda.memory.user_memory import apply_staged
from panda.messages.reading import Reading
from panda.phases.kept import forgets_now
from panda.phases.phase_contract import PhaseResult
from panda.phases.recipe_request import ask
from panda.phases.running_turn import Turn
from panda.phases.statements import Noting, render_noted
from panda.recipes.calls import Recordings
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.relevance import find_query_words, share_of_words
from panda.session.file import commit_turn, load_session
from panda.session.fold import REPLY_CHARS, merge_by_rule, reply_of, summary_of, to_merge
from panda.session.pending import fate_of
from panda.session.turn_files import TurnFiles, load_turn_files
from panda.steps.all_steps import SUMMARY
from panda.steps.inputs import SummaryInputs
from panda.steps.options import Option
from panda.steps.reply_contents import SummaryReply
from panda.store.carry import SummaryKind
from panda.store.layout import CONTEXT_MD, RESPONSE_MD, UserStore
from panda.store.records import (
    IndexSummary,
    ModelCall,
    QueryAnalysis,
    Research,
    SessionTexts,
    StagedMemory,
    Summary,
)
from panda.store.visit_records import SAVED_STATUSES

_log = logging.getLogger(__name__)
_SUMMARY_CHARS = 240
_TOLD_CHARS = 100
_MOST_TOPICS = 12
_NOT_APPROVED = "No answer was approved; §5 and §6 of context.md say what was tried and why it was refused."


@dataclass
class SummaryReport:
    written: int = 0  # summaries written
    left: int = 0  # turns that still lack one, because a limit was reached
    problems: list[Problem] = field(default_factory=list)  # turns that no summary could be made of
    seconds: float = 0.0  # how long it took


def summary_line(turn: Turn) -> str:
    """Return the answer's first item, or what came of the turn and what was asked."""
    answer = turn.context.section(Phase.SYNTHESIZER) if turn.answered is not False else None
    items = [item.text for item in answer_items(answer)]
    if items:
        return shorten(items[0], _SUMMARY_CHARS)
    if answer is not None and answer.text:  # an imported turn
        return shorten(one_line(f"{turn.query} {strip_citations(answer.text)}"), _SUMMARY_CHARS)
    return shorten(f"No answer ({_came_to(turn)}) to: {one_line(turn.query)}", _SUMMARY_CHARS)


def _came_to(turn: Turn) -> str:
    """Return the outcome of an approved turn, else how it ended."""
    outcome = turn.metadata.outcome
    return str(outcome) if turn.ending == "approved" and outcome else str(turn.ending)


@dataclass(frozen=True)
class Summarised:
    """What the last call of a turn says of it."""

    index: IndexSummary
    session: SessionTexts


def summarise(executor: RecipeExecutor, turn: Turn, reply_text: str | None = None) -> Summarised:
    """
    Return the summary of a turn for the index, and what its session keeps.

    Args:
        reply_text: What the user was shown; None where no session keeps anything of the turn.
    """
    waiting = to_merge(turn.carry) if reply_text is not None else ()
    leaving = [summary for summary in turn.carry.turn_summaries if summary.turn in waiting]
    is_long = reply_text is not None and len(reply_text) > REPLY_CHARS
    answer = turn.context.section(Phase.SYNTHESIZER) if turn.answered is not False else None
    items = [item.text for item in answer_items(answer)]
    names = dict.fromkeys(word.lower() for word in find_query_words(" ".join([turn.query, *items])))
    named = [word for word in names if not word[0].isdigit()][:_MOST_TOPICS]
    words = [Option(word, word, (), share_of_words(turn.query, word)) for word in named if len(word) > 2]
    line = summary_line(turn)
    analysis = turn.folder.find(QueryAnalysis)
    reply = ask(
        executor,
        SUMMARY,
        turn,
        variables={"line": line, "outcome": _came_to(turn), "imported": "" if analysis else "yes"},
        extra={
            "reply": reply_text or "" if is_long else "",
            "earlier_history": turn.carry.history_summary.text if waiting else "",
            "leaving_turns": "\n".join(f"Turn {summary.turn}: {summary.turn_summary}" for summary in leaving),
            "engagement": turn.carry.engagement_summary.text if waiting else "",
        },
        inputs=SummaryInputs(line=line, words=words),
    )
    topic = research.topic if (research := turn.folder.find(Research)) else None
    index = IndexSummary(
        summary=reply.content.summary,
        topics=tuple(dict.fromkeys(one_line(topic) for topic in reply.content.topics)),
        intent=analysis.intent if analysis else reply.content.intent,
        has_research=topic is not None,
        research_topic=topic,
    )
    return Summarised(index, _session_texts(turn, reply.content, is_merging=bool(waiting), is_long=is_long))


def _session_texts(turn: Turn, content: SummaryReply, *, is_merging: bool, is_long: bool) -> SessionTexts:
    """Return what the session keeps; history that no reply words is merged by rule."""
    if not (is_merging or is_long):
        return SessionTexts()
    history = content.history if is_merging else None
    history_kind: SummaryKind | None = "model" if history else None
    if is_merging and not history:
        history = merge_by_rule(turn.carry)
        history_kind = "fallback"
    reply_summary = content.reply if is_long else None
    return SessionTexts(
        assistant_summary=reply_summary or None,
        assistant_summary_kind="model" if reply_summary else None,
        history=history,
        history_kind=history_kind,
        engagement=content.engagement or None,
        engagement_kind="model" if content.engagement else None,
    )


class _SavedTurn(Turn):
    """A saved turn that is asked about once more: its directory keeps no record of that."""

    def count_execution(self, recipe: str) -> None: ...

    def add_call(self, call: ModelCall) -> None: ...


def turns_without_summary(store: UserStore) -> Iterator[int]:
    """Numbers of the saved turns that have no summary for the index, or an empty one; ascending."""
    for number in store.numbers():
        folder = store.open(number)
        with suppress(FileFormatError, StoreError):  # told by `rebuild`
            index = folder.find(IndexSummary)
            if not (index and index.summary) and folder.read_metadata().status in SAVED_STATUSES:
                yield number


def write_summaries(
    executor: RecipeExecutor,
    stores: Sequence[UserStore],
    *,
    limit: int | None = None,
    max_seconds: float | None = None,
) -> SummaryReport:
    """
    Write the summaries that saved turns lack, user by user, oldest turn first; each is there before the next
    begins, so that an interrupted run goes on where it stopped. No turn is begun after *max_seconds*.
    """
    started = time.monotonic()
    todo = [(store, number) for store in stores for number in turns_without_summary(store)]
    report = SummaryReport(left=len(todo))
    for store, number in todo[:limit]:
        if max_seconds is not None and time.monotonic() - started >= max_seconds:
            break
        report.left -= 1
        folder = store.open(number)
        try:
            summary = summarise(executor, _SavedTurn(folder, store, recordings=Recordings([]))).index
            folder.save(summary)
            report.written += 1
            message = str(summary.summary)
        except (HaltError, FileFormatError) as exc:
            where = str(exc.path or folder.paths / CONTEXT_MD)
            message = f"no summary: {exc.message}"
            report.problems.append(Problem(message, where, line=exc.line, key=exc.key, fix=exc.fix))
        message = shorten(one_line(message), _TOLD_CHARS)
        _log.info("%s, turn %s: %s (%s left)", store.user, number, message, report.left)
    report.seconds = time.monotonic() - started
    return report


@dataclass(frozen=True)
class Save:
    """Applies staged memory, writes the summaries, and commits the turn to its session."""

    number = Phase.SAVE
    layer = "MIND"

    executor: RecipeExecutor  # asks the recipes
    store: UserStore  # of the turn's user; its clock stands still while the turn runs
    noting: Noting  # stages what was told
    forget: Callable[[Reading, Sequence[int], str], None]
    """Forgets what a reading means, in the first of some turns, of a session whose lock is held."""

    def run(self, turn: Turn) -> PhaseResult:
        """
        Save the turn; a missing summary is a warning, the index makes it later. The last write is
        session.json: a run that was killed after it finds nothing left to do.
        """
        folder = turn.folder
        store = self.store
        if turn.session is not None and turn.session.head_turn == turn.turn:
            return PhaseResult()
        noted = self.noting.of(turn)
        if (memory := folder.find(StagedMemory)) is not None:
            due = memory.due(turn.ending)
            if store.apart is None:
                apply_staged(store, due)
            folder.save(structs.replace(memory, applied=len(due) == len(memory.staged)))
        if turn.ending != "approved":
            paragraphs = [render_noted(noted)] if noted else []
            folder.write_text(RESPONSE_MD, "\n\n".join([*paragraphs, turn.question or _NOT_APPROVED]) + "\n")
        ended = self._ended(turn)
        files = replace(load_turn_files(folder.paths, turn.turn), summary=ended)
        session_texts = SessionTexts()
        try:
            summarised = summarise(self.executor, turn, reply_of(files))
            folder.save(summarised.index)
            session_texts = summarised.session
            text = str(summarised.index.summary)
            kind: SummaryKind = "verbatim" if text == summary_line(turn) else "model"
            ended = structs.replace(ended, turn_summary=text, summary_kind=kind)
        except HaltError as exc:
            turn.warn(f"no summary for the index yet: {exc.message}")
        folder.save(self._summary(turn, replace(files, summary=ended), ended, session_texts))
        if store.apart is not None:
            return PhaseResult()
        session = turn.session
        if forgets_now(turn):
            self.forget(turn.reading, (turn.turn, *turn.earlier[-1:]), turn.session_id)
            session = load_session(store, turn.session_id)
            at = store.clock().replace(microsecond=0)
            # Forgetting has changed the file. What it was said of is gone: a replay can't judge it.
            turn.write_metadata(structs.replace(folder.read_metadata(), forgotten_at=at))
        commit_turn(store, session, turn.turn)
        return PhaseResult()

    @staticmethod
    def _ended(turn: Turn) -> Summary:
        """Return how the turn ended, before anything summarises it."""
        cited = [n for item in answer_items(turn.context.section(Phase.SYNTHESIZER)) for n in item.node_ids]
        return Summary(
            turn=turn.turn,
            outcome=turn.ending,
            turn_summary=None,
            summary_kind=None,
            answered=bool(turn.answered),
            sources=tuple(dict.fromkeys(cited)),
            question=turn.question,
            steps_completed=0,
            errors=(),
        )

    @staticmethod
    def _summary(turn: Turn, files: TurnFiles, ended: Summary, texts: SessionTexts) -> Summary:
        turn_summary = summary_of(turn.carry, files)
        if turn.ending == "failed" and turn_summary.blocked_reason is None:
            turn_summary = structs.replace(turn_summary, blocked_reason=turn.reason)
        own = ("detail", "turn_summary", "summary_kind")
        did = {
            name: getattr(turn_summary, name) for name in turn_summary.__struct_fields__ if name not in own
        }
        return structs.replace(ended, **did, session=texts, pending=fate_of(turn.carry, files))
