"""What HTML pages share: templates, labels, tables, and scripts that a page's security policy names by their digest."""

from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Script:
    """The text of a script, and the digest by which a policy allows it and no other."""

    text: str
    digest: str


Row = Sequence[str | int | None]


class Grid(NamedTuple):
    """A plain table of a page; the first column names the row."""

    caption: str
    columns: Sequence[str]  # their headings
    rows: Sequence[Row]  # one text or count per column each; None is a dash
    right: Collection[int] = ()  # positions of the columns with numbers, which are aligned to the right


def environment(folder: Path) -> Environment:
    """Return the templates of a folder, and those that pages share; texts are escaped, unknown names are errors."""
    return Environment(
        loader=FileSystemLoader([folder, _FOLDER]), autoescape=select_autoescape(["jinja"]), undefined=StrictUndefined
    )


def script_of(name: str) -> Script:
    """Return a script of the folder `reporting`."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return Script(text=text, digest=digest(text))


def digest(text: str) -> str:
    """Return the digest of a script or a style sheet, as a security policy names it."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def labels_of(layouts: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return {name: label} of backbones, actors, methods and data sets, in the order of the layout that shows most."""
    labels_by_kind: dict[str, dict[str, str]] = {kind: {} for kind in ("backbones", "actors", "methods", "datasets")}
    for layout in layouts:
        for kind, labels in labels_by_kind.items():
            more = {entry["name"]: entry["label"] for entry in layout.get(kind, ())}
            first, second = (labels, more) if len(labels) >= len(more) else (more, labels)
            labels_by_kind[kind] = {**first, **second}
    return labels_by_kind
