"""What HTML pages share: templates, and scripts that a page's security policy names by their digest."""

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Script:
    """The text of a script, and the digest by which a policy allows it and no other."""

    text: str
    digest: str


def environment(folder: Path) -> Environment:
    """Return the templates of a folder, and those that pages share; texts are escaped, unknown names are errors."""
    return Environment(
        loader=FileSystemLoader([folder, _FOLDER]),
        autoescape=select_autoescape(["jinja"]),
        undefined=StrictUndefined,
    )


def script_of(name: str) -> Script:
    """Return a script of the folder `reporting`."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return Script(text=text, digest=digest(text))


def digest(text: str) -> str:
    """Return the digest of a script or a style sheet, as a security policy names it."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
