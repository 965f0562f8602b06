"""The page: its start, its style and script, and the part that shows a result."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

import dualread.reporting
from dualread.apps.score.results import Reading, Scored
from dualread.apps.score.scorer import Scorer
from dualread.apps.serve.demo.asked import MAX_IMAGE_MEGABYTES
from dualread.apps.serve.demo.examples import EXAMPLES

_FOLDER = Path(__file__).parent
_SHARED = Path(dualread.reporting.__file__).parent  # the look of the other pages
_DECISIONS = {True: "Keep", False: "Do not keep", None: "Undecided"}
_PSR, _PER = "PSR, before the answer", "PER, after the answer"


def start(scorer: Scorer) -> str:
    """Return the page without a result."""
    return _template("demo").render(
        method=scorer.method, notes=scorer.notes, megabytes=MAX_IMAGE_MEGABYTES, examples=EXAMPLES
    )


def style() -> str:
    """Return the style sheet."""
    files = (_SHARED / "colors.css", _SHARED / "elements.css", _FOLDER / "demo.css")
    return "".join(path.read_text(encoding="utf-8") for path in files)


def script() -> str:
    """Return the script."""
    return (_FOLDER / "demo.js").read_text(encoding="utf-8")


def result(scored: Scored, method: str) -> str:
    """Return the part of the page that shows `scored`; whatever the actor said stays a text."""
    return _template("result").render(
        scored=scored,
        rows=list(_rows(scored, method)),
        decision=_DECISIONS[scored.decision.keep],
        completions=[
            (title, reading.completion)
            for title, reading in (("the image", scored), ("the second image", scored.donor))
            if reading is not None
        ],
    )


def _rows(scored: Scored, method: str) -> Iterator[dict[str, Any]]:
    """Yield one row per confidence: its name, its value on each image, and by how much it drops."""
    sides = [scored] if scored.donor is None else [scored, scored.donor]
    has_parts = any(reading.psr is not None and reading.per is not None for reading in sides)
    names = [
        *([_PSR, _PER] if has_parts else []),
        *(name for name in scored.methods if name != method),
        method,
    ]
    for name in names:
        values = [_value(reading, name) for reading in sides]
        numbers = [value for value, _ in values if value is not None]
        drop = numbers[0] - numbers[1] if len(numbers) > 1 else None
        shown = f"{name}, both together" if name == method and has_parts else name
        yield {"name": shown, "values": values, "drop": drop, "decides": name == method}


def _value(reading: Reading, name: str) -> tuple[float | None, bool]:
    """Return the confidence `name`, or None, and whether it is imputed."""
    if name in (_PSR, _PER):
        return (reading.psr if name == _PSR else reading.per), False
    return reading.methods[name].confidence, reading.methods[name].imputed


def _template(name: str):
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=select_autoescape(["jinja"]), undefined=StrictUndefined
    )
    return environment.get_template(f"{name}.html.jinja")
