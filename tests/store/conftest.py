"""Jobs get signals as in a terminal, although a shell's background jobs, such as these tests, may ignore them."""

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def signals_of_a_terminal():
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
