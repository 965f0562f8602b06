"""Show the source that a page links to: a line with nothing but such a link becomes a block of code on the site.

    [`pair` in data/donors.py](../lib/dualread/data/donors.py)
    [`complete` in generation/transformers_engine.py, from `for step` to `tokens[at`](../lib/...)

The first shows the whole function, class or constant, the second a part of it: from its first line that begins with the
one text to the next line that begins with the other. A method is `Class.method`. The code is read when the site is
built, so that it cannot age; where it is gone, the build fails. Where a page is read without the site, it has a link.
"""

import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.exceptions import PluginError

REPOSITORY = Path(__file__).parents[2]
_LINK = re.compile(
    r"^\[`(?P<name>[\w.]+)` in (?P<shown>[\w./]+)"
    r"(?:, from `(?P<first>[^`]+)` to `(?P<last>[^`]+)`)?\]\((?P<link>[^)\s]+)\)$",
    re.MULTILINE,
)


class Excerpt(NamedTuple):
    """Lines of a file: where it is in the repository, the numbers of the first and the last line, and the code."""

    file: str
    start: int
    end: int
    code: str


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the code in the place of the links (an event of mkdocs)."""
    try:
        return with_code(markdown, Path(config["docs_dir"], page.file.src_uri).parent)
    except LookupError as error:
        raise PluginError(f"{page.file.src_uri}: {error.args[0]}") from error


def with_code(markdown: str, folder: Path) -> str:
    """Return a page of `folder` with the code that it links to.

    Raises:
        LookupError: As in `excerpts`.
    """
    found = iter(excerpts(markdown, folder))
    return _LINK.sub(lambda _: _block(next(found)), markdown)


def excerpts(markdown: str, folder: Path) -> list[Excerpt]:
    """Return what a page of `folder` shows of the source, in the order of the page.

    Raises:
        LookupError: A link leads to no file, to another file than it says, or to a name or a line that its file lacks.
    """
    return [_excerpt(link, folder) for link in _LINK.finditer(markdown)]


def _excerpt(link: re.Match[str], folder: Path) -> Excerpt:
    path = (folder / link["link"]).resolve()
    if not path.is_file() or not path.as_posix().endswith(f"/{link['shown']}"):
        raise LookupError(f"{link['link']}: no such file, or not the {link['shown']} that the link names.")
    lines = path.read_text(encoding="utf-8").splitlines()
    block = range(len(lines))
    for depth, name in enumerate(link["name"].split(".")):
        block = _definition(lines, name, "    " * depth, block)
        if not block:
            raise LookupError(f"{link['shown']}: has no {link['name']}. Name what the file has now.")
    if link["first"]:
        block = _part(lines, block, link["first"], link["last"])
        if not block:
            raise LookupError(
                f"{link['shown']}, {link['name']}: no line begins with {link['first']!r}, or none after it with"
                f" {link['last']!r}. Choose lines that are there now."
            )
    code = textwrap.dedent("\n".join(lines[block.start : block.stop]))
    return Excerpt(path.relative_to(REPOSITORY).as_posix(), block.start + 1, block.stop, code)


def _definition(lines: list[str], name: str, indent: str, within: range) -> range:
    """Return the lines of a function, class or constant, decorators included; an empty range if there is none."""
    begins = re.compile(rf"{indent}(?:(?:async )?def |class )?{name}\b(?:\(.*|:.*| = .*)$")
    start = next((k for k in within if begins.match(lines[k])), within.stop)
    stop = next((k for k in range(start + 1, within.stop) if _is_after(lines[k], indent)), within.stop)
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    while within.start < start < stop and lines[start - 1].startswith(f"{indent}@"):
        start -= 1
    return range(start, stop)


def _is_after(line: str, indent: str) -> bool:
    """Whether a line does not belong to a definition with this indentation any more; closing brackets do."""
    return bool(line.strip()) and not line.startswith((f"{indent} ", *(f"{indent}{mark}" for mark in ")]}")))


def _part(lines: list[str], block: range, first: str, last: str) -> range:
    start = next((k for k in block if lines[k].lstrip().startswith(first)), block.stop)
    stop = next((k + 1 for k in range(start, block.stop) if lines[k].lstrip().startswith(last)), start)
    return range(start, stop)


def _block(excerpt: Excerpt) -> str:
    where = f"{excerpt.file}, lines {excerpt.start} to {excerpt.end}"
    return f'```python title="{where}" linenums="{excerpt.start}"\n{excerpt.code}\n```'
