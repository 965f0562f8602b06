"""The page itself: the template with its style sheet, its script and the data, in one file that loads nothing else."""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from dualread.errors import ConfigError

_FOLDER = Path(__file__).parent
_MOST_BYTES = 400_000_000  # of the data; browsers read no text of 512 MB, and show an empty page without a word


def render(content: Mapping[str, Any]) -> str:
    """Return the page that shows what `questions.collect` returned.

    The security policy in the page's head names the digests of its script and style sheet: no other script runs, and no
    request leaves the page, whatever a question or a completion contains.

    Raises:
        ConfigError: The page would be too large for browsers.
    """
    shared = [_FOLDER.parent / name for name in ("colors.css", "elements.css")]
    *styles, script = (
        path.read_text(encoding="utf-8") for path in (*shared, _FOLDER / "browse.css", _FOLDER / "browse.js")
    )
    style = "".join(styles)
    # In a script element, "</" would end the element and "<!--" would begin a comment.
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    if (size := len(data.encode())) > _MOST_BYTES:
        n = len(content["questions"])
        fewer = max(n * _MOST_BYTES // size // 2, 1)
        raise ConfigError(
            f"{n} questions of {content['study']} make a page of {size / 1e6:.0f} MB, and browsers show none above"
            f" {_MOST_BYTES / 1e6:.0f} MB. Expected fewer questions: --most {fewer}, or --dataset."
        )
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=select_autoescape(["jinja"]), undefined=StrictUndefined
    )
    return environment.get_template("browse.html.jinja").render(
        study=content["study"],
        script=script,
        style=style,
        data=data,
        part=part_of(content),
        script_digest=_digest(script),
        style_digest=_digest(style),
    )


def part_of(content: Mapping[str, Any]) -> str:
    """Return the sentence that says which questions a page shows, and how to see others; empty if it shows all."""
    first, n, total = content["skipped"] + 1, len(content["questions"]), content["total"]
    if n == total:
        return ""
    last = first + n - 1
    others = f"--skip {last} shows the next ones" if last < total else "a smaller --skip shows others"
    return f"Questions {first:,} to {last:,} of {total:,}: `dualread browse` with {others}, --most N so many."


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
