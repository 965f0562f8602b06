from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dualread.grading.answers import character_spans, tokens_within


@given(st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=12))
def test_spans_cover_the_text_without_gap_or_overlap(pieces):
    def decode(ids):
        return b"".join(pieces[i] for i in ids).decode(errors="replace")

    text, spans = character_spans(range(len(pieces)), decode)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(left[1] == right[0] for left, right in pairwise(spans))


def test_a_character_of_several_tokens_is_of_the_one_that_completes_it():
    pieces = [b"a", b"\xc2", b"\xb0", b"b"]
    decoded = character_spans(range(4), lambda ids: b"".join(pieces[i] for i in ids).decode(errors="replace"))
    assert decoded == ("a\xb0b", [(0, 1), (1, 1), (1, 2), (2, 3)])


def test_a_token_that_straddles_a_boundary_belongs():
    # "<v>", ">up", "per", ".</", "v>" hold [0, 3), [3, 6), [6, 9), [9, 12), [12, 14); the block is [4, 10).
    spans = [(0, 3), (3, 6), (6, 9), (9, 12), (12, 14)]
    assert tokens_within(spans, 4, 10) == (1, 2, 3)
    assert tokens_within(spans, 6, 9) == (2,)
    assert tokens_within(spans, 6, 6) == ()
