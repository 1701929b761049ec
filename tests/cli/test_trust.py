"""What a project's files and the links of its store may reach, before and after `panda trust`."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.api import Panda, on_terminal
from tests.loopback import Server

FIX = "look at it with panda trust --dry-run, then panda trust"
SECRET = "hunter2"
MODELS = """\
models:
  away: {{backend: openai, location: "{url}", model: m, n_ctx: 16384, api_key_env: MY_SECRET}}
layers: {{REFLEX: away, NERVES: away, MIND: away, VOICE: away, EYES: null}}
"""
LEAKING = "http://192.0.2.1/v1"
REACHING = {
    *("root", "cache_dir", "models_file", "web_allow", "web_browser", "search_provider", "test_commands"),
}
"""Settings of panda.toml that `panda trust` tells of."""
HARMLESS = {
    *("user", "session", "now", "seed", "wait_seconds", "web_timeout_seconds", "compression_model_layer"),
    *("tool_seconds", "test_seconds", "compression_enabled", "compression_threshold"),
    *("min_compression_savings", "compression_cache_ttl", "default_context_budget", "response_token_reserve"),
}
"""Settings that reach nothing, whatever their value."""
DERIVED = {"recipe_dirs", "prompt_dirs", "project_dir", "trust", "state_dir"}
"""What `config show` tells and no panda.toml sets."""
REACHING_MODEL_KEYS = {"location", "projector", "api_key_env", "extra_body", "headers", "proxy", "ca_file"}
"""Keys of a model that can reach out of a project: `panda trust` tells what they would do."""
HARMLESS_MODEL_KEYS = {
    *("backend", "n_ctx", "embeds", "model"),
    *("thinking_tokens", "timeout_seconds", "attempt_seconds", "parallel", "structured", "max_tokens_key"),
}
"""Keys of a model that only say how it is used."""


@pytest.fixture
def listener() -> Iterator[Server]:
    """A server that must hear nothing before it is trusted."""
    server = Server()
    server.answer = lambda _: (500, b"")
    yield server
    server.close()


@pytest.fixture
def checkout(tmp_path: Path) -> Panda:
    """A project that came from somebody else, with a store, and a directory of the user's beside it."""
    panda = Panda(tmp_path / "project", PANDA_TRUST="", PANDA_ROOT="")
    panda.environ |= {"HOME": str(tmp_path / "home"), "MY_SECRET": SECRET}
    panda.store = panda.home / "panda-system-docs"
    for name in ("home", "outside"):
        (tmp_path / name).mkdir()
    assert panda("init").code == 0
    return panda


def outside(checkout: Panda) -> Path:
    """The directory beside the project."""
    return checkout.home.with_name("outside")


def record(checkout: Panda) -> Path:
    """Return the file of what the user trusts."""
    return checkout.home.with_name("project-state") / "panda" / "trust.json"


def effects(checkout: Panda) -> list[tuple[str, str]]:
    """Return what `panda trust` would let happen, each with the file that asks for it."""
    claims = checkout.json("trust", "--dry-run")["claims"]
    return [(claim["path"], reach["effect"]) for claim in claims for reach in claim["reaches"]]


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
    words: tuple[str, ...], checkout: Panda, listener: Server
) -> None:
    """A project's models.yaml that names a server ends every command that would ask it with 2 and the fix."""
    path = checkout.write("models.yaml", MODELS.format(url=listener.url))
    checkout.write("long.txt", "One sentence of a long text. " * 50)
    ended = checkout(*words)
    assert (ended.code, listener.asked) == (2, [])
    assert f"where: {path}:2 (models.away.location)\nfix: {FIX}\n" in ended.err
    assert f"contacts {listener.url} with the secret in $MY_SECRET" in ended.err
    assert not list(checkout.store.rglob("turn_*"))


def test_all_that_a_model_sends_and_where_is_shown(checkout: Panda, listener: Server) -> None:
    """Each server of a list, headers and further keys are named; another server in the list asks again."""
    keys = "model: m, extra_body: {user: me}, headers: {x-note: a},"
    listed = MODELS.format(url="URLS").replace('"URLS"', f"[{listener.url}, {LEAKING}]")
    checkout.write("models.yaml", listed.replace("model: m,", keys))
    assert checkout("models", "check").code == 2
    assert [effect for _, effect in effects(checkout)] == [
        f"{what} {url}{secret}"
        for url in (listener.url, LEAKING)
        for what, secret in (
            ("contacts", " with the secret in $MY_SECRET"),
            ("sends the extra_body user to", ""),
            ("sends the headers x-note to", ""),
        )
    ]
    assert listener.asked == []
    assert checkout("trust").code == 0
    assert checkout("models", "list").code == 0
    checkout.write("models.yaml", listed.replace("192.0.2.1", "192.0.2.2"))
    assert checkout("models", "list").code == 2


def test_proxies_certificates_and_variables_are_shown(checkout: Panda) -> None:
    """The variables whose values a server gets, the proxy and the file of certificates are named."""
    keys = "model: m, headers: {x-note: 'a ${MY_TOKEN}'}, proxy: 'http://${MY_PROXY}', ca_file: own.pem,"
    checkout.write("own.pem", "certificates")
    checkout.write("models.yaml", MODELS.format(url=LEAKING).replace("model: m,", keys))
    assert checkout("models", "list").code == 2
    named = [effect for _, effect in effects(checkout)]
    assert f"sends the value of $MY_TOKEN to {LEAKING}" in named
    assert f"sends the value of $MY_PROXY to {LEAKING}" in named
    assert "sends all requests through http://${MY_PROXY}" in named
    assert any(effect.startswith("trusts the certificates in ") for effect in named)


@pytest.mark.parametrize("words", [("list",), ("config", "show"), ("recipe", "list"), ("memory", "list")])
def test_commands_that_load_no_model_do_not_ask(words: tuple[str, ...], checkout: Panda) -> None:
    """A command that contacts and runs nothing works in an untrusted checkout."""
    checkout.write("models.yaml", MODELS.format(url=LEAKING))
    checkout.write("panda.toml", '[test_commands]\nunit = "make"\n')
    assert checkout(*words).code == 0


def test_trust_lets_a_server_be_asked_until_the_file_changes(checkout: Panda, listener: Server) -> None:
    """Once trusted the server hears the secret; a changed file, or one revoked, asks again."""
    path = checkout.write("models.yaml", MODELS.format(url=listener.url))
    assert {name for name, _ in effects(checkout)} == {str(path)}
    assert checkout("models", "check").code == 2
    assert checkout("trust").code == 0
    assert record(checkout).stat().st_mode & 0o022 == 0  # nobody else can write it
    assert checkout("models", "check").code == 3
    assert {headers["Authorization"] for headers in listener.headers} == {f"Bearer {SECRET}"}
    before = len(listener.asked)
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert checkout("models", "check").code == 2
    assert checkout("trust").code == 0
    assert checkout.json("trust", "--revoke")["revoked"] == [str(path)]
    assert (checkout("models", "check").code, len(listener.asked)) == (2, before)


@pytest.mark.parametrize(("words", "environ"), [(["--trust"], {}), ([], {"PANDA_TRUST": "1"})])
def test_one_run_can_be_trusted(
    words: list[str], environ: dict[str, str], checkout: Panda, listener: Server
) -> None:
    """--trust and PANDA_TRUST=1 let one run through and record nothing."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    assert checkout("models", "check", *words, **environ).code == 3
    assert listener.asked != []
    assert checkout("models", "check").code == 2


def test_own_files_need_no_trust(checkout: Panda, tmp_path: Path) -> None:
    """A models.yaml that a variable or the user's own file names is the user's."""
    path = tmp_path / "mine.yaml"
    path.write_text(MODELS.format(url=LEAKING), encoding="utf-8")
    assert checkout("models", "list", PANDA_MODELS_FILE=str(path)).code == 0
    own = tmp_path / "home/.config/panda/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'models_file = "{path}"\ncache_dir = "{tmp_path / "cache"}"\n', encoding="utf-8")
    assert checkout("models", "list").code == 0


def _state_in_project(checkout: Panda) -> Path:
    return checkout.home / "state"


def _state_linked_into_project(checkout: Panda) -> Path:
    (checkout.home / "state").mkdir()
    link = checkout.home.with_name("link")
    link.symlink_to(checkout.home / "state")
    return link


@pytest.mark.parametrize("place", [_state_in_project, _state_linked_into_project])
def test_no_record_within_the_project_counts(
    place: Callable[[Panda], Path], checkout: Panda, listener: Server
) -> None:
    """A record that the project could have brought along is refused, for reading and writing."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    assert checkout("trust").code == 0
    state = str(place(checkout))
    checkout.write("state/panda/trust.json", record(checkout).read_bytes())
    assert checkout("trust", XDG_STATE_HOME=state).code == 2
    assert (checkout("models", "check", XDG_STATE_HOME=state).code, listener.asked) == (2, [])


@pytest.mark.parametrize("text", ["trust = true\n", "state_dir = 'x'\n", "[trust]\nall = true\n"])
def test_no_key_of_panda_toml_grants_trust(text: str, checkout: Panda, listener: Server) -> None:
    """panda.toml knows no key of that kind."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    checkout.write("panda.toml", text)
    assert (checkout("models", "check").code, listener.asked) == (2, [])


def test_every_setting_reaches_out_or_is_harmless(checkout: Panda) -> None:
    """A new setting or key of a model is put either among those that reach out or among the harmless ones."""
    assert checkout.json("config", "show")["settings"].keys() == REACHING | HARMLESS | DERIVED
    keys: set[str] = set()
    for backend in ("openai, location: http://x/v1, model: m", "llama_cpp, location: a.gguf"):
        checkout.write(
            "models.yaml", f"models: {{m: {{backend: {backend}, n_ctx: 9, x: 1}}}}\nlayers: {{}}\n"
        )
        fix = checkout("models", "list", "--trust", "--json").error["fix"]
        keys.update(fix.removeprefix("use one of ").split(", "))
    assert keys == REACHING_MODEL_KEYS | HARMLESS_MODEL_KEYS


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ('root = "../outside"', "reads and writes the store {outside}"),
        ('root = "way"', "reads and writes the store {outside}"),
        ('cache_dir = "../outside"', "writes into {outside}, and reads what is kept there"),
        ('models_file = "../outside/models.yaml"', "reads the models of {outside}/models.yaml"),
        ('web_allow = ["127.0.0.1"]', "lets web pages be read at 127.0.0.1"),
        ('search_provider = "searxng:http://127.0.0.1:9"', "sends searches to http://127.0.0.1:9"),
        ('search_provider = "file:../outside"', "reads {outside}"),
        ('[test_commands]\nunit = ["touch", "a b"]', "runs touch 'a b'"),
    ],
)
@pytest.mark.parametrize("name", ["panda.toml", "sub/panda.toml"])
def test_settings_of_a_project_that_reach_out(text: str, effect: str, name: str, checkout: Panda) -> None:
    """Each is shown with its effect, is a finding of validate, and stops a turn in code mode."""
    place = outside(checkout)
    (place / "models.yaml").write_text("models: {}\nlayers: {}\n", encoding="utf-8")
    path = checkout.write(name, "")
    (path.parent / "way").symlink_to(place)
    if path.parent != checkout.home:
        text = text.replace("../outside", "../../outside")
    path.write_text(f"# mine\n{text}\n", encoding="utf-8")
    checkout.home = path.parent / "deeper"
    checkout.home.mkdir()
    wanted = effect.format(outside=place)
    assert effects(checkout) == [(str(path), wanted)]
    before = sorted(place.rglob("*"))
    if not text.startswith("root"):
        checkout("init", "--trust")
    ended = checkout("turn", "Which laptop?", "--mode", "code")
    assert (ended.code, f"fix: {FIX}" in ended.err) == (2, True)
    judged = checkout("validate", "--json")
    assert judged.code == 3
    problems = {(problem["message"], problem["verdict"]) for problem in judged.data["problems"]}
    assert (f"not trusted: {wanted}", "not judged") in problems
    assert sorted(place.rglob("*")) == before


def test_models_outside_of_the_project_are_not_loaded(checkout: Panda) -> None:
    """A GGUF or projector outside, by path or by link, is named with its digest, and not loaded."""
    place = outside(checkout)
    (place / "x.gguf").write_bytes(b"GGUF")
    (checkout.home / "link.gguf").symlink_to(place / "x.gguf")
    spec = "{{backend: llama_cpp, location: {}, n_ctx: 512{}}}"
    locations = ["../outside/x.gguf", "link.gguf", str(place / "x.gguf")]
    models = [f"  m{n}: {spec.format(location, '')}\n" for n, location in enumerate(locations)]
    models.append(f"  p: {spec.format('own.gguf', ', projector: ../outside/mmproj.gguf')}\n")
    checkout.write("models.yaml", f"models:\n{''.join(models)}layers: {{MIND: p}}\n")
    assert [effect.partition(" (")[0] for _, effect in effects(checkout)] == [
        *[f"runs the model {place / 'x.gguf'}"] * 3,
        f"runs the model {place / 'mmproj.gguf'}",
    ]
    assert checkout("models", "check").code == 2
    checkout.write("models.yaml", f"models:\n  p: {spec.format('own.gguf', '')}\nlayers: {{MIND: p}}\n")
    assert checkout("models", "list").code == 0


def test_a_trusted_path_that_leads_elsewhere_asks_again(checkout: Panda) -> None:
    """Trust is for where a link led when it was given."""
    for name in ("a", "b"):
        (outside(checkout) / f"{name}.gguf").write_bytes(b"GGUF")
    link = checkout.home / "link.gguf"
    link.symlink_to(outside(checkout) / "a.gguf")
    spec = "{backend: llama_cpp, location: link.gguf, n_ctx: 512}"
    checkout.write("models.yaml", f"models:\n  m: {spec}\nlayers: {{MIND: m}}\n")
    assert checkout("trust").code == 0
    assert checkout("models", "list").code == 0
    link.unlink()
    link.symlink_to(outside(checkout) / "b.gguf")
    assert checkout("models", "list").code == 2


def test_a_store_that_is_a_link_is_asked_for(checkout: Panda) -> None:
    """The default store may be a link out of the project only once trusted; one that --root names may be."""
    store = checkout.store
    store.rename(outside(checkout) / "store")
    store.symlink_to(outside(checkout) / "store")
    assert checkout("list").code == 2
    assert checkout("init", "--demo").code == 2
    assert checkout("list", "--root", str(store)).code == 0
    assert checkout("trust").code == 0
    assert checkout("list").code == 0


def test_a_damaged_record_is_an_error(checkout: Panda, listener: Server) -> None:
    """A record that does not read trusts nothing and says which file to delete."""
    checkout.write("models.yaml", MODELS.format(url=listener.url))
    record(checkout).parent.mkdir(parents=True)
    for text in ("{", "[]", json.dumps({"schema": "panda.trust/1", "trusted": {"a": 1}})):
        record(checkout).write_text(text, encoding="utf-8")
        ended = checkout("models", "check")
        assert (ended.code, str(record(checkout)) in ended.err, listener.asked) == (2, True, [])


def test_nothing_to_trust(checkout: Panda) -> None:
    """A project that reaches nothing needs no trust, and none is recorded."""
    ended = checkout("trust")
    assert (ended.code, ended.out) == (0, "")
    assert "nothing here reaches out" in ended.err
    assert not record(checkout).exists()


def test_a_vault_elsewhere_is_searched_once_trusted(checkout: Panda) -> None:
    """knowledge/ linked to a vault is named by rebuild and validate, and then searched, circles or not."""
    vault = outside(checkout)
    (vault / "sub").mkdir()
    (vault / "sub/hamster.md").write_text("Hamsters burrow deep.", encoding="utf-8")
    (vault / "sub/back").symlink_to("..")
    link = checkout.user_directory / "knowledge"
    link.rmdir()  # `panda init` has made it
    link.symlink_to(vault)
    rebuilt = checkout("index", "rebuild")
    assert rebuilt.code == 3
    assert f"{link}: this link leads out of the store, to {vault}" in rebuilt.out
    assert checkout("index", "search", "hamsters").out == ""
    assert checkout("validate").code == 3
    assert checkout("trust").code == 0
    assert "knowledge:sub/hamster.md" in checkout("index", "search", "hamsters").out
    assert checkout("validate").code == 0


def test_a_linked_memory_file(checkout: Panda) -> None:
    """preferences.md linked elsewhere stops what reads it until trusted, and is then written through."""
    target = outside(checkout) / "preferences.md"
    target.write_text("---\nbudget: 500\n---\n", encoding="utf-8")
    target.chmod(0o600)
    link = checkout.user_directory / "preferences.md"
    link.symlink_to(target)
    ended = checkout("memory", "set", "tea", "Assam")
    assert (ended.code, f"fix: {FIX}" in ended.err) == (2, True)
    assert target.read_text(encoding="utf-8") == "---\nbudget: 500\n---\n"
    assert checkout("trust").code == 0
    assert checkout("memory", "set", "tea", "Assam").code == 0
    assert link.is_symlink()
    assert "Assam" in target.read_text(encoding="utf-8")
    assert target.stat().st_mode & 0o777 == 0o600


def test_links_of_trusted_directories_are_claims_of_their_own(checkout: Panda) -> None:
    """Behind a link to / nothing is looked for; what a trusted directory links to elsewhere asks again."""
    knowledge = checkout.user_directory / "knowledge"
    secret = checkout.home.with_name("secret")
    secret.write_text("secret", encoding="utf-8")
    (outside(checkout) / "note.md").symlink_to(secret)
    (knowledge / "all").symlink_to("/")
    (knowledge / "vault").symlink_to(outside(checkout))
    assert {path for path, _ in effects(checkout)} == {str(knowledge / "all"), str(knowledge / "vault")}
    (knowledge / "all").unlink()
    assert "these name 1 more" in checkout("trust").err
    assert [path for path, _ in effects(checkout)] == [
        str(outside(checkout) / "note.md"),
        str(knowledge / "vault"),
    ]


def test_names_and_numbers_are_whole_on_a_terminal(checkout: Panda, tmp_path: Path) -> None:
    """A line is longer than the terminal rather than that a name is cut."""
    url = f"http://{'models.' * 12}example:8080/v1"
    checkout.write("models.yaml", MODELS.format(url=url))
    target = tmp_path / "outside" / ("long-" * 12 + "name.md")
    target.write_text("The tea is in the blue box.\n", encoding="utf-8")
    (checkout.user_directory / "knowledge" / "link.md").symlink_to(target)
    lines = on_terminal(checkout, "trust", "--dry-run")
    assert {url, str(target), str(checkout.home / "models.yaml:2")} <= set(lines.split())


def test_a_judged_turn_that_cites_a_note_behind_a_link_says_how_to_trust_it(
    checkout: Panda, tmp_path: Path
) -> None:
    """The note was a file when it was cited; now its place is a link that leads out."""
    note = checkout.user_directory / "knowledge" / "tea.md"
    note.write_text("The tea is in the blue box.\n", encoding="utf-8")
    assert checkout.turn("Where is the tea?").code == 0
    note.replace(tmp_path / "outside" / "tea.md")
    note.symlink_to(tmp_path / "outside" / "tea.md")
    problems = checkout("validate", "1", "--json").data["problems"]
    fixes = [problem["fix"] for problem in problems if "leads out of the store" in problem["message"]]
    assert fixes
    assert set(fixes) == {FIX}
