import pytest

from dualread.models.replay.positions import locate

STOP = 99


def decoder(vocabulary):
    return lambda ids: "".join(vocabulary[i] for i in ids)


def find(*tokens):
    """Locate the positions in a completion whose tokens have these texts, followed by a stop token."""
    vocabulary = [*tokens, ""]
    ids = [*range(len(tokens)), len(tokens)]
    return locate(ids, decoder(vocabulary), {len(tokens)})


@pytest.mark.parametrize(
    ("tokens", "answer", "close"),
    [
        (("<answer>", "left", " lung", "</answer>", "\n", "<confidence>", "7", "</confidence>"), (1, 2), 3),
        # ">upper" holds the tag's end and the answer's start; "left</" its end and the closing tag's start, whose last
        # character is in ">\n<".
        (("<answer", ">upper", " left</", "answer", ">\n<"), (1, 2), 4),
        (("<answer>", " \n", "yes", " ", "</answer>"), (2,), 4),
        (("left", " lung"), None, 2),  # all tokens are read, that which ends the turn too
        (("<answer>a</answer>", "<answer>b</answer>"), None, 2),
    ],
)
def test_the_tokens_of_an_answer(tokens, answer, close):
    at, every = find(*tokens), tuple(range(len(tokens) + 1))
    assert (at.answer, at.close, at.has_answer_block) == (answer or every, close, answer is not None)
    assert at.last == len(tokens) - 1  # the stop token comes after it


def test_only_a_stop_token():
    assert find() == locate([0], decoder([""]), {0})
    assert find().answer == (0,)
    assert find().last == 0


@pytest.mark.parametrize(
    ("tokens", "think", "answer", "close"),
    [
        (("<answer>no</answer>", "</thi", "nk>\n", "<answer>", "yes", "</answer>"), 2, (4,), 5),
        (("so", "</think>", "no block"), 1, (2, 3), 3),  # the stop token is 3
        (("so", "</think>"), 1, (2,), 2),
        (("<answer>", "no", "</answer>"), -1, (3,), 3),
        (("a</think>", "b</think> <answer>", "yes</answer>"), 1, (2,), 2),
    ],
)
def test_after_thinking(tokens, think, answer, close):
    vocabulary = [*tokens, ""]
    at = locate(range(len(vocabulary)), decoder(vocabulary), {len(tokens)}, "</think>")
    assert (at.think, at.answer, at.close) == (think, answer, close)
    assert find(*tokens).think is None


def test_a_character_split_over_two_tokens_belongs_to_the_one_that_completes_it():
    pieces = [b"<answer>", b"a", "é".encode()[:1], "é".encode()[1:], b"</answer>"]

    def decode(ids):
        return b"".join(pieces[i] for i in ids).decode(errors="replace")

    at = locate(range(5), decode, set())
    assert at.answer == (1, 3)
    assert at.close == 4
