"""What a project's files and the links of its store may reach, before and after `panda trust`."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from panda.models.models_file import ModelSpec
from panda.settings import SETTABLE
from panda.trust import OUTWARD
from tests.api import Ended, run_here

FIX = "look at it with panda trust --dry-run, then panda trust"
SECRET = "hunter2"
MODELS = """\
models:
  away: {{backend: openai, location: "{url}", model: m, n_ctx: 16384, writes: true, api_key_env: MY_SECRET}}
layers: {{REFLEX: away, NERVES: away, MIND: away, VOICE: away, EYES: null}}
"""
HARMLESS = {
    *("user", "session", "now", "seed", "wait_seconds", "web_timeout_seconds", "compression_model_layer"),
    *("tool_seconds", "test_seconds", "compression_enabled", "compression_threshold"),
    *("min_compression_savings", "compression_cache_ttl", "default_context_budget", "response_token_reserve"),
}
"""Settings that reach nothing, whatever their value."""
REACHING_MODEL_KEYS = {"location", "further_servers", "projector", "api_key_env", "extra_body", "headers"}
"""Keys of a model that can reach out of a project: `panda trust` tells what they would do."""
HARMLESS_MODEL_KEYS = {
    *("name", "backend", "n_ctx", "writes", "scores", "embeds", "requantize", "model"),
    *("thinking_tokens", "timeout_seconds", "attempt_seconds", "parallel", "structured", "max_tokens_key"),
}
"""Keys of a model that only say how it is used."""


class Listener:
    """A server on loopback that keeps what it is sent."""

    def __init__(self) -> None:
        self.heard: list[dict[str, str]] = []
        heard = self.heard

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                heard.append(dict(self.headers))
                self.send_error(500)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A server that must hear nothing."""
    server = Listener()
    yield server
    server.close()


class Checkout:
    """A project that came from somebody else, with a store, and the user's own directories beside it."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "home"
        self.project = tmp_path / "project"
        self.outside = tmp_path / "outside"
        for directory in (self.home, self.project, self.outside):
            directory.mkdir()

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def __call__(self, *words: str, **environ: str) -> Ended:
        given = {"HOME": str(self.home), "MY_SECRET": SECRET, "PANDA_NOW": "2026-01-05T00:00:00Z", **environ}
        return run_here(words, given)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout in which commands run."""
    made = Checkout(tmp_path)
    monkeypatch.chdir(made.project)
    made("init")
    return made


LOADING: tuple[tuple[str, ...], ...] = (
    ("turn", "Which laptop?"),
    ("turn", "Which laptop?", "--mode", "code"),
    ("gather", "--query", "Which laptop?"),
    ("models", "list"),
    ("models", "check"),
    ("compress", "long.txt", "--budget", "20"),
    ("tool", "run", "memory.query", "--args", '{"query": "laptop"}'),
    ("eval", "--cases", "cases"),
    ("memory", "reflect"),
    ("mcp",),
)


@pytest.mark.parametrize("words", LOADING, ids=" ".join)
def test_no_server_is_contacted_before_trust(
    words: tuple[str, ...], checkout: Checkout, listener: Listener
) -> None:
    """A project's models.yaml that names a server ends every command that would ask it with 2 and the fix."""
    path = checkout.write("models.yaml", MODELS.format(url=listener.url))
    checkout.write("long.txt", "One sentence of a long text. " * 50)
    ended = checkout(*words)
    assert (ended.code, listener.heard) == (2, [])
    assert f"where: {path}:2 (models.away.location)\nfix: {FIX}\n" in ended.err
    assert f"contacts {listener.url} with the secret in $MY_SECRET" in ended.err
    assert not list((checkout.project / "panda-system-docs/users").rglob("turn_*"))


def test_every_server_of_a_list_is_named(checkout: Checkout, listener: Listener) -> None:
    """Of a list of servers each is told with what it is sent, and none is contacted before trust."""
    listed = f"[{listener.url}, http://192.0.2.1/v1]"
    entry = (
        MODELS.format(url="URLS").replace('"URLS"', listed).replace("model: m,", "model: m, headers: {a: b},")
    )
    checkout.write("models.yaml", entry)
    ended = checkout("models", "check")
    assert (ended.code, listener.heard) == (2, [])
    assert f"contacts {listener.url} with the secret in $MY_SECRET, and 3 more" in ended.err
    shown = checkout("trust", "--dry-run").out
    for url in (listener.url, "http://192.0.2.1/v1"):
        assert f"contacts {url} with the secret in $MY_SECRET" in shown
        assert f"sends the headers a to {url}" in shown
    assert checkout("trust").code == 0
    assert checkout("models", "list").code == 0
    checkout.write("models.yaml", entry.replace("192.0.2.1", "192.0.2.2"))
    assert checkout("models", "list").code == 2


@pytest.mark.parametrize("words", [("list",), ("config", "show"), ("recipe", "list"), ("memory", "list")])
def test_commands_that_load_no_model_do_not_ask(words: tuple[str, ...], checkout: Checkout) -> None:
    """What contacts and runs nothing works in an untrusted checkout."""
    checkout.write("models.yaml", MODELS.format(url="http://192.0.2.1/v1"))
    checkout.write("panda.toml", '[test_commands]\nunit = "make"\n')
    assert checkout(*words).code == 0


def test_trust_lets_a_server_be_asked_until_the_file_changes(checkout: Checkout, listener: Listener) -> None:
    """Once trusted the server hears the secret; a changed file, or one revoked, asks again."""
    path = checkout.write("models.yaml", MODELS.format(url=listener.url))
    shown = checkout("trust", "--dry-run", "--json").value["data"]
    assert [claim["path"] for claim in shown["claims"]] == [str(path)]
    assert checkout("models", "check").code == 2
    assert checkout("trust").code == 0
    assert checkout("models", "check").code == 3
    assert {headers["Authorization"] for headers in listener.heard} == {f"Bearer {SECRET}"}
    heard = len(listener.heard)
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert checkout("models", "check").code == 2
    assert checkout("trust").code == 0
    assert checkout("trust", "--revoke", "--json").value["data"]["revoked"] == [str(path)]
    assert (checkout("models", "check").code, len(listener.heard)) == (2, heard)


@pytest.mark.parametrize("way", ["flag", "variable"])
def test_one_run_can_be_trusted(way: str, checkout: Checkout, listener: Listener) -> None:
    """--trust and PANDA_TRUST=1 let one run through and record nothing."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    ended = (
        checkout("models", "check", "--trust")
        if way == "flag"
        else checkout("models", "check", PANDA_TRUST="1")
    )
    assert (ended.code, bool(listener.heard)) == (3, True)
    assert checkout("models", "check").code == 2


def test_own_files_need_no_trust(checkout: Checkout, listener: Listener, tmp_path: Path) -> None:
    """A models.yaml that a variable or the user's own file names is the user's."""
    path = tmp_path / "mine.yaml"
    path.write_text(MODELS.format(url=listener.url), encoding="utf-8")
    assert checkout("models", "list", PANDA_MODELS_FILE=str(path)).code == 0
    own = checkout.home / ".config/panda/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'models_file = "{path}"\ncache_dir = "{tmp_path / "cache"}"\n', encoding="utf-8")
    assert checkout("models", "list").code == 0


def _state_in_project(checkout: Checkout) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(checkout.project / "state")}


def _state_linked_into_project(checkout: Checkout) -> dict[str, str]:
    (checkout.project / "state").mkdir()
    (checkout.home / "link").symlink_to(checkout.project / "state")
    return {"XDG_STATE_HOME": str(checkout.home / "link")}


@pytest.mark.parametrize("place", [_state_in_project, _state_linked_into_project])
def test_no_record_within_the_project_counts(
    place: Callable[[Checkout], dict[str, str]], checkout: Checkout, listener: Listener
) -> None:
    """A record that the project could have brought along is refused, for reading and writing."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    assert checkout("trust").code == 0
    record = (checkout.home / ".local/state/panda/trust.json").read_text(encoding="utf-8")
    environ = place(checkout)
    checkout.write("state/panda/trust.json", record)
    assert checkout("trust", **environ).code == 2
    assert (checkout("models", "check", **environ).code, listener.heard) == (2, [])


@pytest.mark.parametrize("text", ["trust = true\n", "state_dir = 'x'\n", "[trust]\nall = true\n"])
def test_no_key_of_panda_toml_grants_trust(text: str, checkout: Checkout, listener: Listener) -> None:
    """panda.toml knows no key of that kind."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    checkout.write("panda.toml", text)
    assert (checkout("models", "check").code, listener.heard) == (2, [])


def test_every_setting_is_known_to_reach_out_or_not() -> None:
    """A new setting is put either among those that reach out or among the harmless ones."""
    assert set(SETTABLE) == set(OUTWARD) | HARMLESS
    assert not set(OUTWARD) & HARMLESS
    assert set(ModelSpec.__struct_fields__) == REACHING_MODEL_KEYS | HARMLESS_MODEL_KEYS


def test_what_a_model_sends_along_is_shown(checkout: Checkout, listener: Listener) -> None:
    """Headers and further keys of requests in a models.yaml of a project are named before they are sent."""
    keys = "extra_body: {user: me}, headers: {x-note: a}"
    checkout.write("models.yaml", MODELS.format(url=listener.url).replace("n_ctx", f"{keys}, n_ctx"))
    claims = checkout("trust", "--dry-run", "--json").value["data"]["claims"]
    assert [reach["effect"] for reach in claims[0]["reaches"][1:]] == [
        f"sends the extra_body user to {listener.url}",
        f"sends the headers x-note to {listener.url}",
    ]
    assert (checkout("models", "check").code, listener.heard) == (2, [])


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ('root = "../outside"', "reads and writes the store {outside}"),
        ('root = "way"', "reads and writes the store {outside}"),
        ('cache_dir = "../outside"', "writes into {outside}, and runs the models kept there"),
        ('models_file = "../outside/models.yaml"', "reads the models of {outside}/models.yaml"),
        ('web_allow = ["127.0.0.1"]', "lets web pages be read at 127.0.0.1"),
        ('search_provider = "searxng:http://127.0.0.1:9"', "sends searches to http://127.0.0.1:9"),
        ('search_provider = "file:../outside"', "reads {outside}"),
        ('[test_commands]\nunit = ["touch", "a b"]', "runs touch 'a b'"),
    ],
)
@pytest.mark.parametrize("name", ["panda.toml", "sub/panda.toml"])
def test_settings_of_a_project_that_reach_out(
    text: str, effect: str, name: str, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is shown with its effect, is a finding of validate, and stops a turn in code mode."""
    (checkout.outside / "models.yaml").write_text("models: {}\nlayers: {}\n", encoding="utf-8")
    path = checkout.write(name, f"# mine\n{text}\n")
    (path.parent / "way").symlink_to(checkout.outside)
    if path.parent != checkout.project:
        text = text.replace("../outside", "../../outside")
        path.write_text(f"# mine\n{text}\n", encoding="utf-8")
    below = path.parent / "deeper"
    below.mkdir()
    monkeypatch.chdir(below)
    wanted = effect.format(outside=checkout.outside)
    shown = checkout("trust", "--dry-run", "--json").value["data"]["claims"]
    assert [(claim["path"], one["effect"]) for claim in shown for one in claim["reaches"]] == [
        (str(path), wanted)
    ]
    before = sorted(checkout.outside.rglob("*"))
    if not text.startswith("root"):
        checkout("init", "--trust")
    ended = checkout("turn", "Which laptop?", "--mode", "code")
    assert (ended.code, f"fix: {FIX}" in ended.err) == (2, True)
    found = checkout("validate", "--json").value
    assert found["exit_code"] == 3
    judged = {(problem["message"], problem["verdict"]) for problem in found["data"]["problems"]}
    assert (f"not trusted: {wanted}", "not judged") in judged
    assert sorted(checkout.outside.rglob("*")) == before


def test_models_outside_of_the_project_are_not_loaded(checkout: Checkout) -> None:
    """A GGUF or projector outside, by path or by link, is named with its digest, and not loaded."""
    (checkout.outside / "x.gguf").write_bytes(b"GGUF")
    (checkout.project / "link.gguf").symlink_to(checkout.outside / "x.gguf")
    entry = (
        "  {name}: {{backend: llama_cpp, location: {place}, n_ctx: 512, writes: false, scores: true{more}}}\n"
    )
    places = ["../outside/x.gguf", "link.gguf", str(checkout.outside / "x.gguf")]
    models = [entry.format(name=f"m{n}", place=place, more="") for n, place in enumerate(places)]
    models.append(entry.format(name="p", place="own.gguf", more=", projector: ../outside/mmproj.gguf"))
    checkout.write("models.yaml", "models:\n" + "".join(models) + "layers: {MIND: p}\n")
    claims = checkout("trust", "--dry-run", "--json").value["data"]["claims"]
    real = str(checkout.outside / "x.gguf")
    effects = [reach["effect"].partition(" (")[0] for reach in claims[0]["reaches"]]
    assert effects == [*[f"runs the model {real}"] * 3, f"runs the model {checkout.outside / 'mmproj.gguf'}"]
    assert checkout("models", "check").code == 2
    inside = models[3].replace(", projector: ../outside/mmproj.gguf", "")
    checkout.write("models.yaml", f"models:\n{inside}layers: {{MIND: p}}\n")
    assert checkout("models", "list").code == 0


def test_a_trusted_path_that_leads_elsewhere_asks_again(checkout: Checkout) -> None:
    """Trust is for where a link led when it was given."""
    for name in ("a", "b"):
        (checkout.outside / f"{name}.gguf").write_bytes(b"GGUF")
    link = checkout.project / "link.gguf"
    link.symlink_to(checkout.outside / "a.gguf")
    spec = "{backend: llama_cpp, location: link.gguf, n_ctx: 512, writes: false}"
    checkout.write("models.yaml", f"models:\n  m: {spec}\nlayers: {{MIND: m}}\n")
    assert checkout("trust").code == 0
    assert checkout("models", "list").code == 0
    link.unlink()
    link.symlink_to(checkout.outside / "b.gguf")
    assert checkout("models", "list").code == 2


def test_a_store_that_is_a_link_is_asked_for(checkout: Checkout) -> None:
    """The default store may be a link out of the project only once trusted; one that --root names may be."""
    store = checkout.project / "panda-system-docs"
    store.rename(checkout.outside / "store")
    store.symlink_to(checkout.outside / "store")
    assert checkout("list").code == 2
    assert checkout("init", "--demo").code == 2
    assert checkout("list", "--root", str(store)).code == 0
    assert checkout("trust").code == 0
    assert checkout("list").code == 0


def test_a_damaged_record_is_an_error(checkout: Checkout, listener: Listener) -> None:
    """A record that does not read trusts nothing and says which file to delete."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    record = checkout.home / ".local/state/panda/trust.json"
    record.parent.mkdir(parents=True)
    for text in ("{", "[]", json.dumps({"schema": "panda.trust/1", "trusted": {"a": 1}})):
        record.write_text(text, encoding="utf-8")
        ended = checkout("models", "check")
        assert (ended.code, str(record) in ended.err, listener.heard) == (2, True, [])


def test_nothing_to_trust(checkout: Checkout) -> None:
    """A project that reaches nothing needs no trust, and none is recorded."""
    ended = checkout("trust")
    assert (ended.code, ended.out) == (0, "")
    assert "nothing here reaches out" in ended.err
    assert not (checkout.home / ".local/state").exists()


def test_the_record_is_the_users_alone(checkout: Checkout, listener: Listener) -> None:
    """Nobody else can write the record."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    checkout("trust")
    status = os.stat(checkout.home / ".local/state/panda/trust.json")  # noqa: PTH116
    assert status.st_mode & 0o022 == 0


def test_a_vault_elsewhere_is_searched_once_trusted(checkout: Checkout) -> None:
    """knowledge/ linked to a vault is named by rebuild and validate, and then searched, circles or not."""
    (checkout.outside / "sub").mkdir()
    (checkout.outside / "sub/hamster.md").write_text("Hamsters burrow deep.", encoding="utf-8")
    (checkout.outside / "sub/back").symlink_to("..")
    link = checkout.project / "panda-system-docs/users/default/knowledge"
    link.rmdir()  # `panda init` has made it
    link.symlink_to(checkout.outside)
    rebuilt = checkout("index", "rebuild")
    assert (
        rebuilt.code,
        f"{link}: this link leads out of the store, to {checkout.outside}" in rebuilt.out,
    ) == (3, True)
    assert checkout("index", "search", "hamsters").out == ""
    assert checkout("validate").code == 3
    assert checkout("trust").code == 0
    assert "knowledge:sub/hamster.md" in checkout("index", "search", "hamsters").out
    assert checkout("validate").code == 0


def test_a_linked_memory_file(checkout: Checkout) -> None:
    """preferences.md linked elsewhere stops what reads it until trusted, and is then written through."""
    target = checkout.outside / "preferences.md"
    target.write_text("---\nbudget: 500\n---\n", encoding="utf-8")
    target.chmod(0o600)
    user = checkout.project / "panda-system-docs/users/default"
    (user / "preferences.md").symlink_to(target)
    ended = checkout("memory", "set", "tea", "Assam")
    assert (ended.code, f"fix: {FIX}" in ended.err) == (2, True)
    assert target.read_text(encoding="utf-8") == "---\nbudget: 500\n---\n"
    assert checkout("trust").code == 0
    assert checkout("memory", "set", "tea", "Assam").code == 0
    assert (user / "preferences.md").is_symlink()
    assert "Assam" in target.read_text(encoding="utf-8")
    assert target.stat().st_mode & 0o777 == 0o600


def test_links_of_trusted_directories_are_claims_of_their_own(checkout: Checkout) -> None:
    """Behind a link to / nothing is looked for; what a trusted directory links to elsewhere asks again."""
    knowledge = checkout.project / "panda-system-docs/users/default/knowledge"
    (checkout.home / "secret").write_text("secret", encoding="utf-8")
    (checkout.outside / "note.md").symlink_to(checkout.home / "secret")
    (knowledge / "all").symlink_to("/")
    (knowledge / "vault").symlink_to(checkout.outside)

    def named() -> list[str]:
        return [claim["path"] for claim in checkout("trust", "--dry-run", "--json").value["data"]["claims"]]

    assert named() == [str(knowledge / "all"), str(knowledge / "vault")]
    (knowledge / "all").unlink()
    assert "more lies behind these" in checkout("trust").err
    assert named() == [str(checkout.outside / "note.md"), str(knowledge / "vault")]
