"""What a shell is told after Tab: the scripts that ask, and the one place that lets words out to them."""

import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO

from typer import _completion_shared
from typer._click.shell_completion import CompletionItem, ShellComplete
from typer._completion_classes import BashComplete, FishComplete, PowerShellComplete, ZshComplete
from typer.core import TyperGroup

VARIABLE = "_PANDA_COMPLETE"
"""The environment variable by which a script asks, such as "complete_zsh"."""

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:@+,-]+")
_NOT_PLAIN_HELP = re.compile(r"[^A-Za-z0-9_./:;@+, -]+")

# Scripts of Typer run the command as it was typed (bash: ./panda of a stranger's directory) and evaluate all
# that the program prints (zsh). Those that were installed before go on working: the words they get are plain.
_BASH_SCRIPT = """
%(complete_func)s() {
    local IFS=$'\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" \\
                   COMP_CWORD=$COMP_CWORD \\
                   %(autocomplete_var)s=complete_bash %(prog_name)s ) )
    return 0
}

complete -o default -F %(complete_func)s %(prog_name)s
"""
_ZSH_SCRIPT = """
#compdef %(prog_name)s

%(complete_func)s() {
  local line
  local -a offers
  for line in "${(@f)$(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" %(autocomplete_var)s=complete_fish \\
      _TYPER_COMPLETE_FISH_ACTION=get-args %(prog_name)s)}"; do
    if [[ $line == *$'\t'* ]]; then
      offers+=("${${line%%%%$'\t'*}//:/\\\\:}:${line#*$'\t'}")
    elif [[ -n $line ]]; then
      offers+=("${line//:/\\\\:}")
    fi
  done
  if (( $#offers )); then
    _describe %(prog_name)s offers
  else
    _files
  fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
else
  compdef %(complete_func)s %(prog_name)s
fi
"""


class _PlainWords(ShellComplete):
    """Lets only words through that no shell reads as anything else, whatever a completion function found."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        offers_options = incomplete.startswith("-") and "=" not in incomplete and "--" not in args
        return [
            CompletionItem(item.value, item.type, _NOT_PLAIN_HELP.sub("", item.help or "").strip() or None)
            for item in super().get_completions(args, incomplete)
            if is_plain_word(item.value, may_be_option=offers_options)
        ]


class _Bash(_PlainWords, BashComplete):
    pass


class _Zsh(_PlainWords, ZshComplete):
    pass


class _Fish(_PlainWords, FishComplete):
    pass


class _PowerShell(_PlainWords, PowerShellComplete):
    pass


_SHELLS: Mapping[str, type[ShellComplete]] = {
    "bash": _Bash,
    "zsh": _Zsh,
    "fish": _Fish,
    "powershell": _PowerShell,
    "pwsh": _PowerShell,
}


def is_plain_word(value: str, *, may_be_option: bool = False) -> bool:
    """
    Return whether every shell reads a word as it is written; a word with a dash in front is an option.

    >>> is_plain_word("pipeline/phase1"), is_plain_word("$(id)"), is_plain_word("--trust")
    (True, False, False)
    """
    return _PLAIN_WORD.fullmatch(value) is not None and (may_be_option or not value.startswith("-"))


def use_safe_scripts() -> None:
    """Have --install-completion and --show-completion give scripts that evaluate nothing."""
    _completion_shared._completion_scripts.update(bash=_BASH_SCRIPT, zsh=_ZSH_SCRIPT)


def answer_shell(program: TyperGroup, instruction: str) -> tuple[str, int]:
    """
    Return what stdout gets and the exit code, for an instruction such as "complete_zsh".

    The words typed so far are read from the environment, where the script puts them. A shell may run what it
    is given, and shows what else is printed between the words that the user types: on any error the answer is
    empty, and whatever a command prints while its line is read goes nowhere.
    """
    action, _, name = instruction.partition("_")
    shell = _SHELLS.get(name)
    if action != "complete" or shell is None:
        return "", 2
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(Exception):
        try:
            return shell(program, {}, "panda", VARIABLE).complete() + "\n", 0
        except SystemExit as exc:  # how Typer tells fish whether there are words to offer
            return "", exc.code if isinstance(exc.code, int) else 0
    return "", 0
