"""
Tab in real shells, in a project and a store full of names that shells could run.

A shell that is not installed is skipped: `apt-get install zsh fish` has all of them tested.
"""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer import _completion_shared

from tests.api import LAPTOPS, Panda

REPORT = "<!-- a report of panda: the next one takes its place --><testsuite/>"
BIN = Path(sys.executable).parent
PATIENCE_SECONDS = 30
HOSTILE = (
    *("$(touch PWNED)", "\\$(touch PWNED)", "\\\\$(touch PWNED)", "`touch PWNED`", "\\`touch PWNED\\`"),
    *("${(e):-$(touch PWNED)}", "a;touch PWNED", "a\ntouch PWNED\n", "'; touch PWNED; '"),
    *('"; touch PWNED; "', "))'; touch PWNED; _arguments '*: :((", "a&touch PWNED&", "a|touch PWNED"),
    *("<(touch PWNED)", "=(touch PWNED)", "(touch PWNED)", "\x1b]0;touch\x07", "a\ttouch PWNED"),
    *("~touch", "*touch*", "!touch", "{touch,PWNED}", "%touch", "#touch", "touch PWNED", "touch\u202e"),
    *("touché", "-dash", "--dash"),
)
LINES = (
    ("panda recipe show ", "pipeline/plain-recipe"),
    ("panda list --session ", "plain-session"),
    ("panda view ", "plain-run"),
    ("panda show --user ", "ann"),
    ("panda intervention show ", "plain-intervention"),
    ("panda forget ", "budget"),
    ("panda show -- ", "911"),
    ("panda memory ", "retract"),
)
"""What is typed before Tab, and one of the words that are offered."""


@pytest.fixture
def hostile(tmp_path: Path) -> Panda:
    """A project that nobody trusted, whose recipes, sessions, runs, users, halts and keys have such names."""
    panda = Panda(tmp_path / "project", PANDA_ROOT="", PANDA_TRUST="", PANDA_USER="ann")
    panda.store = panda.home / "panda-system-docs"
    shutil.copytree(LAPTOPS, panda.store)
    panda.write("panda.toml", "")
    users = panda.store / "users"
    turns = users / "ann" / "turns"
    template = next(turns.iterdir())
    keys = []
    for number, name in enumerate(("plain", *HOSTILE), 900):
        is_plain = name == "plain"
        metadata = json.loads((template / "metadata.json").read_text())
        metadata |= {"session_id": "plain-session" if is_plain else name, "turn_number": number}
        panda.write(f"{turns / f'turn_{number:06d}' / 'metadata.json'}", json.dumps(metadata))
        panda.write(f"recipes/pipeline/{'plain-recipe' if is_plain else name}.yaml", "")
        panda.write(f"recipes/{'plain' if is_plain else name}/recipe.yaml", "")
        panda.write(f"{panda.store}/runs/{'plain-run' if is_plain else name}/run.json", "{}")
        panda.write(f"{panda.store}/interventions/{'plain-intervention' if is_plain else name}.json", "{}")
        if not is_plain:
            (users / name).mkdir()
            keys.append(f"- {name}: 1\n".replace("a\n", "a "))
    panda.write(f"{users}/ann/facts.md", "".join(keys))
    return panda


class Terminal:
    """A shell at a terminal; what it shows is collected."""

    def __init__(self, words: list[str], panda: Panda) -> None:
        self.screen = ""
        pid, self.descriptor = pty.fork()
        if pid == 0:
            os.chdir(panda.home)
            environ = {**panda.environ, "HOME": str(panda.home.parent), "TERM": "dumb", "COLUMNS": "200"}
            environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
            os.execvpe(words[0], words, environ)
        self.pid = pid

    def type(self, text: str, *, until: str) -> str:
        """Type, and return what is shown up to and with a text; fails if that never comes."""
        start = len(self.screen)
        os.write(self.descriptor, text.encode())
        deadline = time.monotonic() + PATIENCE_SECONDS
        while until not in self.screen[start:]:
            assert time.monotonic() < deadline, f"no {until!r} in {self.screen[start:]!r}"
            if select.select([self.descriptor], [], [], 1)[0]:
                self.screen += os.read(self.descriptor, 65536).decode("utf-8", "replace")
        return self.screen[start:]

    def end(self) -> None:
        """Leave the shell."""
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)


def script_of(shell: str, panda: Panda) -> str:
    ended = panda.process("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert (ended.code, ended.err) == (0, "")
    return ended.out


def earlier_script_of(shell: str) -> str:
    """The script that earlier versions of panda installed."""
    template = {
        "bash": _completion_shared.COMPLETION_SCRIPT_BASH,
        "zsh": _completion_shared.COMPLETION_SCRIPT_ZSH,
    }[shell]
    names = {"complete_func": "_panda_completion", "prog_name": "panda"}
    return (template % {**names, "autocomplete_var": "_PANDA_COMPLETE"}).strip()


STARTS = {
    "zsh": (
        ["zsh", "-f", "-i"],
        "PROMPT='' PROMPT2='' LISTMAX=1000; unsetopt zle_bracketed_paste prompt_sp automenu; "
        "autoload -Uz compinit; compinit -u -D; source ./completion; echo rea'dy'\n",
    ),
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "PS1=''; bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'; "
        "bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'; "
        "source ./completion; echo rea'dy'\n",
    ),
}


@pytest.mark.parametrize("age", ["new", "earlier"])
@pytest.mark.parametrize("shell", ["zsh", "bash"])
def test_tab_runs_nothing(shell: str, age: str, hostile: Panda) -> None:
    """Tab offers the ordinary words, shows none of the others, and runs nothing."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    hostile.write("completion", script_of(shell, hostile) if age == "new" else earlier_script_of(shell))
    words, preparation = STARTS[shell]
    terminal = Terminal(words, hostile)
    terminal.type(preparation, until="ready")
    for number, (line, offered) in enumerate(LINES if age == "new" else LINES[:3]):
        screen = terminal.type(f"{line}\t\t", until=offered)
        screen += terminal.type(f"\x15echo en'd'{number}\n", until=f"end{number}")
        assert "touch" not in screen
    terminal.end()
    assert list(hostile.home.rglob("PWNED")) == []


def test_fish_offers_plain_words(hostile: Panda) -> None:
    """Fish, which is asked for its completions of a line, offers plain words too."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    hostile.write("completion", script_of("fish", hostile))
    environ = {**hostile.environ, "HOME": str(hostile.home), "PATH": f"{BIN}:{os.environ['PATH']}"}
    for line, offered in LINES:
        command = ["fish", "--private", "-c", f"source ./completion; complete -C '{line}'"]
        done = subprocess.run(
            command, cwd=hostile.home, env=environ, capture_output=True, text=True, check=True, timeout=60
        )
        candidates = [row.split("\t")[0] for row in done.stdout.splitlines()]
        assert offered in candidates
        assert "touch" not in done.stdout
    assert list(hostile.home.rglob("PWNED")) == []


def ask(panda: Panda, shell: str, line: str, **environ: str) -> tuple[str, str]:
    """Return what a script would get for a line with the cursor at its end, and stderr."""
    asked = {"_PANDA_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
    ended = panda.process(**{**asked, **words, **environ})
    return ended.out, ended.err


@pytest.mark.parametrize("shell", ["zsh", "pwsh"])
def test_only_plain_words_leave(shell: str, hostile: Panda) -> None:
    """Of words that would be options, or that no shell is here for, none gets out of the program either."""
    for line, offered in (LINES[1], LINES[3], ("panda list --session=", "plain-session")):
        out, err = ask(hostile, shell, line, _TYPER_COMPLETE_WORD_TO_COMPLETE=line.split(" ")[-1])
        assert (offered in out, "touch" in out, err) == (True, False, "")
        assert re.search(r"(^|[\s\"])-+dash", out) is None


@pytest.mark.parametrize(
    "environ",
    [
        {"_TYPER_COMPLETE_ARGS": "panda show '$(touch PWNED)", "COMP_WORDS": "panda show '$(touch PWNED)"},
        {"_TYPER_COMPLETE_ARGS": "panda \\", "COMP_WORDS": "panda \\"},
        {"_TYPER_COMPLETE_ARGS": "panda --version ", "COMP_WORDS": "panda --version "},
        {"_TYPER_COMPLETE_ARGS": "panda list --wait `id` ", "COMP_WORDS": "panda list --wait `id` "},
        {"_TYPER_COMPLETE_ARGS": "panda compress `id`", "COMP_WORDS": "panda compress `id`"},
        {"COMP_CWORD": "`id`", "_TYPER_COMPLETE_ARGS": "panda show --user `id` "},
        {"COMP_CWORD": "9" * 5000, "_TYPER_COMPLETE_ARGS": "panda nosuch "},
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_faulty_questions_are_answered_in_silence(
    shell: str, environ: dict[str, str], tmp_path: Path
) -> None:
    """A line that cannot be read gets no error, nothing of itself, and nothing that a command printed."""
    out, err = ask(Panda(tmp_path), shell, environ.get("COMP_WORDS", ""), **environ)
    assert err == ""
    assert not any(trace in out for trace in ("`", "$", "PWNED", "panda"))


@pytest.mark.parametrize("instruction", ["complete_tcsh", "source_zsh", "$(id)", "complete"])
def test_unknown_shells_get_nothing(instruction: str, tmp_path: Path) -> None:
    """A shell that is not known is told nothing that it might run."""
    ended = Panda(tmp_path).process(_PANDA_COMPLETE=instruction)
    assert (ended.code, ended.out, ended.err) == (2, "", "")


@pytest.mark.parametrize(("command", "option"), [("batch", "--junit"), ("diff", "--html")])
def test_tab_erases_no_report(command: str, option: str, tmp_path: Path) -> None:
    """A report that the line names is as it was after Tab."""
    panda = Panda(tmp_path)
    report = panda.write("report", REPORT)
    ask(panda, "bash", f"panda {command} {option} {report} ")
    assert report.read_text() == REPORT


def test_tab_runs_no_program_of_the_directory(tmp_path: Path) -> None:
    """After ./panda, bash asks the panda that is installed, not a file that lies there."""
    panda = Panda(tmp_path / "project")
    panda.write("panda", "#!/bin/sh\ntouch PWNED\n").chmod(0o755)
    panda.write("completion", script_of("bash", panda))
    words, preparation = STARTS["bash"]
    terminal = Terminal(words, panda)
    terminal.type(preparation, until="ready")
    terminal.type("./panda memory ret\t", until="retract")
    terminal.end()
    assert list(panda.home.rglob("PWNED")) == []
