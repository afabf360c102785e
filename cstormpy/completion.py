"""Completion of the command line in shells, and what a script defines without being run."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable
from pathlib import Path

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
_cstorm() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words
    case "${{COMP_WORDS[1]}}" in
{cases}
        *) words="{commands}" ;;
    esac
    [[ $COMP_CWORD -eq 1 ]] && words="{commands}"
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _cstorm cstorm
"""
_ZSH = "autoload -Uz bashcompinit && bashcompinit\n"


def script_for(shell: str, parser: argparse.ArgumentParser, diagrams: Iterable[str]) -> str:
    """Return a script that has a shell complete commands, options, names of diagrams, and files.

    Parameters
    ----------
    shell : {"bash", "zsh", "fish"}
    parser : argparse.ArgumentParser
        Of the command line, whose commands and options are completed.
    diagrams : iterable of str
        Names of the ready diagrams, which follow the commands ``demo`` and ``list``.
    """
    chosen = {name: [*_options(command), *_names(name, diagrams)] for name, command in _commands(parser).items()}
    if shell == "fish":
        return "\n".join(_fish(chosen))
    cases = "\n".join(f'        {name}) words="{" ".join(words)}" ;;' for name, words in chosen.items())
    script = _BASH.format(cases=cases, commands=" ".join([*chosen, *_options(parser)]))
    return _ZSH + script if shell == "zsh" else script


def _fish(chosen: dict[str, list[str]]) -> list[str]:
    first = f"complete -c cstorm -n __fish_use_subcommand -f -a '{' '.join(chosen)}'"
    seen = "complete -c cstorm -n '__fish_seen_subcommand_from {}' -a '{}'"
    return [first, *(seen.format(name, " ".join(words)) for name, words in chosen.items())]


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _options(parser: argparse.ArgumentParser) -> list[str]:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    options = [text for action in shown for text in action.option_strings if text.startswith("--")]
    for action in shown:
        if not action.option_strings and action.choices and not isinstance(action, argparse._SubParsersAction):
            options += [str(choice) for choice in action.choices]
    return options


def _names(command: str, diagrams: Iterable[str]) -> list[str]:
    return list(diagrams) if command in ("demo", "list") else []


def may_define(path: Path, name: str) -> bool:
    """Tell whether a script may define a name, as far as its text says; one that cannot be read may.

    A definition, an assignment or an import of the name counts wherever it stands, and so does ``import *``.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return True
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name).partition(".")[0] in (name, "*"):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "globals"):
            return True
    return False
