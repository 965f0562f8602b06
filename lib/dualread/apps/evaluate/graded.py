"""How answers are graded, and the most common pairs of answer and reference that count as wrong.

An answer is right if it equals an accepted answer in canonical form, as in the paper, or if `correct` says so.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import polars as pl

from dualread.data.tables.checks import CheckedTable
from dualread.grading.canonical import canonical

CHOICE, RIGHT = "choice ", "right choice"  # before the columns of choices, and of the right one
_WORD = r"\w+"
_MANY = 20  # answers of which all are right, or all wrong, hardly by chance
_MOST_COMMON = 10  # pairs that are shown


def graded_columns(table: CheckedTable, prefix: str) -> list[pl.Series]:
    """Return what is known of the answers: canonical_answer, golds, correct, and the texts themselves."""
    answer, reference, correct = (f"{prefix}{name}" for name in ("answer", "reference_answer", "correct"))
    columns = [pl.Series("canonical_answer", [None] * len(table.frame), pl.String)]
    if table.has(answer):
        forms = mapped_texts(table.frame[answer], canonical).replace("", None)
        columns = [forms.alias("canonical_answer"), table.frame[answer].alias("answer")]
    if table.has(reference):
        rows = table.frame.select(k=pl.int_range(pl.len()), text=reference)
        items = rows.explode("text").with_columns(golds=mapped_texts(rows["text"].explode(), canonical))
        lists = items.filter(pl.col("golds") != "").group_by("k").agg(pl.col("golds").unique().sort())
        golds = rows.join(lists, on="k", how="left", maintain_order="left")["golds"].fill_null([])
        columns += [golds, table.frame[reference].list.join(" | ").alias("reference_answer")]
        if not table.has(correct):
            expected = (
                "expected a reference answer that is more than punctuation. Give 'correct', or leave these rows out:"
                " --missing with this text (in Python missing=['?'])"
            )
            table.refuse(reference, golds.list.len() == 0, columns[-1], expected)
    if not table.has(correct) and not table.has(answer, reference):
        table.need(correct, f"and not both {answer!r} and {reference!r}, from which it could be graded")
    if table.has(answer, reference):
        equal = pl.select(pl.lit(golds).list.contains(pl.lit(forms)).fill_null(False)).to_series()
        columns.append(equal.alias("equal"))
    return [*columns, (table.frame[correct] if table.has(correct) else columns[-1]).alias("correct")]


def choice_columns(answers: CheckedTable, choices: Mapping[str, str]) -> list[pl.Series]:
    """Return the probability of each choice, and of the right one, whose name is the reference answer."""
    if not choices:
        return []
    answers.need("reference_answer", "which --choices compares with the names of the choices")
    names = {canonical(name): name for name in choices}
    golds = answers.frame["reference_answer"].list.join("\n")
    right = mapped_texts(
        golds, lambda gold: next(filter(None, (names.get(canonical(text)) for text in gold.split("\n"))), "")
    )
    columns = {name: answers.frame[column] for name, column in choices.items()}
    of_right = pl.select(pl.coalesce(pl.when(pl.lit(right) == name).then(pl.lit(p)) for name, p in columns.items()))
    expected = f"expected a choice with a probability, one of {', '.join(choices)}"
    answers.refuse("reference_answer", of_right.to_series().is_null(), golds, expected)
    return [*(p.alias(f"{CHOICE}{name}") for name, p in columns.items()), of_right.to_series().alias(RIGHT)]


def mapped_texts(texts: pl.Series, function: Callable[[str], str]) -> pl.Series:
    """Apply a function of one text to each distinct text of a column."""
    distinct = texts.drop_nulls().unique()
    known = pl.DataFrame({"text": distinct, "value": pl.Series([function(text) for text in distinct], dtype=pl.String)})
    return texts.alias("text").to_frame().join(known, on="text", how="left", maintain_order="left")["value"]


def graded_rows(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """Return what was compared, and how it was graded; `frame` has the columns of `graded_columns`."""
    names = ("method", "sample_id", "row", "answer", "reference_answer", "confidence", "correct", "equal")
    rows = frame.select(pl.lit(table).alias("table"), *(name for name in names if name in frame.columns))
    if "equal" not in rows.columns:
        return rows
    wrong = frame.filter(~pl.col("correct"), ~pl.col("equal"), pl.col("canonical_answer").is_not_null())
    known: dict[tuple[str, ...], bool] = {}  # many rows have the same texts
    near = []
    for row, answer, golds in wrong.select("row", "canonical_answer", "golds").rows():
        if (texts := (answer, *golds)) not in known:
            known[texts] = _near(answer, golds)
        near += [row] if known[texts] else []
    return rows.with_columns(contained=pl.col("row").is_in(list(set(near))))


def _near(answer: str, golds: Sequence[str]) -> bool:
    """Return whether the answer stands in a reference as whole words, or a reference in the answer."""
    words, *others = (f" {' '.join(re.findall(_WORD, text))} " for text in (answer, *golds))
    return words.strip() != "" and any(words in other or (other.strip() and other in words) for other in others)


def doubts(table: CheckedTable, graded: pl.DataFrame) -> Iterator[str]:
    """Yield sentences about grades that contradict each other, and about methods that are always right or wrong."""
    if table.has("correct") and "equal" in graded.columns:
        rows = graded.filter(pl.col("equal") & ~pl.col("correct"))["row"].unique().sort().to_list()
        if rows:
            yield (
                f"warning: {table.source}: in {len(rows)} rows, 'correct' says that an answer is wrong that equals its"
                f" reference answer: {', '.join(map(str, rows[:5]))}. 'correct' counts."
            )
    if not table.has("correct") and (n := int(graded["contained"].sum())):
        yield (
            f"warning: {table.source}: {n} of {int((~graded['correct']).sum())} wrong answers stand in their reference,"
            " or it in them (~). If references hold several answers, say what separates them: --alternatives SEP."
        )
    for method, n, right in graded.group_by("method").agg(pl.len(), pl.sum("correct")).sort("method").rows():
        if n >= _MANY and right in (0, n):
            yield (
                f"warning: {table.source}: all {n} answers of {method} are {'wrong' if right == 0 else 'right'}. Is"
                " this what you expect? Look at graded.csv."
            )


def wrong_pairs(graded: pl.DataFrame) -> pl.DataFrame:
    """Return the most common pairs of `graded_rows` that count as wrong: answer, reference_answer, n, contained."""
    if "equal" not in graded.columns:
        return pl.DataFrame()
    wrong = graded.filter(~pl.col("correct"), pl.col("equal").is_not_null())
    pairs = wrong.group_by("answer", "reference_answer").agg(pl.len().alias("n"), pl.any("contained"))
    pairs = pairs.with_columns(pl.selectors.string().fill_null(""))
    return pairs.sort("n", "answer", "reference_answer", descending=[True, False, False]).head(_MOST_COMMON)
