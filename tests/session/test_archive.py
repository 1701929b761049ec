"""Kept content: what a query names of it, and what may be shown again."""

from msgspec.structs import replace

from panda.phases.query_analyzer import kept_content
from panda.store.carry import EMPTY, Archive, ArchiveEntry


def entry(key: str, path: str) -> ArchiveEntry:
    """An entry of turn 1."""
    return ArchiveEntry(
        key=key, turn=1, step=1, type="read", description="gaming laptops", path=path, chars=9
    )


def test_the_result_of_a_tool_is_no_draft() -> None:
    """A query that says "research" does not name the file of that name, and that is never shown as it is."""
    research = entry("research", "turns/turn_000001/research.json")
    draft = entry("t1_s2_email_1", "turns/turn_000001/artifacts/t1_s2_email_1.md")
    carry = replace(EMPTY, content_archive=Archive(entries=(research, draft)))
    assert (research.is_draft, draft.is_draft) == (False, True)
    assert kept_content("What did the research say about the HP Victus?", carry, ["research"]) is None
    assert kept_content("Show me t1_s2_email_1", carry, ["show"]) == "t1_s2_email_1"
