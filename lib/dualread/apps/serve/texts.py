"""The text of a completion as it grows, up to a text at which it is cut off, and the texts of single tokens."""

from collections.abc import Sequence
from typing import Any

from transformers.convert_slow_tokenizer import bytes_to_unicode

from dualread.models.actor import Completion
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.streams import Finished, TokenEvent


class TokenPieces:
    """The bytes of single tokens: a character may be spread over several. `special` are ids that are in no text."""

    def __init__(self, tokenizer: Any):
        added = tokenizer.added_tokens_decoder
        self.special = frozenset(id for id, token in added.items() if token.special)
        self._tokenizer, self._added = tokenizer, {id: token.content for id, token in added.items()}
        backend = getattr(tokenizer, "backend_tokenizer", None)
        byte_level = backend is not None and "ByteLevel" in str(backend.decoder)
        # The byte for which each character stands in the vocabularies of byte-level tokenizers (GPT-2).
        self._bytes = {character: byte for byte, character in bytes_to_unicode().items()} if byte_level else {}

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of a token."""
        if token in self._added:
            return self._added[token].encode()
        piece = str(self._tokenizer.convert_ids_to_tokens(token))
        if self._bytes:
            return bytes(self._bytes[character] for character in piece)
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):  # SentencePiece's part of a character
            return bytes([int(piece[3:5], 16)])
        return piece.replace("\u2581", " ").encode()

    def to_wire(self, token: int, log_prob: float | None) -> dict[str, Any]:
        """Return what OpenAI's API says of a token, as it does where the token is a part of a character."""
        content = self.bytes_of(token)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)
        log_prob = -9999.0 if log_prob is None or not log_prob > -9999.0 else log_prob  # also of NaN and -inf
        return {"token": text, "logprob": log_prob, "bytes": list(content)}


class GrowingText:
    """The text of a completion as it grows, up to the first text of `stop`: only what later tokens cannot change.

    `is_cut` says whether one of these texts has come.
    """

    def __init__(self, encoder: Encoder, pieces: TokenPieces, stop: Sequence[str] = ()):
        self._encoder, self._special, self._stop = encoder, pieces.special, stop
        self._events: list[TokenEvent] = []
        self._start = self._end = 0  # ids before `_start` are decoded, those up to `_end` are read with the next ones
        self._text, self.is_cut = "", False
        self._shown: list[tuple[int, TokenEvent]] = []  # tokens that are no special ones, and where their texts begin
        self._n_taken = self._n_tokens_taken = 0

    def add(self, event: TokenEvent) -> None:
        """Add a token; a character of which it is only a part waits for the others."""
        self._events.append(event)
        if event.token not in self._special:
            self._shown.append((len(self._text), event))
        ids = [event.token for event in self._events[self._start :]]
        before, now = self._encoder.decode(ids[: self._end - self._start]), self._encoder.decode(ids)
        if len(now) > len(before) and not now.endswith("\ufffd"):
            self._start, self._end = self._end, len(self._events)
            self._text += now[len(before) :]
            if ends := [at for text in self._stop if (at := self._text.find(text)) >= 0]:
                self._text, self.is_cut = self._text[: min(ends)], True

    @property
    def told(self) -> str:
        """The text that `take` has returned so far."""
        return self._text[: self._n_taken]

    def take(self, full_text: str | None = None) -> tuple[str, list[TokenEvent]]:
        """Return the text and the tokens since the last call: what later tokens cannot change.

        Without the `full_text` of the end, what may be the beginning of a text of `stop` is kept back.
        """
        before = self.told
        if full_text is None:
            begun = (n for text in self._stop for n in range(1, len(text)) if self._text.endswith(text[:n]))
            text = self._text[: len(self._text) - (0 if self.is_cut else max(begun, default=0))]
        else:
            text = full_text if full_text.startswith(before) else before
        ends = full_text is not None and not self.is_cut
        waiting = self._shown[self._n_tokens_taken :]
        tokens = [event for start, event in waiting if ends or start < len(text)]
        self._n_taken, self._n_tokens_taken = len(text), self._n_tokens_taken + len(tokens)
        return text[len(before) :], tokens

    def finished(self, prompt: EncodedPrompt) -> Finished:
        """Return the completion that is cut off."""
        last = self._events[-1]
        completion = Completion(
            prompt_token_ids=prompt.token_ids,
            token_ids=[event.token for event in self._events],
            token_log_probs=[event.log_prob for event in self._events if event.log_prob is not None],
            text=self._text,
            finish_reason="stop",
        )
        return Finished(name=last.name, index=last.index, completion=completion)
