import hashlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.data.datasets.base import AuditStep, Loaded, Picture
from dualread.data.questions.select import select
from dualread.errors import DataError
from dualread.schema.data import Select
from tests.data.questions import test_build as build

FILE = Path("/official/test.json")
LANGUAGE = AuditStep(step="language", kept=4, dropped=2, reason="r")


def _row(number, answer_type="open", picture=None):
    shown = Picture(f"{picture or number}".encode(), f"i{number}")
    return build._row(number, official_id=f"q{number}", answer_type=answer_type, images=(shown,))


def _select(rows, rule, seed=0, picture_of=lambda row: row.images[0].source):
    return select(Loaded(file=FILE, rows=rows, audit=[LANGUAGE]), Select(**rule), seed, picture_of)


def _ids(loaded):
    return [row.official_id for row in loaded.rows]


def _drawn_first(rows, seed):
    return sorted(rows, key=lambda row: hashlib.sha256(f"{seed}\x1f{row.official_id}".encode()).hexdigest())


def test_answer_types():
    found = _select([_row(0), _row(1, "closed"), _row(2)], {"answer_types": ["closed"]})
    assert _ids(found) == ["q1"]
    assert found.audit == [
        LANGUAGE,
        AuditStep(step="answer types", kept=1, dropped=2, reason="the answer type is closed"),
    ]


def test_a_draw_by_hand():
    # sha256("0\x1fq0"), ... begin with b4, 8f, 05, 6e, bf, 0e.
    rows = [_row(0), _row(1, "closed", "a"), _row(2, "open", "a"), _row(3, "open", "a"), _row(4), _row(5, "closed")]
    assert [row.official_id for row in _drawn_first(rows, 0)] == ["q2", "q5", "q3", "q1", "q0", "q4"]
    # q2 is the one question on picture a, q5 fills the quota of closed ones, q3 is skipped, q0 fills the open ones.
    rule = {"questions": {"open": 2, "closed": 1}, "max_per_image": 1}
    found = _select(rows, rule)
    assert _ids(found) == ["q0", "q2", "q5"]
    order = "in the order of sha256(seed 0, official id)"
    assert found.audit[1:] == [
        AuditStep(
            step="questions per picture",
            kept=5,
            dropped=1,
            reason=f"at most 1 questions per picture, {order}; the others were skipped",
        ),
        AuditStep(step="draw", kept=3, dropped=2, reason=f"2 of 4 open, 1 of 2 closed, {order}"),
    ]


def test_pictures_are_identified_only_for_rows_that_the_draw_reaches():
    asked = []
    rows = [_row(i) for i in range(1000)]
    _select(rows, {"questions": 10, "max_per_image": 1}, picture_of=lambda row: asked.append(row.official_id) or row)
    assert asked == [row.official_id for row in _drawn_first(rows, 0)[:10]]
    _select(rows, {"questions": 10}, picture_of=lambda row: pytest.fail("nothing depends on pictures"))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=12, max_size=40), st.randoms(), st.integers(0, 9))
def test_a_draw_keeps_its_rule_and_ignores_the_order_of_the_file(kinds, random, seed):
    rows = [_row(i, "open" if is_open else "closed", f"p{picture}") for i, (is_open, picture) in enumerate(kinds)]
    rule = {"questions": {"open": 2, "closed": 2}, "max_per_image": 2}
    shuffled = list(rows)
    random.shuffle(shuffled)
    try:
        found = _select(rows, rule, seed)
    except DataError:
        with pytest.raises(DataError):
            _select(shuffled, rule, seed)
        return
    assert Counter(row.answer_type for row in found.rows) == {"open": 2, "closed": 2}
    assert max(Counter(row.images[0].source for row in found.rows).values()) <= 2
    assert [row.source_row for row in found.rows] == sorted(row.source_row for row in found.rows)
    assert set(_ids(_select(shuffled, rule, seed))) == set(_ids(found))
