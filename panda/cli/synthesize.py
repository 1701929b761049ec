"""`panda synthesize`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result, Table
from panda.cli.option_rules import excludes
from panda.documents.memory_file import render_value
from panda.memory.scope_facts import SCOPES, Fact
from panda.memory.scope_reading import FactSource, file_source, memory_source
from panda.memory.synthesis import CONTRADICTED, Entry, Envelope, synthesize
from panda.memory.synthesis_request import parse_request

FACTS_HELP = 'Facts of this file, {"facts": […], "conflicts": […]}, not the memory of the user.'
_COLUMNS = ("entity", "relation", "value", "conf.", "", "other value", "conf.")


@excludes("facts", "user", fix="leave it out: the facts are those of the file")
def synthesize_scope(
    invocation: Invocation,
    scope: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(SCOPES[:-1])} or {SCOPES[-1]}, matched exactly.",
            metavar="SCOPE",
            autocompletion=lambda: list(SCOPES),
        ),
    ],
    entity: Annotated[
        str | None, typer.Option(help="Only this one, as user:default.", metavar="NAME")
    ] = None,
    relation: Annotated[str | None, typer.Option(help="Only this one, as budget.", metavar="NAME")] = None,
    min_confidence: Annotated[
        float | None, typer.Option(help="Leave out what is less certain, 0 to 1.", metavar="C")
    ] = None,
    include_expired: Annotated[
        bool, typer.Option("--include-expired", help="Count facts past their valid_until too.")
    ] = False,
    as_of: Annotated[
        str | None, typer.Option(help="Judge by this instant what has expired.", metavar="TIME")
    ] = None,
    facts: Annotated[Path | None, typer.Option(help=FACTS_HELP, metavar="FILE.json")] = None,
) -> Result:
    """
    Show what is known now within a scope: for each entity and relation the most credible value, and where
    another fact says otherwise, both.

    Example: panda synthesize --scope local --entity user:default --min-confidence 0.5
    """
    given = {"scope": scope, "entity": entity, "relation": relation, "min_confidence": min_confidence}
    given |= {"include_expired": include_expired, "as_of": as_of}
    request = parse_request(given, where="--")
    stored = open_source(invocation, facts).load()
    envelope = synthesize(*stored, request, now=invocation.settings.clock())
    invocation.reporter.step(_counts(envelope))
    return Result(envelope.to_json(), Table(_COLUMNS, list(_rows(envelope))))


def open_source(invocation: Invocation, facts: Path | None) -> FactSource:
    """
    Where the facts come from.

    Args:
        invocation: The run of a command.
        facts: The file that `--facts` names; None for the memory of the user.

    Raises:
        NotFoundError: There is no store.
    """
    if facts is not None:
        return file_source(facts)
    return memory_source(invocation.store(), invocation.settings.user, invocation.settings.clock)


def _counts(envelope: Envelope) -> str:
    parts = [f"{envelope.fact_count:,} facts", f"{len(envelope.summary):,} entries"]
    if envelope.contradiction_count:
        parts.append(f"{envelope.contradiction_count:,} contradicted")
    if envelope.filtered_count:
        parts.append(f"{envelope.filtered_count:,} left out as less certain")
    return f"scope {envelope.scope}: {', '.join(parts)}"


def _rows(envelope: Envelope) -> Iterator[tuple[object, ...]]:
    for entry in envelope.summary:
        winner, other = entry.winner, entry.alternative
        rest = (CONTRADICTED, _text(other, entry), other.confidence) if other else (None, None, None)
        yield entry.entity, entry.relation, _text(winner, entry), winner.confidence, *rest


def _text(fact: Fact, entry: Entry) -> str:
    """A value as people read it; with its type where two values would look the same."""
    text, other = render_value(fact.value.v), entry.alternative
    alike = other is not None and render_value(other.value.v) == render_value(entry.winner.value.v)
    return f"{text} ({fact.value.type})" if alike else text
