"""Whatever a table of questions holds, `dualread score` has a result for each row, or refuses it in a sentence."""

import json
import random
from types import SimpleNamespace

import pytest

from dualread.apps.score import lines
from dualread.apps.score.lines import read_rows
from dualread.apps.score.results import Failed
from dualread.data.given_images import read
from dualread.errors import DualReadError
from tests.apps.new.test_any_table import COLUMNS, ODD, _row, _write

PICTURES = [*ODD, "a\0b", "x" * 5000, "/", "~", "i/../../x", {"path": "a\0"}, {"bytes": None, "path": None}, "a.png#2"]
SCORER = SimpleNamespace(each=lambda questions: (Failed(error="not asked") for _ in questions), digest="here")


def attempt(folder, rng):
    """Read a random table, and look for its pictures; return whether it was read."""
    rows = [_row(k, rng, rng.choice(["text", "open"]))[0] for k in range(rng.choice([1, 3, 12]))]
    for _ in range(rng.randint(0, 4)):
        name = rng.choice([*rows[0], *COLUMNS, "donor", "donor"])
        for row in rng.choice([rows, rows[:1]]):
            row[name] = rng.choice(PICTURES if name in ("image", "donor") else ODD)
    for old in folder.iterdir():
        old.unlink()
    if not _write(folder, rows, rng):
        return False
    (file,) = folder.iterdir()
    try:
        found = read_rows(file)
    except DualReadError:
        return False
    for question in (one.question for one in found if one.question is not None):
        for picture in filter(None, (question.image, question.donor)):
            with pytest.raises(DualReadError):
                read(picture)
    lines.score(SCORER, found, folder / "out.jsonl")
    results = [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one["line"] for one in results] == [one.number for one in found]
    assert len(results) == len(rows)
    assert all(one["error"] == "not asked" or ": " in one["error"] for one in results)
    return True


@pytest.mark.parametrize("seed", range(8))
def test_every_row_has_a_result_or_the_table_is_refused(tmp_path, seed):
    rng = random.Random(seed)
    assert sum(attempt(tmp_path, rng) for _ in range(10)) >= 4
