"""Which answers readers can judge: those to their own prompt, drawn and cut off as they know it."""

from types import SimpleNamespace

import pytest

from dualread.apps.serve.chat_questions import RequestReader, Wanted


def requests(**decoding) -> RequestReader:
    """Requests to an actor whose readers were fitted on answers of up to ten tokens."""
    fitted = SimpleNamespace(**{"temperature": 0.0, "top_p": 1.0, "max_completion_tokens": 10, **decoding})
    required = SimpleNamespace(decoding=fitted, prompt=SimpleNamespace(name="shared"))
    actor = SimpleNamespace(encoder=None, config=None)
    return RequestReader(SimpleNamespace(actor=actor, requirements=required, views=()))


@pytest.mark.parametrize(
    ("finish_reason", "n", "is_judged"),
    # An answer that is cut off is the one that readers know only where they cut it off, too.
    [*(("stop", n, n <= 10) for n in (9, 10, 11)), *(("length", n, n == 10) for n in (9, 10, 11))],
)
def test_an_answer_is_judged_if_it_ends_where_readers_saw_it_end(finish_reason, n, is_judged):
    asked, completion = SimpleNamespace(reasons=()), SimpleNamespace(token_ids=(7,) * n, finish_reason=finish_reason)
    said = (f"the completion ends after {n} tokens, and readers were fitted on completions of up to 10",)
    assert requests().of_completion(asked, completion) == (() if is_judged else said)
    of_request = SimpleNamespace(reasons=("the prompt is another one",))
    assert requests().of_completion(of_request, completion) == of_request.reasons


@pytest.mark.parametrize(
    ("fitted", "wanted", "is_judged"),
    [
        ({}, {}, True),
        ({}, {"temperature": 0.0, "top_p": 0.5}, True),  # greedy, whatever the probability
        ({}, {"temperature": 0.5}, False),
        ({"temperature": 0.5}, {}, True),
        ({"temperature": 0.5}, {"temperature": 0.0}, False),
        ({"temperature": 0.5, "top_p": 0.9}, {"top_p": 0.9}, True),
        ({"temperature": 0.5, "top_p": 0.9}, {"top_p": 1.0}, False),
    ],
)
def test_an_answer_is_judged_if_it_is_drawn_as_those_that_readers_saw(fitted, wanted, is_judged):
    assert (list(requests(**fitted)._of_decoding(Wanted(**wanted))) == []) is is_judged
