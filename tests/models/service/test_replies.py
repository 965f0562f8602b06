"""One reply of a service, and every way in which it is not what was asked for."""

import pytest

from dualread.models.service.replies import ReplyError, reply_of


def choice(text="yes", index=0, **more):
    return {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", **more}


def logprobs(*tokens):
    content = [
        {"token": token, "logprob": value, "bytes": list(token.encode()), "top_logprobs": []} for token, value in tokens
    ]
    return {"logprobs": {"content": content}}


def body(*choices, **more):
    return {"choices": list(choices), **more}


def test_completions_are_in_the_order_of_their_index():
    given = choice("b", 1), choice("c", 2), choice("a", 0)
    for counted, n in (({"usage": {"prompt_tokens": 7}}, 7), ({}, 0)):  # 0: the service does not say
        reply = reply_of(body(*given, **counted), n=3, log_probs=False)
        assert [(one.text, one.finish_reason, one.tokens) for one in reply.choices] == [
            (text, "stop", None) for text in "abc"
        ]
        assert reply.n_prompt_tokens == n


def test_tokens_are_bytes_and_the_one_that_ends_the_turn_has_none():
    listed = logprobs(("ye", -0.5), ("s", -0.25), ("<|end|>", -0.125))
    [found] = reply_of(body(choice("yes", **listed)), n=1, log_probs=True).choices
    assert [token.content for token in found.tokens] == [b"ye", b"s", b""]
    assert [token.log_prob for token in found.tokens] == [-0.5, -0.25, -0.125]


def test_a_character_that_two_tokens_share():
    content = [
        {"token": "\\xc3", "bytes": [0xC3], "logprob": -1.0},
        {"token": "\\xa4", "bytes": [0xA4], "logprob": -2.0},
    ]
    [found] = reply_of(body(choice("ä", logprobs={"content": content})), n=1, log_probs=True).choices
    assert [token.content for token in found.tokens] == [b"\xc3", b"\xa4"]


@pytest.mark.parametrize(
    ("message", "reason", "text"),
    [
        ({"content": None, "refusal": "I cannot say."}, "stop", "I cannot say."),
        ({"content": None}, "content_filter", ""),
        ({"content": ""}, "length", ""),
    ],
)
def test_a_refusal_is_a_completion_without_an_answer(message, reason, text):
    [found] = reply_of(body({"message": message, "finish_reason": reason}), n=1, log_probs=False).choices
    assert (found.text, found.finish_reason) == (text, reason)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 0.5, "high", None])
def test_what_is_no_log_probability_is_refused(value):
    with pytest.raises(ReplyError, match="has log-probabilities of another form"):
        reply_of(body(choice(**logprobs(("yes", value)))), n=1, log_probs=True)
