"""
S3 §7, web navigation and extraction validation: a site of ten pages walked through with every kind of model.

MIND chooses what is opened next, EYES tells what is seen where scripts made the page; an extraction is
accepted, rejected or tried again.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, Ended, ModelServer, Panda
from tests.loopback import Server, reply
from tests.script import Asked, Script, offered, pick, step_of
from tests.web.museum import BOREALIS, CONCERT, DOORS, HOURS, ORDERS, TIDE, Museum
from tests.web.site import Site, running_site

_HAS_BROWSER = find_spec("playwright") is not None and any(map(shutil.which, ("chromium", "google-chrome")))
in_browser = pytest.mark.skipif(not _HAS_BROWSER, reason="playwright or Chromium is not installed")


@dataclass(frozen=True)
class Town:
    """A project that may read the museum; another site stands beside it."""

    panda: Panda
    """The project."""
    museum: Museum
    """The site that is walked through."""
    elsewhere: Site
    """Another host, that nobody allows."""

    def walk(self, goal: str, *words: str, page: str = "/", **environ: str) -> Ended:
        """`panda tool run internet.navigate` from a page on."""
        arguments = json.dumps({"url": f"{self.museum.root}{page}", "goal": goal})
        return self.panda(
            "tool", "run", "internet.navigate", "--args", arguments, "--json", *words, **environ
        )

    def read_walk(self, goal: str, **settings: str) -> tuple[Any, list[str]]:
        """Data and claims of a walk that succeeds."""
        ended = self.walk(goal, **settings)
        assert ended.code == 0, ended.out
        return ended.data["data"], [claim["text"] for claim in ended.data["claims"]]

    def turn(self, query: str, **environ: str) -> tuple[Ended, list[Any]]:
        """A turn whose URL is the museum's, and its steps."""
        ended = self.panda.turn(query.replace("URL", f"{self.museum.root}/"), **environ)
        steps = sorted((Path(ended.data["turn_dir"]) / "steps").glob("*.json"))
        return ended, [json.loads(step.read_text(encoding="utf-8")) for step in steps]


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    """Two sites on loopback, of which one is allowed."""
    with running_site() as elsewhere:
        museum = Museum(elsewhere.place)
        project = Panda(tmp_path / "project", LAPTOPS, user="ann", PANDA_WEB_ALLOW=museum.place)
        yield Town(project, museum, elsewhere)
        museum.close()


def visits(ended: Ended) -> dict[str, str]:
    """The visit of each page that a turn keeps, by path."""
    manifests = (Path(ended.data["turn_dir"]) / "webpage_cache").glob("*/manifest.json")
    values = [json.loads(path.read_text(encoding="utf-8")) for path in manifests]
    return {value["url"].partition("/")[2].partition("/")[2]: value["visit_id"] for value in values}


def test_s3_7_web_navigation_links(town: Town) -> None:
    """The embedded default opens the link closest to the goal; the answer cites the page behind it."""
    ended, steps = town.turn("Open URL and find the opening hours.")
    assert (ended.code, ended.data["status"]) == (0, "approved"), ended.out
    assert [step["tool"] for step in steps] == ["internet.navigate"]
    assert [row["by"] for row in steps[0]["data"]["steps"]] == ["start", "link: Opening hours and directions"]
    assert town.museum.paths() == ["/", "/visit"]
    assert HOURS in ended.data["response"]
    visits_by_name = {path.rpartition("/")[2]: visit for path, visit in visits(ended).items()}
    assert visits_by_name.keys() == {"", "visit"}
    assert ended.data["sources"][0]["node_id"] == f"visit:{visits_by_name['visit']}"
    assert {claim["node_id"] for claim in steps[0]["claims"]} == {
        f"visit:{visit_id}" for visit_id in visits_by_name.values()
    }
    assert town.panda.problems() == []


def test_s3_7_web_navigation_search_form(town: Town) -> None:
    """A search form is filled with the words of the goal, and what it finds is opened."""
    ended, steps = town.turn("Search the site at URL for the highest tide in the harbour.")
    assert town.museum.paths() == ["/", "/search?q=highest+tide+harbour", "/papers/31"]
    assert TIDE in ended.data["response"]
    assert steps[0]["data"]["steps"][1]["by"] == "form: Search the papers"


def test_s3_7_web_navigation_pagination(town: Town) -> None:
    """A list is followed page by page to what is looked for."""
    data, claims = town.read_walk("price of the Borealis lamp")
    assert [row["by"] for row in data["steps"]][-3:] == ["next: Next page"] * 2 + ["link: Borealis lamp"]
    assert any(claim.startswith(BOREALIS) for claim in claims)
    assert data["ending"] == "stopped"


def test_s3_7_web_navigation_endless(town: Town) -> None:
    """Links without an end are left after eight steps, with what was found; no address is asked for twice."""
    data, claims = town.read_walk("the treasure of the maze")
    assert (len(data["steps"]), data["ending"]) == (8, "limited")
    assert "Wall 7 of the maze is painted blue." in claims
    assert len(set(town.museum.paths())) == len(town.museum.paths()) == 8


def test_s3_7_web_navigation_robots(town: Town) -> None:
    """A page that robots.txt forbids is not read; the walk says so and goes on."""
    data, _ = town.read_walk("staff telephone list")
    assert any("robots.txt asks programs not to read" in line for line in data["failed"])
    assert "/staff" not in town.museum.paths()


def test_s3_7_web_navigation_hosts(town: Town) -> None:
    """Another host is left alone, by links and redirects too, until --allow names it."""
    away = f"{town.elsewhere.root}/hours"
    town.elsewhere.add("/hours", f"<title>Hours</title><main><h1>Hours</h1><p>{HOURS}</p></main>")
    town.museum.add("/visit", status=302, headers={"Location": away})
    data, claims = town.read_walk("What are the opening hours?", page="/guestbook")
    assert data["outside"] == [town.elsewhere.place]
    assert any(f"{town.elsewhere.place} is not the site of" in line for line in data["failed"])
    assert HOURS not in claims
    assert town.elsewhere.asked == []
    allowed = town.walk(
        "What are the opening hours?", "--allow", f"{town.museum.place},{town.elsewhere.place}"
    )
    assert HOURS in [claim["text"] for claim in allowed.data["claims"]]
    refused = town.walk("hours", "--allow", "http://x/")
    assert (refused.code, refused.error["where"]) == (2, "--allow")


def test_s3_7_web_navigation_robots_elsewhere(town: Town) -> None:
    """A robots.txt that leads to another host is not followed there, and the page is left."""
    town.museum.add("/robots.txt", status=302, headers={"Location": f"{town.elsewhere.root}/robots.txt"})
    ended = town.walk("hours")
    assert (ended.code, town.elsewhere.asked, town.museum.paths()) == (3, [], [])
    assert f"{town.elsewhere.place} is not the site of" in ended.error["message"]


def test_s3_7_web_navigation_start_is_away(town: Town) -> None:
    """A start that cannot be read is the tool's error; a turn asks for it once."""
    ended = town.walk("hours", page="/gone")
    assert ended.code == 3
    assert "HTTP 404" in ended.error["message"]
    town.museum.asked.clear()
    assert town.panda.turn(f"Open {town.museum.root}/gone and find the opening hours.").code == 0
    assert town.museum.paths() == ["/gone"]


def scripted(town: Town, *choices: dict[str, Any], **others: Any) -> tuple[Ended, list[Any], list[Asked]]:
    """A turn of a writer that plans the tool and chooses so on each page; what these choices were asked."""
    asked: list[Asked] = []
    call = {
        "tool": "internet.navigate",
        "arguments": {"url": f"{town.museum.root}/", "goal": "opening hours"},
    }
    script = Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner={"tools": ["internet.navigate"], "next_step": "coordinator"},
        coordinator=[{"calls": [call]}, {"calls": [{"tool": "done"}]}],
        navigation=list(choices),
        **others,
    )

    def answer(call: Asked) -> Any:
        if step_of(call) == "navigation":
            asked.append(call)
        if step_of(call) == "answer":
            lines = [line for line, text in offered(call, "lines").items() if HOURS in text]
            return json.dumps({"items": [{"text": HOURS, "lines": lines[:1]}]})
        return script(call)

    server = ModelServer(answer)
    town.panda.write("models.yaml", server.models())
    ended, steps = town.turn("Open URL and find the opening hours.")
    server.close()
    return ended, steps, asked


def test_s3_7_web_navigation_writer(town: Town) -> None:
    """A writer chooses by number under the schema, and types what it likes into a form."""
    ended, steps, asked = scripted(
        town,
        {"lines": [], "action": pick("form: Search the papers"), "text": "tides & winds"},
        {"lines": [], "action": pick("link: Opening hours")},
        {"lines": pick(HOURS), "action": "stop"},
    )
    assert (ended.code, ended.data["status"]) == (0, "approved"), ended.out
    assert town.museum.paths() == ["/", "/search?q=tides+%26+winds", "/visit"]
    assert HOURS in [claim["text"] for claim in steps[0]["claims"]]
    assert "The goal: opening hours" in asked[0].text
    last = asked[-1].text
    assert last.index("# Plan your visit") < last.index("## Pages so far")
    assert len(asked) == 3


def test_s3_7_web_navigation_orders(town: Town) -> None:
    """
    A page that orders a host, a tool and a goal is text: its link is no option, the reply can name nothing
    but a number, and the goal of the next question is the old one.
    """
    ended, steps, asked = scripted(
        town,
        {"lines": [], "action": pick("link: Guestbook")},
        {"lines": pick("SYSTEM"), "action": pick("link: Opening hours")},
        {"lines": pick(HOURS), "action": "stop"},
    )
    orders = ORDERS.format(elsewhere=town.elsewhere.place)
    assert orders in asked[1].text.replace("\n", " ")
    schema: dict[str, Any] = getattr(asked[1].params, "schema", {})
    numbers = [key for key in schema["properties"]["action"]["enum"] if key != "stop"]
    assert all(map(str.isdigit, numbers))
    assert not any("collect" in text for text in offered(asked[1], "action").values())
    assert "The goal: opening hours" in asked[2].text
    assert town.museum.paths() == ["/", "/guestbook", "/visit"]
    assert town.elsewhere.asked == []
    assert [step["tool"] for step in steps] == ["internet.navigate"]
    assert not town.panda.turn_file(ended.data["turn"], "staged_memory.json").exists()


def test_s3_7_web_navigation_orders_and_the_default(town: Town) -> None:
    """The embedded default walks past the orders of a page to the goal."""
    _, claims = town.read_walk("When is the museum open?", page="/guestbook")
    assert HOURS in claims
    assert town.elsewhere.asked == []


def test_s3_7_extraction_is_tried_again(town: Town) -> None:
    """A page that was read badly is read once more, with the reason; then it is accepted or rejected."""
    for last_reply, rejected in (({"accepted": ["p1"]}, False), ({"accepted": []}, True)):
        town.museum.asked.clear()
        replies: list[dict[str, Any]] = [
            {"again": ["p1"], "accepted": [], "missing": "the hours are missing"},
            last_reply,
        ]
        ended, steps, _ = scripted(town, {"lines": [], "action": "stop"}, read_well=replies)
        assert town.museum.paths() == ["/", "/"]
        assert bool(steps[0]["error"]) is rejected
        calls = town.panda.turn_file(ended.data["turn"], "calls.jsonl").read_text(encoding="utf-8")
        assert "Read once more: the hours are missing" in calls
    assert "the hours are missing" in steps[0]["error"]


@in_browser
def test_s3_7_web_navigation_scripts(town: Town) -> None:
    """
    A page that needs scripts is opened in Chromium, which asks the museum alone, and only by GET; its buttons
    can be pressed. Without web_browser the walk says that there is more.
    """
    data, claims = town.read_walk("When does the concert begin?", PANDA_WEB_BROWSER="on")
    assert CONCERT in claims
    assert town.museum.paths() == ["/", "/search?q=concert+begin", "/tonight", "/events.js"]
    pressed, claims = town.read_walk("When do the doors open?", page="/tonight", PANDA_WEB_BROWSER="on")
    assert "button: When do the doors open?" in [row["by"] for row in pressed["steps"]]
    assert f"Tonight: {DOORS}" in claims
    assert town.elsewhere.asked == []
    data, claims = town.read_walk("When does the concert begin?")
    assert CONCERT not in claims
    assert data["faults"] == [
        f"{town.museum.root}/tonight says little without its scripts (setting web_browser)"
    ]


@in_browser
def test_s3_7_web_navigation_eyes(town: Town) -> None:
    """If EYES is set it is given the screenshot of what the browser shows, and MIND reads what it says."""
    seen = "A poster with the words: doors at half past seven."
    picture_urls: list[str] = []

    def look(body: dict[str, Any]) -> tuple[int, bytes]:
        (picture,) = [part for part in body["messages"][-1]["content"] if part["type"] == "image_url"]
        picture_urls.append(picture["image_url"]["url"])
        return reply(seen)

    eyes = Server()
    eyes.answer = look
    asked: list[Asked] = []
    script = Script(navigation=[{"lines": [], "action": "stop"}])

    def answer(call: Asked) -> Any:
        asked.append(call)
        return script(call)

    mind = ModelServer(answer)
    spec = f"backend: openai, location: {eyes.url}, model: eyes, n_ctx: 8192"
    models = (
        mind.models()
        .replace("EYES: null", "EYES: eyes")
        .replace("models:\n", f"models:\n  eyes: {{{spec}}}\n")
    )
    town.panda.write("models.yaml", models)
    town.read_walk("When do the doors open?", page="/tonight", PANDA_WEB_BROWSER="on")
    eyes.close()
    mind.close()
    assert [url.partition(",")[0] for url in picture_urls] == ["data:image/png;base64"]
    assert seen in asked[-1].text


def test_s3_7_web_navigation_no_browser(town: Town, tmp_path: Path) -> None:
    """A browser that is asked for and not installed ends in the command that installs it."""
    empty = tmp_path / "bin"
    empty.mkdir()
    arguments = json.dumps({"url": town.museum.root, "goal": "hours"})
    words = ("tool", "run", "internet.navigate", "--args", arguments, "--json")
    environ = {"PATH": str(empty), "PLAYWRIGHT_BROWSERS_PATH": str(empty), "PANDA_WEB_BROWSER": "on"}
    ended = town.panda.process(*words, **environ)
    assert ended.code == 3, ended.out
    assert "chromium" in ended.error["message"] or "panda-turns[browser]" in ended.error["message"]


def test_s3_7_web_navigation_browser_needs_trust(town: Town) -> None:
    """A project that turns the browser on has to be trusted first."""
    town.panda.write("panda.toml", "web_browser = true\n")
    ended = town.walk("hours", PANDA_TRUST="")
    assert ended.code == 2
    assert "runs the scripts of web pages" in town.panda("trust", "--dry-run", PANDA_TRUST="").out
