"""Claims without a source, which no tool of panda makes: one that does takes the place of doc.search."""

from dataclasses import replace

import pytest

from panda.store.records import ToolClaim
from panda.tools.table import TOOLS
from panda.tools.tool_contract import ToolResult
from tests.api import ScriptedPanda
from tests.script import Script


def test_s3_14_a_claim_without_source_is_refused(ann: ScriptedPanda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase 4: what a tool claims without saying where from stops that call, and reaches no answer."""
    bare = ToolResult("success", claims=(ToolClaim("The Lenovo LOQ 15 costs $12.", 0.9, ""),))
    tool = replace(TOOLS["doc.search"], run=lambda arguments, context: bare)
    monkeypatch.setitem(vars(TOOLS)["_core"], "doc.search", tool)
    script = Script(
        planner={"tools": ["doc.search"], "next_step": "coordinator"},
        coordinator=[{"tool": "doc.search"}, {"tool": "done"}],
    )
    turn = ann.turn(script=script)
    (step,) = turn.steps
    assert (step["status"], step["claims"]) == ("blocked", [])
    assert "without a source" in step["error"]
    assert "$12" not in turn.response
