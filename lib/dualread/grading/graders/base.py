"""What graders share: how texts are quoted, and replies of one word."""

import json
import re


def quoted(text: str) -> str:
    """Return a text as a JSON text, so that it is read as material."""
    return json.dumps(text, ensure_ascii=False)


def yes_or_no(reply: str) -> bool | None:
    """Return whether the reply says yes; None if its first word is neither yes nor no."""
    word = re.match(r"\W*(\w+)", reply)
    return {"yes": True, "no": False}.get(word[1].lower()) if word else None
