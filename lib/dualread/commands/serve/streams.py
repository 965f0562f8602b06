"""What comes from the service's thread on its way to one client: news, and a completion's text as it grows."""

import asyncio
from collections import deque
from contextlib import suppress

from starlette.types import Receive

from dualread.models.backbones.encode import Encoder
from dualread.own.serving.service import News, NextToken


class GoneError(Exception):
    """The client went away."""


class Listener:
    """Brings news from the service's thread to a coroutine; of all tokens, only the first if it needs no others.

    The coroutine is woken once for all that has come meanwhile: with many streams, a wake per token would cost more
    than the token.
    """

    def __init__(self, *, tokens: bool) -> None:
        """Set whether all tokens are wanted."""
        self._loop, self._come = asyncio.get_running_loop(), asyncio.Event()
        self._news: deque[News | None] = deque()
        self._tokens, self._said, self._woken = tokens, False, False

    def tell(self, news: News) -> None:
        """Take news; the service's thread calls it."""
        if isinstance(news, NextToken):
            if self._said and not self._tokens:
                return
            self._said = True
        self._news.append(news)
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop has ended, and nobody listens
                self._loop.call_soon_threadsafe(self._come.set)

    async def end_with(self, receive: Receive) -> None:
        """Wait until the client goes away, and let `next` say so."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._news.append(None)
        self._come.set()

    @property
    def has_more(self) -> bool:
        """Whether something has come that was not taken."""
        return bool(self._news)

    async def next(self) -> News:
        """Return what came first of what was not taken, and wait for it if there is nothing.

        Raises:
            GoneError: The client went away.
        """
        while not self._news:
            self._woken = False  # before another look: who tells now wakes again
            if not self._news:
                await self._come.wait()
            self._come.clear()
        if (one := self._news.popleft()) is None:
            raise GoneError
        return one


class GrowingText:
    """The text of a completion as it grows: only what later tokens cannot change."""

    def __init__(self, encoder: Encoder):
        self._encoder, self._ids, self._start, self._end = encoder, list[int](), 0, 0
        self._sent, self._part, self._said = "", "", list[tuple[int, float | None]]()

    @property
    def has_part(self) -> bool:
        """Whether there is something to send."""
        return bool(self._said)

    def add(self, token: int, log_prob: float | None) -> None:
        """Add a token; a character of which it is only a part waits for the others."""
        self._ids.append(token)
        self._said.append((token, log_prob))
        before = self._encoder.decode(self._ids[self._start : self._end])
        now = self._encoder.decode(self._ids[self._start :])
        if len(now) > len(before) and not now.endswith("\ufffd"):
            self._start, self._end = self._end, len(self._ids)
            self._part += now[len(before) :]

    def part(self) -> tuple[str, list[tuple[int, float | None]]]:
        """Return the text and the tokens since the last call."""
        part, said = self._part, self._said
        self._sent, self._part, self._said = self._sent + part, "", []
        return part, said

    def rest(self, whole: str) -> str:
        """Return what is missing of the whole text."""
        return whole[len(self._sent) :] if whole.startswith(self._sent) else ""
