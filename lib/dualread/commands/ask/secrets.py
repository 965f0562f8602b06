"""What must not be shown or written of what a service says: the key that was sent, and a password in the address."""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

HIDDEN = "[hidden]"
_SHORT, _LONG = 4, 8  # fewer characters are no secret; as many with a digit are in no answer by chance


@dataclass(frozen=True)
class Secrets:
    """The secrets of a service, as a service could write them, longest first.

    Attributes:
        forms: What is hidden.
        certain: Those of a key or password with digits, which are in no answer by chance.
    """

    forms: tuple[str, ...] = field(repr=False)
    certain: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, key: str, address: str) -> "Secrets":
        """Return the secrets: the key, and the name and password before the host of an address."""
        login, _, _ = urlsplit(address).netloc.rpartition("@")
        _, _, password = login.partition(":")
        secrets = [one for one in (key, login, password, unquote(login), unquote(password)) if len(one) >= _SHORT]
        forms = {form: secret for secret in secrets for form in _forms(secret)}
        ordered = sorted(forms, key=len, reverse=True)
        return cls(
            forms=tuple(ordered),
            certain=tuple(form for form in ordered if len(form) >= _LONG and any(map(str.isdecimal, forms[form]))),
        )

    def hidden(self, text: str) -> str:
        """Return `text` without the secrets."""
        return _without(text, self.forms)

    def hidden_in(self, value: Any) -> Any:
        """Return a JSON value without the secrets in its texts; in names, the certain ones."""
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, list):
            return [self.hidden_in(one) for one in value]
        if isinstance(value, dict):
            return {_without(name, self.certain): self.hidden_in(one) for name, one in value.items()}
        return value

    def in_answers(self, body: dict[str, Any]) -> bool:
        """Return whether a secret that is no word is among the answers of a chat completion."""
        said = json.dumps(body.get("choices"), ensure_ascii=False)
        return any(form in said for form in self.certain)


def _without(text: str, forms: Sequence[str]) -> str:
    for form in forms:
        text = text.replace(form, HIDDEN)
    return text


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and as it is written in JSON, in addresses, and in base64 at any place of a text."""
    content = secret.encode()
    yield from (secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote_plus(secret), content.hex())
    for before in range(3):
        # Of three bytes each, four characters are made; those that also depend on what is beside are left out.
        whole = base64.b64encode(b"." * before + content).decode()
        start, end = -(-before * 8 // 6), (before + len(content)) * 8 // 6
        if end - start >= _LONG:
            yield whole[start:end]
            yield whole[start:end].translate(str.maketrans("+/", "-_"))
