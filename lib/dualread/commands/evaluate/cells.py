"""Step 2, joined: the rows of a user's tables by data set and method, as the workflow joins its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from dualread.commands.evaluate.answers import IMAGE, answers_of, donors_of, written_twice
from dualread.commands.evaluate.given import Given
from dualread.commands.evaluate.grades import all_alike, disagreement, empty, mixed_forms
from dualread.commands.evaluate.scale import Outside, outside, ranks, refuse_mixed, same_scale
from dualread.evaluation.join import Joined, join

_NAMES = ("sample_id", "method", "dataset", "split")  # and the images
NO_PAIRS = "no pairs (--pairs)"
_Tables = tuple[pl.DataFrame, pl.DataFrame | None]  # answers of one method, and its donor pairs


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The answers to one data set, or to all questions of a table that names no data sets.

    Attributes:
        source: The table of answers.
        dataset: Name of the data set; None if the table names none.
        methods: One `Joined` per method, sorted by name. Its `image_id` is the cluster, whatever the column's name.
        cluster: The column whose values are resampled; None if every row is a cluster by itself.
        named: Whether the table names its questions (sample_id).
        subsets: "all"; also "open" and "closed" if there are answer types.
        withheld: {beginning of a metric's name: why it has no value}, for metrics whose columns are missing.
        ranked: {method: which confidences of its answers are outside [0, 1]}. The confidences of these methods are
            replaced by their ranks, as numbers in [0, 1].
        resamples: The names from which the resamples are drawn, if the table comes from a study.
        confidence: The name that the column of confidences has in the user's table.
        warnings: Sentences about empty answers, and about values that contradict each other.
    """

    source: str
    dataset: str | None = None
    methods: Mapping[str, Joined]
    cluster: str | None
    named: bool
    subsets: tuple[str, ...]
    withheld: Mapping[str, str]
    ranked: Mapping[str, Outside] = field(default_factory=dict)
    resamples: tuple[str, ...] | None = None
    confidence: str | None = None
    warnings: tuple[str, ...] = ()

    def rows_of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a result's `frame` that are about this data set."""
        return frame.filter(pl.col("dataset").eq_missing(pl.lit(self.dataset, dtype=pl.String)))


def cells_of(predictions: Given, *, pairs: Given | None = None, cluster: str | None = None) -> list[Cells]:
    """Return the answers of every method, and their donor pairs, by data set.

    Equal image ids of two data sets, or of two splits, are different images.

    Args:
        predictions: The table of answers; `dualread evaluate --help` lists its columns.
        pairs: The table of donor pairs.
        cluster: The column whose values are resampled; by default `image_id`, if there is one.

    Raises:
        DataError: A column or a value is missing or wrong; the message names the table and the rows.
    """
    predictions.need("confidence", "the probability that the answer is correct")
    if cluster is not None:
        predictions.need(cluster, "which --cluster names", advice="")
    elif predictions.has(IMAGE):
        cluster = IMAGE
    names = [name for name in ("dataset", "split") if predictions.has(name)]
    places = _places(predictions, names, ())
    known = sorted(set(places))
    of_pairs = [] if pairs is None else _places_of_pairs(pairs, names, known, predictions)
    found = []
    doubt = written_twice(predictions, [*_NAMES, *([cluster] if cluster else [])])
    for place in known:
        given = predictions.where(pl.Series([one == place for one in places], dtype=pl.Boolean))
        mine = pl.Series([one == place for one in of_pairs], dtype=pl.Boolean)
        said = (doubt,) if doubt and place == known[0] else ()
        dataset = place[0] if len({one[0] for one in known}) == len(known) else "/".join(place)
        cells = _cells(given, pairs.where(mine) if pairs is not None and mine.any() else None, cluster, pairs)
        found.append(
            replace(
                cells,
                warnings=(*said, *cells.warnings),
                dataset=dataset if names else None,
                resamples=_resamples(given, place) if names == ["dataset", "split"] else None,
            )
        )
    return found


def _places(given: Given, names: Sequence[str], only: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the data set and split of every row; a column that is missing has the value in `only` everywhere."""
    n = len(given.rows)
    columns = [given.identity(name).to_list() if given.has(name) else [only[k]] * n for k, name in enumerate(names)]
    return list(zip(*columns, strict=True)) if names else [("",)] * n


def _places_of_pairs(
    pairs: Given, names: Sequence[str], known: Sequence[tuple[str, ...]], predictions: Given
) -> list[tuple[str, ...]]:
    for k, name in enumerate(names):
        if len({place[k] for place in known}) > 1:
            pairs.need(name, f"which is needed because {predictions.path} has several values of it")
    places = _places(pairs, names, known[0])
    for row, place in zip(pairs.rows, places, strict=True):
        if place not in known:
            raise pairs.error(
                f"row {row} belongs to {'/'.join(place)}, of which {predictions.path} has no answers."
                " Add the answers or drop the pairs."
            )
    return places


def _resamples(given: Given, place: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of a study's resamples for a table that was exported from it."""
    studies = set(given.text("study")) if given.has("study") else set()
    return (*studies, *place) if len(studies) == 1 else None


def _cells(given: Given, pairs: Given | None, cluster: str | None, pairs_table: Given | None) -> Cells:
    answers = answers_of(given, cluster)
    withheld = {} if given.has("question") else {"within_question_auroc": f"no column 'question' in {given.path}"}
    donors = None
    if pairs_table is not None:
        if cluster is None:
            given.need(IMAGE, "which --pairs needs because a donor must be on another image")
        given.need("sample_id", "which --pairs needs to find the questions")
    if pairs is not None:
        donors = donors_of(pairs, answers, given, cluster or IMAGE)
        for frame, table, column in ((answers, given, "answer"), (donors, pairs, "donor_answer")):
            if "canonical_answer" not in frame.columns:
                withheld["strict_"] = f"no column {column!r} in {table.path}"
    methods = sorted(set(answers["method"]))
    of_methods: dict[str, _Tables] = {
        name: (answers.filter(method=name), None if donors is None else donors.filter(method=name)) for name in methods
    }
    ranked = {name: found for name in methods if (found := _scale(name, (given, pairs), of_methods[name]))}
    of_methods |= {name: ranks(*of_methods[name]) for name in ranked}
    return Cells(
        source=str(given.path),
        methods={name: _evaluated(name, *tables) for name, tables in of_methods.items()},
        cluster=cluster,
        named=given.has("sample_id"),
        subsets=("all", "open", "closed") if given.has("answer_type") else ("all",),
        withheld=withheld,
        ranked=ranked,
        confidence=None if given.has("study") else given.own.get("confidence", "confidence") or None,
        warnings=tuple(
            said
            for table, prefix in ((given, ""), (pairs, "donor_"))
            for doubt in (empty, mixed_forms, disagreement)
            if table is not None and (said := doubt(table, prefix))
        )
        + tuple(all_alike(given, answers)),
    )


def _scale(method: str, tables: tuple[Given, Given | None], rows: _Tables) -> Outside | None:
    """Return which confidences of a method are outside [0, 1]; None if all can be probabilities.

    Raises:
        DataError: The confidences of a table mix probabilities and other numbers, or only one table leaves [0, 1].
    """
    (given, pairs), (answers, donors) = tables, rows
    refuse_mixed(given, "confidence", method, answers)
    if pairs is None or donors is None or donors.is_empty():
        return outside(answers)
    refuse_mixed(pairs, "donor_confidence", method, donors)
    return same_scale(method, given, answers, pairs, donors)


def _evaluated(method: str, answers: pl.DataFrame, pairs: pl.DataFrame | None) -> Joined:
    """Join the rows as the workflow does, as if the tables were artifacts.

    Here they are sorted once; the join would sort each of the tables that it takes them for, and hold all of them.
    """
    mine = _with_canonical(answers).sort("sample_id")
    if pairs is None or pairs.is_empty():
        alone = {"original": mine}
        return replace(join(where=method, manifest=mine, pairs=None, predictions=alone, graded=alone), pairs=NO_PAIRS)
    pairs = pairs.sort("sample_id")
    other = _with_canonical(pairs).with_columns(image_id="donor_image_id", imputed=pl.lit(False))
    both = {"original": mine, "donor": other}
    return join(where=method, manifest=mine, pairs=pairs, predictions=both, graded=both)


def _with_canonical(frame: pl.DataFrame) -> pl.DataFrame:
    if "canonical_answer" in frame.columns:
        return frame
    return frame.with_columns(canonical_answer=pl.lit(None, dtype=pl.String))
