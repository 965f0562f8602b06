"""The program `dualread` shows what the workflow will do and what it has made; `snakemake` runs the workflow itself."""

import argparse
import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Collection
from contextlib import redirect_stdout
from typing import Any, NoReturn, TextIO, cast

from dualread import __version__
from dualread.apps.text import EscapedStdout
from dualread.errors import DualReadError, did_you_mean, printable
from dualread.progress import say

# Verbs by what they serve; what most people need comes first. A verb is a module with HELP, DESCRIPTION,
# `add_arguments` and `run`, which alone imports heavy packages. It has the verb's name, or is listed in `_MODULES`.
_VERBS = {
    "judge": ("evaluate", "answer", "judge"),
    "study": ("new", "ask", "plan", "report", "browse", "explain", "verify", "compare", "schema"),
    "score": ("score", "demo", "serve"),
    "share": ("export",),
    "store": ("gc", "store"),
}
_MODULES = {
    "verify": "explain.verify",
    "schema": "explain.schema",
    "compare": "store.compare",
    "gc": "store.gc",
    "demo": "serve.demo",
    "export": "score.export",
}
# The extra of pyproject.toml with which the verbs of a group are installed.
_EXTRAS = {"study": "study", "score": "models", "share": "models", "store": "study"}
_OF_EXTRA = re.compile(r"extra == ['\"]([\w-]+)")
_TOP = """
How far can an answer be trusted? `dualread VERB --help` explains each verb.
{verbs}
begin  dualread evaluate docs/example/predictions.csv
"""


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest verb or option for an unknown one; argparse uses it for the verbs as well.

    Options have to be written in full. Otherwise `gc --delet` would delete, and a new option could change what an
    abbreviation means.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as the base class does, but report an option that this verb does not have."""
        options, rest = super().parse_known_args(args, namespace)
        if unknown := [word.partition("=")[0] for word in rest if word.startswith("--")]:
            known = [option for option in self._option_string_actions if option.startswith("--")]
            meant = did_you_mean(unknown[0], known)
            self.error(f"{unknown[0]}: no such option. Known: {', '.join(known)}.{meant}")
        return options, rest

    def error(self, message: str) -> NoReturn:
        """Report `message` as the base class does, and say so if an option may have taken the word that is missing."""
        several = [a.option_strings[0] for a in self._actions if a.option_strings and a.nargs == "+"]
        words = [str(a.metavar) for a in self._actions if not a.option_strings and isinstance(a.metavar, str)]
        if several and words and ("are required" in message or any(f"argument {flag}:" in message for flag in several)):
            listed = f"{several[0]} takes" if len(several) == 1 else f"{', '.join(several)} take"
            message += (
                f". {listed} every word that follows: write {words[0]} first, as in `{self.prog} {words[0]} ...`."
            )
        super().error(printable(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            meant = did_you_mean(value, action.choices)
            raise argparse.ArgumentError(action, f"{value!r} is unknown. Known: {', '.join(action.choices)}.{meant}")


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        with redirect_stdout(cast(TextIO, EscapedStdout(sys.stdout))):
            return options.run(options)
    except DualReadError as error:
        say(f"dualread {options.verb}: {error}")
        return 1
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("dualread"):
            raise
        print(f"dualread {options.verb}: {_missing(error.name, options.verb)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe. Output that is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        advice = "Check that the file can be read or written and that the disk has space."
        say(f"dualread {options.verb}: {error}. {advice}")
        return 1
    except KeyboardInterrupt:
        print(f"dualread {options.verb}: interrupted. Run the same command to continue.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    usage = "dualread [-h] [--version] VERB ..."
    parser = _Parser(prog="dualread", usage=usage, formatter_class=layout, add_help=False)
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)  # both are in the usage
    parser.add_argument("--version", action="version", version=f"dualread {__version__}", help=argparse.SUPPRESS)
    verbs = parser.add_subparsers(prog="dualread", dest="verb", required=True, metavar="VERB", help=argparse.SUPPRESS)
    lines = []
    for group, names in _VERBS.items():
        for name in names:
            module = importlib.import_module(f"{__package__}.{_MODULES.get(name, name)}")
            verb = verbs.add_parser(name, description=module.DESCRIPTION, formatter_class=layout)
            module.add_arguments(verb)
            verb.set_defaults(run=module.run)
            lines.append(f"{group if name == names[0] else '':<7}{name:<10}{module.HELP}")
    parser.description = _TOP.format(verbs="\n".join(lines))
    return parser


def _missing(module: str, verb: str) -> str:
    """Return a message on how to install `module` for a verb: with an extra of this project, or by itself."""
    package = module.partition(".")[0]
    package = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}.get(package, package.replace("_", "-"))
    declared = importlib.metadata.requires("dualread") or ()
    known = dict.fromkeys(match[1] for requirement in declared if (match := _OF_EXTRA.search(requirement)))
    extras = [extra for extra in ("", *known) if package in _installed_with(extra, declared)]
    if not extras:
        return f"{package} is not installed. Run: pip install {package}."
    usual = next((_EXTRAS[group] for group, verbs in _VERBS.items() if verb in verbs and group in _EXTRAS), "")
    extra = usual if usual in extras and extras[0] else extras[0]
    return f"{package} is not installed. Run: pip install 'dualread{f'[{extra}]' if extra else ''}'."


def _installed_with(extra: str, declared: Collection[str]) -> set[str]:
    """Return the packages that an extra adds, with those of the extras that it contains; "": that are always there."""
    packages: set[str] = set()
    for requirement in declared:
        match, condition = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement), _OF_EXTRA.search(requirement)
        if match and (condition[1] if condition else "") == extra:
            packages.add(match[1].lower())
            for contained in match[2].split(",") if match[2] and match[1] == "dualread" else ():
                packages |= _installed_with(contained, declared)
    return packages
