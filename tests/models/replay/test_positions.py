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


def test_tags_that_are_separate_tokens():
    at = find("<answer>", "left", " lung", "</answer>", "\n", "<confidence>", "7", "</confidence>")
    assert at.answer == (1, 2)
    assert at.close == 3
    assert at.last == 7  # the stop token is 8
    assert at.has_answer_block


def test_a_token_that_straddles_the_tag_belongs_to_the_answer():
    # ">upper" holds the tag's end and the answer's start; "left</" its end and the closing tag's start.
    at = find("<answer", ">upper", " left</", "answer", ">\n<")
    assert at.answer == (1, 2)
    assert at.close == 4  # the last character of </answer> is in ">\n<"


def test_white_space_around_the_answer_is_not_part_of_it():
    at = find("<answer>", " \n", "yes", " ", "</answer>")
    assert at.answer == (2,)


def test_without_a_block_all_tokens_are_read():
    at = find("left", " lung")
    assert (at.answer, at.close, at.last, at.has_answer_block) == ((0, 1, 2), 2, 1, False)


def test_two_blocks_count_as_none():
    assert not find("<answer>a</answer>", "<answer>b</answer>").has_answer_block


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
