"""
The stores of earlier versions below cases/stores, and what is said of them.

`python -m tests.make_stores` records anew what today's program says of each: validate, show, replay, diff and
others of SAID, with their values; a change that is meant is a line of CHANGELOG.md. `python -m
tests.make_stores NAME CHECKOUT` makes a store anew.

CHECKOUT is a working copy of the commit NAME with its own .venv. Its own program makes the store, command by
command, at set times and with a scripted model on loopback; the archive has neither times nor owners, so that
the same store is the same bytes.
"""

import gzip
import hashlib
import io
import json
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.api import CASES, Ended, ModelServer, Panda, models_at, unpack_store
from tests.script import Asked, Script, pick

PAGES = Path(__file__).parent / "web" / "pages"
SHOP = "http://127.0.0.1:8474/shop_json_ld.html"
STORES = ("6aef12b", "4aa895e")
"""Commits whose programs made them."""
SAID = (
    *("validate store", "list --limit 0", "session list", "session verify", "session show home"),
    *("stats", "memory list", "memory history favorite_tea", "intervention list", "diff saved {run}"),
    *("show 811", "show 813", "show 816 --section 5", "show 817", "show 819", "show 820", "show 821"),
    *("replay 815-821", "index search boiler"),
)
"""What is asked of each store; {run} is its first run."""
LONG = 400
PORT = 8475
"""Of the model, when the stores are made; nothing listens there when they are replayed."""
USER = "demo"
FIRST = 813
LINE = "The boiler was serviced on 14 October 2025 by Harriet Moss."
NOTE = f"# Boiler\n\n- {LINE}\n- Next service: October 2026.\n"
IMPORTED = (
    {"session": "garden", "at": "2025-12-01T09:00:00Z", "query": "When do I cut the roses?"},
    {"session": "garden", "at": "2025-12-01T09:05:00Z", "query": "And the apple tree?"},
)
NOTHING: Mapping[str, Any] = {
    "clauses": [],
    "mood": "asks",
    "references": [],
    "exclusions": [],
    "clears": None,
    "periods": [],
    "limits": [],
    "agreement": None,
    "recap": False,
    "all": False,
    "statements": [],
}
ANALYSIS = {"query_type": "informational", "intent": "query", "needs_current_prices": False}
ANALYSIS |= {"needs_live_data": False, "resolved_query": ""}


NONE: Mapping[str, Any] = {"retrieval": {"relevant": []}, "synthesis": {"lines": []}}
WHICH = "Which of the two boats do you mean?"


class Told(Script):
    """A script in which the node of an answer's item is what a pattern finds in what the model is shown."""

    cites_nodes = True

    def __init__(self, answer: str, pattern: str, **replies: Any) -> None:
        super().__init__(**replies)
        self._text, self._pattern = answer, pattern

    def __call__(self, asked: Asked) -> str | Exception:
        nodes = re.findall(self._pattern, asked.text)
        item = {"text": self._text, "node_ids": nodes[-1:]}
        self._replies["answer"] = {"items": [item] if nodes and self._text else []}
        return super().__call__(asked)


def telling(text: str, key: str, value: str) -> Told:
    """A model that has what the user tells kept: as a statement, or in older versions by memory.create."""
    said = {"text": text, "key": key, "value": value, "entity": None, "action": None}
    return Told(
        text,
        r"\bturn:8\d\d\b",
        analyzer={**ANALYSIS, "reading": {**NOTHING, "mood": "tells", "statements": [said]}},
        **NONE,
        planner={"tools": ["memory.create"], "next_step": "coordinator"},
        coordinator=[{"tool": "memory.create"}, {"tool": "done"}],
    )


def asking(answer: str, line: str, node: str, **replies: Any) -> Told:
    """A model that finds a line and answers with it."""
    given = {"analyzer": {**ANALYSIS, "reading": NOTHING}, "retrieval": {"relevant": pick(node)}}
    return Told(answer, node, **{**given, "synthesis": {"lines": pick(line)}, **replies})


def make(name: str, checkout: Path, home: Path, server: ModelServer) -> Path:
    """The store, as the program of a checkout makes it."""
    shop = ThreadingHTTPServer(("127.0.0.1", 8474), partial(SimpleHTTPRequestHandler, directory=PAGES))
    Thread(target=shop.serve_forever, daemon=True).start()
    panda = Panda(home, user=USER, PANDA_WEB_ALLOW="127.0.0.1", XDG_CACHE_HOME=str(home / "cache"))
    panda.program = (str(checkout / ".venv/bin/python"), "-c", "from panda.cli.main import main; main()")
    newer = name != "6aef12b"
    models = server.models()
    if not newer:  # knows neither dialects nor encoders
        models = models.replace(",\n    structured: json_schema", "").replace("encoder: null\n", "")
    panda.write("models.yaml", models)
    minute = iter(range(60))

    def run(*words: str, code: int = 0) -> Ended:
        ended = panda.process(*words, PANDA_NOW=f"2026-01-04T14:{next(minute):02}:00Z")
        print(ended.code, words, ended.err.splitlines()[-3:])  # noqa: T201
        assert ended.code == code, (words, ended)
        return ended

    def turn(query: str, script: Script, session: str, code: int = 0) -> None:
        server.script = script
        run("turn", query, "--session", session, code=code)

    run("init", "--demo")
    panda.write(f"store/users/{USER}/knowledge/Home/boiler.md", NOTE)
    panda.write(
        "import.jsonl",
        "".join(json.dumps({"user": USER, "response": "In March.", **line}) + "\n" for line in IMPORTED),
    )
    run("import", "import.jsonl")
    run("memory", "set", "allergy", "peanuts")
    turn("My favorite tea is Assam.", telling("My favorite tea is Assam.", "favorite_tea", "Assam"), "tea")
    turn("My favorite tea is Sencha.", telling("My favorite tea is Sencha.", "favorite_tea", "Sencha"), "tea")
    boiler = "knowledge:Home/boiler.md[^\\s,\\]|]*"
    turn("Who serviced the boiler?", asking(LINE, "Harriet", boiler.partition("[")[0]), "home")
    later = asking("Next service: October 2026.", "Next service", "knowledge:Home/boiler.md")
    turn("And when is the next service?", later, "home")
    question = {"decision": "CLARIFY", "question": WHICH}
    unclear = (
        {"reflection": question}
        if newer
        else {"context": {"verdict": "clarify", "guidance": "", "question": WHICH}}
    )
    turn("How much was it?", Told("", "turn:", **NONE, **unclear), "boats", code=21)
    turn("How deep is the bedding?", asking("", "", "turn:", planner="nonsense"), "pets", code=20)
    fetch = {"calls": [{"tool": "web.fetch", "arguments": {"url": SHOP}}]}
    live = {**ANALYSIS, "needs_current_prices": True, "needs_live_data": True, "intent": "commerce"}
    shopping = asking(
        "The Lenovo LOQ 15 costs $697.00.",
        "$697",
        r"visit:[\w-]+",
        analyzer={**live, "reading": NOTHING},
        **NONE,
        planner={"tools": ["web.fetch"], "next_step": "coordinator"},
        coordinator=[fetch, {"calls": [{"tool": "done"}]}],
    )
    turn(f"What does {SHOP} say the Lenovo LOQ 15 costs now?", shopping, "shop")
    server.script = Script()
    run("replay", f"{FIRST}-{FIRST + 10}", code=3)
    if newer:
        server.script = asking(LINE, "Harriet", "knowledge:Home/boiler.md")
        items = [{"id": f"q{n}", "query": f"Who serviced the boiler, {n}?"} for n in (1, 2)]
        panda.write("queries.jsonl", "".join(json.dumps(item) + "\n" for item in items))
        run("batch", "queries.jsonl", "--save")
        turn(
            "My locker code is 4417 today.", telling("My locker code is 4417 today.", "locker", "4417"), "gym"
        )
        run("forget", "locker", "--yes")
    return panda.store


def pack(store: Path, target: Path) -> None:
    """An archive of a store, less what is made again from it: the same files are the same bytes."""
    shutil.rmtree(store / "indexes", ignore_errors=True)
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(store.rglob("*")):
            entry = tarfile.TarInfo(f"store/{path.relative_to(store)}")
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            else:
                data = path.read_bytes()
                entry.size, entry.mode = len(data), 0o644
                archive.addfile(entry, io.BytesIO(data))


def what_is_said(name: str, home: Path) -> dict[str, Any]:
    """What each command of SAID gives on a copy of a store: its exit code and `data`, by its words."""
    panda = Panda(home / "project", unpack_store(name, home), user=USER, PANDA_NOW="2026-01-05T00:00:00Z")
    panda.write("models.yaml", models_at(f"http://127.0.0.1:{PORT}/v1"))  # by which a replay knows its model
    run = min(path.name for path in (panda.store / "runs").iterdir())
    found = {}
    for words in SAID:
        ended = panda(*words.format(run=run).split(), "--json")
        assert ended.code in (0, 2, 3), (words, ended.out)
        text = json.dumps({"code": ended.code, "data": _lasting(ended.data), "error": ended.value["error"]})
        found[words] = json.loads(text.replace(str(panda.home), "HOME"))
    return found


def _lasting(value: Any) -> Any:
    """The same without what differs from run to run: seconds, and long texts as their digest."""
    if isinstance(value, dict):
        return {key: _lasting(one) for key, one in value.items() if not key.endswith(("seconds", "_ms"))}
    if isinstance(value, list):
        return [_lasting(one) for one in value]
    if isinstance(value, str) and len(value) > LONG:
        return f"{len(value)} characters, sha256 {hashlib.sha256(value.encode()).hexdigest()[:12]}"
    return value


def main() -> int:
    """Make one store, or record what is said of all; the exit code."""
    stores = CASES / "stores"
    with tempfile.TemporaryDirectory() as directory:
        if sys.argv[1:]:
            name, checkout = sys.argv[1:]
            with closing(ModelServer(port=PORT)) as served:
                pack(make(name, Path(checkout), Path(directory), served), stores / f"{name}.tar.gz")
            return 0
        for name in STORES:
            text = json.dumps(what_is_said(name, Path(directory) / name), ensure_ascii=False, indent=1)
            (stores / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
