"""Step 2: rows of a user's answers and donor pairs, by data set and method, in the form that the workflow evaluates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from dualread.data.foreign_tables.values import plain_ids
from dualread.evaluation.join import Joined, join
from dualread.grading.canonical import question_key
from dualread.own.given import ANSWER_TYPES, UserTable, some
from dualread.own.grades import all_alike, disagreement, empty, graded, mixed_forms, unjudged, without_confidence
from dualread.own.scale import Outside, outside, ranks, refuse_mixed, same_scale

IMAGE = "image_id"
_KEY = ["method", "sample_id"]
_PLACE = ["question_key", "image_id"]
_NAMES = ("sample_id", "method", "dataset", "split")  # and the images
NO_PAIRS = "no pairs (--pairs)"
_Tables = tuple[pl.DataFrame, pl.DataFrame | None]  # answers of one method, and its donor pairs


def answers_of(given: UserTable, cluster: str | None) -> pl.DataFrame:
    """Return one row per method and question, as a graded table and predictions together have them.

    Args:
        given: The answers to one data set.
        cluster: The column that becomes `image_id`; None if every row is a cluster by itself.

    Raises:
        DataError: A column or a value is missing or wrong.
    """
    methods = (
        given.identity("method") if given.has("method") else pl.repeat(_name(given.path), len(given.rows), eager=True)
    )
    grades = graded(given)
    columns = {
        "method": methods,
        "confidence": _confidences(given, "confidence", methods, grades),
        **grades,
        "answer_type": given.one_of("answer_type", ("open", "closed"), ANSWER_TYPES)
        if given.has("answer_type")
        else "",
    }
    if given.has("question"):
        columns["question_key"] = [question_key(text) for text in given.text("question")]
    if cluster is not None:
        columns["image_id"] = given.identity(cluster)
    if given.has("sample_id"):
        answers = pl.DataFrame({"sample_id": given.identity("sample_id"), **columns, "row": given.rows})
        _refuse_twice(given, answers)
    else:  # number the sorted rows, so that the order of the file does not matter
        answers = pl.DataFrame({**columns, "row": given.rows}).sort([name for name in columns if name != "golds"])
        answers = answers.with_columns(sample_id=pl.int_range(pl.len()).over("method").cast(pl.String).str.zfill(12))
    own = {name: "sample_id" for name in ("question_key", "image_id") if name not in answers.columns}
    return answers.with_columns(imputed=pl.lit(False), **{name: pl.col(column) for name, column in own.items()})


def donors_of(given: UserTable, answers: pl.DataFrame, source: UserTable, cluster: str) -> pl.DataFrame:
    """Return one row per method and donor pair.

    Args:
        given: The pairs of one data set.
        answers: From `answers_of`, for the same data set.
        source: The table of answers, for messages.
        cluster: The column whose values are resampled.

    Raises:
        DataError: A column or a value is missing or wrong, a pair has no answer, or the donor's image is that of the
            question or has the same gold answer.
    """
    for column in ("sample_id", f"donor_{cluster}", "donor_confidence"):
        given.need(column, "which a table of pairs needs (dualread evaluate --help)")
    methods = sorted(set(answers["method"]))
    if len(methods) > 1:
        given.need("method", f"which is needed because {source.path} has {len(methods)} methods")
    of_rows = given.identity("method") if given.has("method") else pl.Series(methods * len(given.rows))
    grades = graded(given, "donor_")
    donors = pl.DataFrame(
        {
            "method": of_rows,
            "sample_id": given.identity("sample_id"),
            "donor_image_id": given.identity(f"donor_{cluster}"),
            "confidence": _confidences(given, "donor_confidence", of_rows, grades),
            **grades,
            "row": given.rows,
        }
    )
    _refuse_twice(given, donors)
    for column, known in (("sample_id", answers["sample_id"]), (f"donor_{cluster}", answers["image_id"])):
        _refuse_written_otherwise(
            given, column, donors["donor_image_id" if known.name == "image_id" else column], known
        )
    if not (unknown := donors.join(answers, on=_KEY, how="anti").sort("row")).is_empty():
        row = unknown.row(0, named=True)
        ids = sorted(answers.filter(method=row["method"])["sample_id"])
        raise given.error(
            f"{len(unknown)} of {len(donors)} pairs have no answer in {source.path}, the first in row {row['row']}:"
            f" sample_id {row['sample_id']!r}, method {row['method']!r}. Known"
            + (f" sample_ids of this method: {some(ids)}." if ids else f" methods: {', '.join(methods)}.")
            + " Add the answers or drop the pairs."
        )
    sources = answers.select(*_KEY, source_image_id="image_id")
    donors = donors.join(sources, on=_KEY, how="left", validate="1:1")
    # If patients are resampled, a pair may consist of two images of one patient, but never of one image.
    if cluster == IMAGE and (own := donors.filter(pl.col("source_image_id") == pl.col("donor_image_id"))["row"]).len():
        raise given.error(f"row {own.min()}: the donor's image is that of the question; expected another image.")
    _refuse_same_gold(given, donors, answers)
    return donors


def _confidences(given: UserTable, column: str, methods: pl.Series, grades: Mapping[str, pl.Series]) -> pl.Series:
    """Return the confidences, float64 [n]; an answer that does not exist needs none.

    Such an answer is wrong whatever the reference is, and nobody keeps it: without a confidence, it counts as 0, and
    as the least of its method where these are no probabilities.

    Raises:
        DataError: An answer that exists has no confidence, or a value is no number.
    """
    none = without_confidence(given, column, grades)
    if not none.any():
        return given.number(column)
    exists = ~none
    numbers = given.where(exists).number(column) if exists.any() else pl.Series(dtype=pl.Float64)
    known = pl.DataFrame({"method": methods.filter(exists), "number": numbers})
    least = known.group_by("method").agg(
        least=pl.when(pl.col("number").is_between(0, 1).all()).then(0.0).otherwise(pl.col("number").min())
    )
    filled = pl.DataFrame({"method": methods}).join(least, on="method", how="left", maintain_order="left")["least"]
    return filled.fill_null(0.0).scatter(exists.arg_true(), numbers).alias(column)


def _refuse_written_otherwise(given: UserTable, column: str, ids: pl.Series, known: pl.Series) -> None:
    """Refuse ids that are those of the answers but for zeros, case or spaces: 7 here and 007 there.

    Args:
        given: The table of pairs, for messages.
        column: Its column.
        ids: The ids in it.
        known: The ids of the answers.

    Raises:
        DataError: There is such an id, which would belong to nothing.
    """
    others = ids.filter(~ids.is_in(known.implode())).unique().sort()
    named = pl.DataFrame({"id": others, "plain": plain_ids(others)})
    alike = named.join(pl.DataFrame({"plain": plain_ids(known), "known": known}), on="plain", maintain_order="left")
    if not alike.is_empty():
        one, other = alike.select("id", "known").row(0)
        raise given.error(
            f"{given.column(column)} is {one!r} where the answers have {other!r}. These count as two. Write the ids"
            " of both tables in the same way, as text."
        )


def written_twice(given: UserTable, columns: Sequence[str]) -> str | None:
    """Return a sentence about names in one column that differ only in zeros, case or spaces; None if there are none.

    Args:
        given: A table.
        columns: The columns to look at; those that it lacks are skipped.
    """
    found = []
    for column in filter(given.has, columns):
        ids = given.identity(column).unique(maintain_order=True)
        named = pl.DataFrame({"id": ids, "plain": plain_ids(ids)})
        twice = named.filter(pl.col("plain").is_duplicated())
        if not twice.is_empty():
            first = twice.filter(plain=twice["plain"][0])["id"].to_list()
            found.append(f"{given.column(column)}: {some(list(map(repr, first)))}")
    if not found:
        return None
    return (
        f"warning: {given.path}: names that differ only in zeros, case or spaces count as different"
        f" ({'; '.join(found)}). If they are one, write them in the same way."
    )


def _refuse_twice(given: UserTable, frame: pl.DataFrame) -> None:
    if not (twice := frame.filter(frame.select(_KEY).is_duplicated()).sort("row")).is_empty():
        row = twice.row(0, named=True)
        rows = twice.filter(method=row["method"], sample_id=row["sample_id"])["row"].to_list()
        raise given.error(
            f"sample_id {row['sample_id']!r} is in rows {', '.join(map(str, rows[:5]))}; expected one row per method."
            " If several methods answer the question, name them in a column 'method'."
        )


def _name(path: Path | str) -> str:
    return path.stem if isinstance(path, Path) else path


def _refuse_same_gold(given: UserTable, donors: pl.DataFrame, answers: pl.DataFrame) -> None:
    """Refuse pairs whose two gold answers are equal, or have to be because one answer is right on both images.

    The donor's gold answer is that of the table of pairs, or else that of the same question about the donor's image in
    the table of answers. Gold answers are equal if they have a canonical form in common, as for the workflow's own
    donors. Where neither is known, nothing is refused.

    Args:
        given: The table of pairs, for messages.
        donors: Its rows, with the columns of `graded` and donor_image_id.
        answers: All answers, with the columns of `graded`.

    Raises:
        DataError: There is such a pair; the message names the first.
    """
    own = [name for name in ("golds", "question_key", "canonical_answer", "correct") if name in answers.columns]
    pairs = donors.join(answers.select(*_KEY, *own), on=_KEY, how="left", suffix="_source", maintain_order="left")
    if "golds" in own:
        if "golds" not in donors.columns:
            pairs = _with_golds(pairs.rename({"golds": "golds_source"}), answers)
        same = pl.col("golds").list.set_intersection("golds_source").list.len() > 0
        _refuse(given, pairs.filter(same), "the gold answer on the donor's image is that of the question", "golds")
    if "canonical_answer" in own and "canonical_answer" in donors.columns:
        same = pl.col("correct") & pl.col("correct_source")
        same &= pl.col("canonical_answer") == pl.col("canonical_answer_source")
        _refuse(given, pairs.filter(same), "one answer is marked as right on both images", "canonical_answer")


def _with_golds(pairs: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Add the gold answers of the same question about the donor's image; null where the answers do not tell them."""
    known = pl.DataFrame(schema={**dict.fromkeys(_PLACE, pl.String), "golds": pl.List(pl.String)})
    if "question_key" in pairs.columns:
        known = answers.select(*_PLACE, "golds").unique().unique(_PLACE, keep="none")
    else:
        pairs = pairs.with_columns(question_key=pl.lit(None, dtype=pl.String))
    return pairs.join(known, left_on=["question_key", "donor_image_id"], right_on=_PLACE, how="left")


def _refuse(given: UserTable, wrong: pl.DataFrame, problem: str, shown: str) -> None:
    if wrong.is_empty():
        return
    row = wrong.sort("row").row(0, named=True)
    value = row[shown] if isinstance(row[shown], str) else " | ".join(row[shown])
    raise given.error(
        f"{len(wrong)} of {len(given.rows)} pairs are no counterfactual, the first in row {row['row']}, sample_id"
        f" {row['sample_id']!r}: {problem} ({value!r}). CCG-AUC needs an image on which the same question has another"
        " gold answer. Drop these pairs."
    )


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

    @property
    def unit(self) -> str:
        """The word for what is resampled: image, the name of another column, or answer."""
        return "answer" if self.cluster is None else "image" if self.cluster == IMAGE else self.cluster

    def rows_of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a result's `frame` that are about this data set."""
        return frame.filter(pl.col("dataset").eq_missing(pl.lit(self.dataset, dtype=pl.String)))


def cells_of(predictions: UserTable, *, pairs: UserTable | None = None, cluster: str | None = None) -> list[Cells]:
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


def _places(given: UserTable, names: Sequence[str], only: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the data set and split of every row; a column that is missing has the value in `only` everywhere."""
    n = len(given.rows)
    columns = [given.identity(name).to_list() if given.has(name) else [only[k]] * n for k, name in enumerate(names)]
    return list(zip(*columns, strict=True)) if names else [("",)] * n


def _places_of_pairs(
    pairs: UserTable, names: Sequence[str], known: Sequence[tuple[str, ...]], predictions: UserTable
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


def _resamples(given: UserTable, place: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of a study's resamples for a table that was exported from it."""
    studies = set(given.text("study")) if given.has("study") else set()
    return (*studies, *place) if len(studies) == 1 else None


def _cells(given: UserTable, pairs: UserTable | None, cluster: str | None, pairs_table: UserTable | None) -> Cells:
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
            for doubt in (empty, unjudged, mixed_forms, disagreement)
            if table is not None and (said := doubt(table, prefix))
        )
        + tuple(all_alike(given, answers)),
    )


def _scale(method: str, tables: tuple[UserTable, UserTable | None], rows: _Tables) -> Outside | None:
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
