"""`panda synthesize`: what is known within a scope."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec import UNSET

from panda.actions.synthesis_facts import FactSource, file_source, memory_source
from panda.cli.command import Invocation, OutputTable, Result, excludes, flag, option
from panda.documents.memory_file import render_value
from panda.documents.record_codec import encode
from panda.documents.safe_text import count_noun
from panda.memory.synthesis import CONTRADICTED, Envelope, parse_request, synthesize
from panda.store.fact_records import SCOPES

FACTS_HELP = 'Facts of this file, {"facts": […], "conflicts": […]}, not the memory of the user.'
_COLUMNS = ("entity", "relation", "value", "conf.", "", "other value", "conf.")


@excludes("facts", ["user"], fix="leave it out: the facts are those of the file")
def synthesize_scope(
    invocation: Invocation,
    scope: Annotated[
        str,
        option(
            f"{', '.join(SCOPES[:-1])} or {SCOPES[-1]}, matched exactly.",
            "SCOPE",
            complete=lambda: list(SCOPES),
        ),
    ],
    entity: Annotated[
        str | None, option("Only this one, as user:default.", "NAME", show_default="all")
    ] = None,
    relation: Annotated[str | None, option("Only this one, as budget.", "NAME", show_default="all")] = None,
    min_confidence: Annotated[
        float | None, option("Leave out what is less certain, 0 to 1.", "C", show_default="0")
    ] = None,
    include_expired: Annotated[
        bool, flag("Count facts past their valid_until too.", "--include-expired")
    ] = False,
    as_of: Annotated[
        str | None, option("Judge by this instant what has expired.", "TIME", show_default="now")
    ] = None,
    facts: Annotated[
        Path | None, option(FACTS_HELP, "FILE.json", show_default="the memory of the user")
    ] = None,
) -> Result:
    """
    Show what is known now within a scope: for each entity and relation the most credible value, and where
    another fact says otherwise, both.

    Example: panda synthesize --scope local --min-confidence 0.5 --user demo
    """
    fields = {"scope": scope, "entity": entity, "relation": relation, "min_confidence": min_confidence}
    fields |= {"include_expired": include_expired, "as_of": as_of}
    request = parse_request(fields, where="--")
    stored = open_source(invocation, facts).load()
    envelope = synthesize(*stored, request, now=invocation.settings.clock())
    invocation.reporter.step(_counts(envelope))
    return Result(encode(envelope), OutputTable(_COLUMNS, list(_rows(envelope))))


def open_source(invocation: Invocation, facts: Path | None) -> FactSource:
    """The facts of the file that `--facts` names, else of the user's memory (NotFoundError: no store)."""
    if facts is not None:
        return file_source(facts)
    return memory_source(invocation.store())


def _counts(envelope: Envelope) -> str:
    parts = [count_noun(envelope.fact_count, "fact"), count_noun(len(envelope.summary), "entry")]
    if envelope.contradiction_count:
        parts.append(f"{envelope.contradiction_count:,} contradicted")
    if envelope.filtered_count:
        parts.append(f"{envelope.filtered_count:,} left out as less certain")
    return f"scope {envelope.scope}: {', '.join(parts)}"


def _rows(envelope: Envelope) -> Iterator[tuple[object, ...]]:
    for entry in envelope.summary:
        values = [value for value in (entry.value, entry.alt_value) if value is not UNSET]
        texts = [render_value(value.v) for value in values]
        if len(set(texts)) < len(texts):  # two values that would look the same
            texts = [f"{text} ({value.type})" for text, value in zip(texts, values, strict=True)]
        rest = (CONTRADICTED, texts[1], entry.alt_confidence) if entry.contradicted else (None, None, None)
        yield entry.entity, entry.relation, texts[0], entry.confidence, *rest
