"""What P(True) and the likelihood of an answer take from the log-probabilities of a reply."""

import math

import numpy as np
import pytest

from dualread.models.replay.positions import locate
from dualread.models.service.replies import ServiceCompletion, Token, likelihood_of, word_log_probs

WORDS = ("Yes", "No")


def listing(**top):
    spelled = [(token.replace("_", " "), math.log(p)) for token, p in top.items()]
    token = Token(content=spelled[0][0].encode(), log_prob=spelled[0][1], top=spelled)
    return ServiceCompletion(text=spelled[0][0], finish_reason="length", tokens=(token,))


def test_all_spellings_of_a_word_count():
    found, is_bounded = word_log_probs(listing(Yes=0.5, _yes=0.25, No=0.125, NO=0.0625, yesterday=0.05), WORDS)
    assert math.exp(found["Yes"]) == pytest.approx(0.75)  # .5 + .25
    assert math.exp(found["No"]) == pytest.approx(0.1875)  # .125 + .0625
    assert not is_bounded


def test_a_single_spelling_keeps_its_bytes():
    found, _ = word_log_probs(listing(Yes=0.3, No=0.7), WORDS)
    assert found == {"Yes": math.log(0.3), "No": math.log(0.7)}


def test_a_word_that_is_not_listed_has_at_most_what_is_left():
    found, is_bounded = word_log_probs(listing(Yes=0.9, Sure=0.06), WORDS)
    assert is_bounded
    assert math.exp(found["No"]) == pytest.approx(0.04)  # 1 - .9 - .06, less than the last listed token's .06
    found, _ = word_log_probs(listing(Yes=0.5, Sure=0.01), WORDS)
    assert math.exp(found["No"]) == pytest.approx(0.01)  # a token of the rest has at most the least listed one's


def test_without_both_words_there_is_no_score():
    assert word_log_probs(listing(Maybe=0.9), WORDS) is None
    assert word_log_probs(ServiceCompletion(text="", finish_reason="stop", tokens=None), WORDS) is None


def tokens(*pieces):
    return [Token(content=piece, log_prob=value, top=()) for piece, value in pieces]


def test_the_likelihood_is_the_mean_over_the_answer():
    found = likelihood_of(
        tokens((b"<answer>", -9.0), (b"the l", -0.5), (b"iver</ans", -0.25), (b"wer>", -7.0), (b"", -5.0))
    )
    assert found.positions.answer == (1, 2)
    assert found.positions.close == 3
    assert found.answer_log_prob.tolist() == [-0.375]  # (.5 + .25) / 2
    assert found.answer_log_prob.dtype == np.float32


def test_without_an_answer_block_all_tokens_count():
    found = likelihood_of(tokens((b"liver", -0.5), (b"", -0.25)))
    assert found.positions.answer == (0, 1)
    assert not found.positions.has_answer_block
    assert found.answer_log_prob.tolist() == [-0.375]


@pytest.mark.parametrize("first", [b"\xc3", b""])
def test_tokens_that_share_a_character_are_those_of_a_replay(first):
    """Services list its bytes; vLLM lists no byte for the first token, and the whole character for the second one."""
    pieces = [b"<answer>", b"\xc3", b"\xa4rm", b"</answer>"]
    listed = [b"<answer>", first, "ä".encode().removeprefix(first) + b"rm", b"</answer>"]
    found = likelihood_of(tokens(*((piece, -1.0) for piece in listed)))

    def decode(ids):  # as a tokenizer of bytes does
        return b"".join(pieces[i] for i in ids).decode(errors="replace")

    assert found.positions == locate(range(4), decode, set())
