"""The page itself: the template with its style sheet, its script and the data, in one file that loads nothing else."""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

_FOLDER = Path(__file__).parent


def render(content: Mapping[str, Any]) -> str:
    """Return the page that shows what `questions.collect` returned.

    The security policy in the page's head names the digests of its script and style sheet: no other script runs, and no
    request leaves the page, whatever a question or a completion contains.
    """
    shared = [_FOLDER.parent / name for name in ("colors.css", "elements.css")]
    *styles, script = (
        path.read_text(encoding="utf-8") for path in (*shared, _FOLDER / "browse.css", _FOLDER / "browse.js")
    )
    style = "".join(styles)
    # In a script element, "</" would end the element and "<!--" would begin a comment.
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=select_autoescape(["jinja"]), undefined=StrictUndefined
    )
    return environment.get_template("browse.html.jinja").render(
        study=content["study"],
        script=script,
        style=style,
        data=data,
        script_digest=_digest(script),
        style_digest=_digest(style),
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
