"""What `panda validate` finds of a store beside the records of single files."""

import json
import shutil
from pathlib import Path

from tests.api import Panda


def test_a_visit_that_research_names_must_be_there(demo: Path, tmp_path: Path) -> None:
    """A visit that is gone is found, of the store and of the turn, with the file that names it."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    assert panda("validate", "811", "--strict").code == 0
    research = panda.turn_file(811, "research.json")
    (visit,) = research.parent.glob("webpage_cache/amazon*")
    shutil.move(visit, panda.home / "away")
    for place in ("811", str(panda.store)):
        ended = panda("validate", place, "--strict", "--json")
        assert ended.code == 3
        (problem,) = ended.data["problems"]
        assert (problem["path"], problem["key"]) == (str(research), "webpage_cache[1]")
        assert problem["fix"]
    shutil.move(panda.home / "away", panda.turn_file(812, "webpage_cache") / visit.name)
    assert panda("validate", "811", "--strict").code == 0  # another turn of the user has it


def test_a_visit_that_only_the_table_of_a_research_names_must_be_there(demo: Path, tmp_path: Path) -> None:
    """research.md is searched for visits too; the finding has the line, and its fix takes the name out."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    table = panda.turn_file(811, "research.md")
    research = panda.turn_file(811, "research.json")
    value = json.loads(research.read_text("utf-8")) | {"webpage_cache": ["visit_abc123"]}
    research.write_text(json.dumps(value), encoding="utf-8")
    (visit,) = research.parent.glob("webpage_cache/amazon*")
    shutil.rmtree(visit)
    (line,) = (n for n, text in enumerate(table.read_text("utf-8").split("\n"), 1) if "visit_def456" in text)
    ended = panda("validate", str(panda.store), "--json")
    (problem,) = ended.data["problems"]
    assert (ended.code, problem["path"], problem["line"]) == (3, str(table), line)
    assert "visit_def456" in problem["message"]
    command = problem["fix"].partition("panda ")[2].split()
    assert panda(*command, "--yes").code == 0
    assert panda("validate", str(panda.store)).code == 0
    assert "visit_abc123" in table.read_text("utf-8")


def test_a_turn_that_lost_a_visit_is_checked_for_the_others(demo: Path, tmp_path: Path) -> None:
    """A forgotten visit is named by no research any more; the other ones must be there."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    assert panda("forget", "visit:visit_abc123", "--yes").code == 0
    assert panda("validate", str(panda.store)).code == 0
    research = json.loads(panda.turn_file(811, "research.json").read_text("utf-8"))
    assert research["webpage_cache"] == ["visit_def456"]
    assert "visit_abc123" not in panda.turn_file(811, "research.md").read_text("utf-8")
    assert "[forgotten " in panda.turn_file(811, "research.md").read_text("utf-8")
    (visit,) = panda.turn_file(811, "webpage_cache").iterdir()
    shutil.rmtree(visit)
    assert any("visit_def456, which is not there" in problem for problem in panda.problems())


def test_forgetting_a_turn_takes_its_visits_out_of_later_research(demo: Path, tmp_path: Path) -> None:
    """A research of another turn that used one of its pages names it no more, and the store stays sound."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    later = panda.turn_file(812, "research.json")
    research = json.loads(panda.turn_file(811, "research.json").read_text("utf-8"))
    research |= {"topic": "commerce.other", "webpage_cache": ["visit_def456"]}
    later.write_text(json.dumps(research), encoding="utf-8")
    assert panda("forget", "811", "--yes").code in (0, 3)
    assert json.loads(later.read_text("utf-8"))["webpage_cache"] == []
    assert not any("visit_def456" in problem for problem in panda.problems())


def test_broken_yaml_is_found_wherever_it_is(demo: Path, tmp_path: Path) -> None:
    """YAML of any file that is named, of a turn's context, of recipes and their registry; with its line."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    broken = "name: x\nsteps: [1\nother: 2\n"
    for name, line in (
        ("any.yaml", 3),
        ("recipes/registry.yaml", 3),
        ("recipes/pipeline/own.yaml", 3),
        ("models.yaml", 3),
    ):
        path = panda.write(name, broken)
        ended = panda("validate", name, "--json")
        assert (ended.code, [problem["line"] for problem in ended.data["problems"]]) == (3, [line]), name
        path.unlink()
    context = panda.turn_file(811, "context.md")
    context.write_text(context.read_text("utf-8").replace("turn: 811", "turn: [811", 1), encoding="utf-8")
    assert any(f"{context}:" in problem or str(context) in problem for problem in panda.problems())
    panda.write("notes.md", "---\ntags: [a\n---\nText.\n")
    ended = panda("validate", "notes.md", "--json")
    assert (ended.code, len(ended.data["as_text"])) == (0, 1)


def test_a_memory_that_others_can_read_is_a_warning(demo: Path, tmp_path: Path) -> None:
    """A store of before is told of with the command that mends it, and is sound all the same."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    home = panda.store / "users" / "demo"
    for path in (panda.store, panda.store / "users", home):
        path.chmod(0o755)
    (home / "preferences.md").chmod(0o644)
    ended = panda("validate", str(panda.store), "--json")
    (warning,) = ended.data["warnings"]
    assert (ended.code, warning["fix"]) == (0, f"chmod -R go-rwx {home}")
    assert panda("validate", str(panda.store)).out.startswith(f"{home} (mode): warning: ")
    for path in (home, *home.rglob("*")):
        path.chmod(path.stat().st_mode & 0o700)
    assert panda.json("validate", str(panda.store))["warnings"] == []
