"""A turn whose tools give far more than §4 may hold."""

from pathlib import Path

from panda.compression.budgets import Limits
from panda.documents.context import SECTIONS, render_section
from panda.models.cl100k import count_tokens
from tests.code_mode import call, code_script, replies, repository, run_code

FILES = 10
QUERY = "Which measurements stand in the files?"


def test_results_of_20000_tokens(tmp_path: Path) -> None:
    """Ten results of together over 20,000 tokens: sections in budget, the newest whole, §0 as it was,
    every call within its limit, and all of it whole in the steps' files."""
    project = repository(tmp_path)
    for n in range(FILES):
        text = "".join(f"day {n}.{i}: {i + 3} mm of rain, wind {i % 9} from the west\n" for i in range(114))
        (project / f"day_{n}.txt").write_text(text, encoding="utf-8")
    script = code_script(
        replies(*(call("file.read", path=f"day_{n}.txt") for n in range(FILES))),
        answer={"items": [{"text": "day 9.113: 116 mm of rain", "node_ids": [f"step:{FILES}"]}]},
    )
    ran = run_code(tmp_path, project, script, QUERY)
    assert ran.error is None
    read = [step.data["content"] for step in ran.turn.steps()]
    assert [text.splitlines()[0][:9] for text in read] == [f"day {n}.0: " for n in range(FILES)]
    assert sum(map(count_tokens, read)) > 20_000
    sections = ran.folder.read_context().sections
    sizes = {one.number: count_tokens(render_section(one)) for one in sections}
    assert [number for number, size in sizes.items() if size > SECTIONS[number].budget_tokens] == []
    assert ran.body(0) == QUERY
    assert all(line in ran.body(4) for line in read[-1].splitlines())
    assert sections[4].meta == {"steps": list(range(1, FILES))}
    assert "day 0.113" not in ran.body(4)
    asked = [sum(count_tokens(one.content) for one in asked.messages) for asked in ran.model.asked]
    assert max(asked) <= Limits().call_trigger_tokens
    assert ran.metadata.status == "approved"
    assert ran.problems == []
