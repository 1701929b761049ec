"""Turns that other programs or stores held, brought into a store, its index and its sessions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from panda.documents.progress import Progress
from panda.history.export_file import ExportFile
from panda.history.import_file import ImportedTurn, ImportReport, import_turns
from panda.history.intake import Intake, IntakePlan
from panda.index.index import Index
from panda.session.file import write_imported
from panda.settings import Settings
from panda.store.layout import Layout, users_of

MOST_SESSIONS = 200
"""Sessions whose files an import makes, the newest; those of others are made when they go on."""


@dataclass(frozen=True)
class Imported:
    """What came in, or would."""

    report: (
        ImportReport  # what became of each turn; of a dry run those that are there already, or have a number
    )
    created: int  # how many turns are new
    plan: IntakePlan | None  # what an export of another program held; None for JSON lines
    new_users: Sequence[str] = ()  # who was not there before


def import_file(
    file: ExportFile,
    layout: Layout,
    settings: Settings,
    progress: Progress,
    tell: Callable[[str], None],
    *,
    dry_run: bool,
) -> Imported:
    """
    The turns of a file in the store, its index and its sessions; what a kill leaves undone of the latter two,
    their next reader does. The sessions of an export, which are thousands, are made when they go on. Raises
    ImportFileError: the file does not read; nothing was changed.
    """
    known = users_of(layout)
    done = _written(file, layout, settings, progress, tell, dry_run=dry_run)
    done = replace(done, new_users=sorted({turn.user for turn in done.report.turns}.difference(known)))
    if dry_run:
        return done
    index = Index(layout)
    created = [turn for turn in done.report.turns if turn.created]
    for user in sorted({turn.user for turn in created}):
        index.record(user, [turn.turn for turn in created if turn.user == user])
    index.close()
    if done.plan is None:
        sessions = _newest_sessions([turn for turn in done.report.turns if turn.created])
        write_imported(layout, sessions[:MOST_SESSIONS], progress)
    return done


def _newest_sessions(turns: Sequence[ImportedTurn]) -> list[tuple[str, str]]:
    """User and id of the sessions that turns are in, the one with the newest turn first."""
    newest = sorted(turns, key=lambda turn: turn.turn, reverse=True)
    return list(dict.fromkeys((turn.user, turn.session) for turn in newest))


def _written(
    file: ExportFile,
    layout: Layout,
    settings: Settings,
    progress: Progress,
    tell: Callable[[str], None],
    *,
    dry_run: bool,
) -> Imported:
    if file.source == "jsonl":
        clock, name = settings.clock, file.name
        report = import_turns(file.path, layout, clock, name=name, dry_run=dry_run, progress=progress)
        return Imported(report, report.created, None)
    intake = Intake(file, layout, settings.user, settings.clock)
    if dry_run:
        plan = _planned(intake, file, progress)
        return Imported(ImportReport(tuple(plan.known)), len(plan.numbers), plan)
    with intake.alone():
        plan = _planned(intake, file, progress)
        tell(f"checked: {len(plan.numbers):,} new turns in {len(plan.sessions):,} sessions")
        with progress("importing", len(plan.numbers)) as advance:
            written = intake.write(plan, advance)
    return Imported(ImportReport((*plan.known, *written)), len(written), plan)


def _planned(intake: Intake, file: ExportFile, progress: Progress) -> IntakePlan:
    with progress("reading", file.size()) as advance:
        return intake.plan(advance)
