"""A wish to forget, said in a turn: carried out, asked about, or told to mean nothing that is kept."""

import json
import shutil
from pathlib import Path

import pytest

from panda.cli.boundary import run
from panda.cli.main import build_program
from tests.api import copy_models
from tests.forgetting.test_forget import SECRET, Place
from tests.forgetting.test_forget import place as place
from tests.kills import Kill, kills_of, run_killed

WISH = "please forget my wifi password"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which real turns were told a password, two codes and a price."""
    base = tmp_path_factory.mktemp("told")
    place = Place(base)
    copy_models(place.cache)
    place.layout.of("ann").home.mkdir(parents=True)
    said = (f"My wifi password is {SECRET}.", "The mooring costs 88 a month.", "The gate code is 4711-a.")
    for query in (*said, "The code of the garage is 5522-b.", "What is my wifi password?"):
        assert place.panda("turn", query, "--session", "talk").returncode == 0
    return base


def say(place: Place, query: str, session: str = "talk") -> tuple[int, str]:
    """A turn's exit code and what it answers or asks."""
    ended = place.panda("turn", query, "--session", session, "--json")
    data = json.loads(ended.stdout)["data"]
    return ended.returncode, data["response"] or data["question"]


def test_a_wish_is_carried_out(place: Place) -> None:
    """What it means is in no file of store or cache any more, the rest is known, and the store is sound."""
    assert place.holding(SECRET)
    assert say(place, WISH) == (0, "Forgotten: wifi password (told in turn 1).")
    assert place.holding(SECRET) == []
    place.sound()
    judged = place.panda("validate", "1-6", "--strict")
    assert (judged.returncode, judged.stdout.count(b"forg")) == (0, 0)
    assert "[forgotten" not in say(place, "what is my wifi password", "later")[1]
    assert "88" in say(place, "what does the mooring cost", "later")[1]
    assert place.holding(SECRET) == []


def test_a_wish_with_the_secret_in_it(place: Place) -> None:
    """The query that names what is to be forgotten loses it too."""
    code, said = say(place, f"forget my wifi password {SECRET}, delete it please")
    assert (code, said) == (0, "Forgotten: wifi password (told in turn 1).")
    assert place.holding(SECRET) == []
    place.sound()


def test_clauses_of_a_sentence_go_too(place: Place) -> None:
    """What was read by itself of a sentence that is forgotten is in no file either."""
    assert say(place, "honey room code is 3391-k, sold 9 jars today", "honey")[1].startswith("Noted: ")
    said = "Forgotten: honey room code (told in turn 6).\nStill kept: sold 9 jars today"
    assert say(place, "pls forget the honey room code again", "honey") == (0, said)
    assert place.holding("3391-k") == []
    assert "9 jars" in say(place, "how many jars were sold", "later")[1]
    place.sound()


def test_of_several_one_is_asked_for(place: Place) -> None:
    """A wish that may mean two things names both and asks; the answer carries it out for one."""
    code, said = say(place, "please forget the code")
    assert (code, "4711-a" in said, "5522-b" in said) == (21, True, True)
    assert say(place, "the one of the garage")[1].startswith("Forgotten: ")
    assert (place.holding("5522-b"), bool(place.holding("4711-a"))) == ([], True)
    place.sound()


def test_a_wish_that_means_nothing(place: Place) -> None:
    """Where nothing of the kind is kept that is said, nothing is noted and nothing goes."""
    assert say(place, "please forget what I told you about the dentist") == (
        0,
        "Nothing of the kind is kept.",
    )
    assert place.holding(SECRET)


def _wish(base: str) -> None:
    """The turn, in this process."""
    place = Place(Path(base))
    own = ["--session", "talk", "--root", str(place.layout.root), "--user", "ann"]
    run(build_program(), ["turn", WISH, *own], place.environ)


def test_a_wish_cut_short(told: Path, tmp_path: Path) -> None:
    """kill -9 at writes all along: what takes up turns that were cut short ends it."""
    shutil.copytree(told, tmp_path / "a", ignore=shutil.ignore_patterns("*.gguf"))
    kills = list(kills_of(_wish, str(tmp_path / "a")))
    for kill in kills[len(kills) // 3 :: len(kills) // 4]:
        base = tmp_path / f"k{kill.write}{kill.torn}"
        shutil.copytree(told, base, ignore=shutil.ignore_patterns("*.gguf"))
        run_killed(Kill(kill.write, kill.torn), _wish, str(base))
        place = Place(base)
        place.panda("turn", "--resume-all")
        assert place.holding(SECRET) == [], kill
        place.sound()
