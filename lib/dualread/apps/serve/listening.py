"""What other threads say about a request, on its way to the coroutine that replies to its client."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.types import Receive

from dualread.apps.serve.service import News
from dualread.models.actor import TokenEvent


class GoneError(Exception):
    """The client went away."""


class Listener:
    """Brings news from other threads to a coroutine, and errors, which are raised there.

    The coroutine is woken once for all that has come meanwhile: with many streams, a wake per token would cost more
    than the token.

    Attributes:
        tokens: Whether all tokens are wanted, and not only the first one.
    """

    def __init__(self) -> None:
        self._loop, self._come = asyncio.get_running_loop(), asyncio.Event()
        self._news: deque[News | Exception] = deque()
        self.tokens = self._has_token = self._woken = False

    def tell(self, news: News | Exception) -> None:
        """Take news; any thread may call it."""
        if isinstance(news, TokenEvent):
            if self._has_token and not self.tokens:
                return
            self._has_token = True
        self._news.append(news)
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop has ended, and nobody listens
                self._loop.call_soon_threadsafe(self._come.set)

    def calls(self, function: Callable[..., None], *arguments: Any) -> Callable[[Any], None]:
        """Return what has the thread of the coroutine call a function, for futures that end in another one."""

        def done(future: Any) -> None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *arguments)

        return done

    async def end_with(self, receive: Receive) -> None:
        """Wait until the client goes away, and let `next` say so."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.tell(GoneError())

    @property
    def has_more(self) -> bool:
        """Whether something has come that was not taken."""
        return bool(self._news)

    async def next(self) -> News:
        """Return what came first of what was not taken, and wait for it if there is nothing.

        Raises:
            GoneError: The client went away.
            Exception: What another thread told.
        """
        while not self._news:
            self._woken = False  # before another look: who tells now wakes again
            if not self._news:
                await self._come.wait()
            self._come.clear()
        if isinstance(news := self._news.popleft(), Exception):
            raise news
        return news
