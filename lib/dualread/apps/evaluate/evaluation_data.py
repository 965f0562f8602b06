"""The answers of every method and their donor pairs, in the form that the workflow evaluates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from dualread.apps.evaluate.clusters import IMAGE, check_clusters, default_cluster, with_clusters
from dualread.apps.evaluate.graded import choice_columns, doubts, graded_columns, graded_rows, mapped_texts
from dualread.data.tables.checks import CheckedTable
from dualread.data.tables.claims import refuse_split_reports
from dualread.data.tables.contract import CLAIM, REPORT, plain_ids
from dualread.evaluation.join import Joined, join
from dualread.grading.canonical import question_key

BY = "by "  # before the columns of groups
MOST_GROUPS = 100
NO_PAIRS = "no pairs (--pairs)"
_KEY = ["method", "sample_id"]
_UNSORTED = ("golds", "answer", "reference_answer", "equal", "row")


@dataclass(frozen=True, kw_only=True)
class EvaluationData:
    """The answers to one data set, or to all questions of a table that names no data sets.

    Attributes:
        source: The table of answers.
        dataset: Name of the data set; None if the table names none.
        methods: One `Joined` per method, sorted by name. Its clusters are the values of `cluster`.
        cluster: The column whose values are resampled; None if every row is a cluster by itself.
        named: Whether the table names its questions (sample_id).
        subsets: "all"; also "open" and "closed" if there are answer types.
        withheld: {beginning of a metric's name: why it has no value}, for metrics whose columns are missing.
        ranked: The methods whose confidences are scores; these are replaced by their ranks in (0, 1).
        resamples: The names from which the resamples are drawn, if the table comes from a study.
        confidence: The name that the column of confidences has in the user's table.
        warnings: Sentences about names and grades that contradict each other.
        graded: One row per answer and per donor answer: table, method, sample_id, row, answer, reference_answer,
            confidence, correct, equal (in canonical form; null without both texts), contained (see `_contained`).
        groups: method, sample_id, and each column of groups with `BY` before its name: texts, null without a value; and
            the probability of each choice, with `CHOICE` before its name, and that of the right one in `RIGHT`. Where
            rows are claims, also `report`.
    """

    source: str
    dataset: str | None = None
    methods: Mapping[str, Joined]
    cluster: str | None
    named: bool
    subsets: tuple[str, ...]
    withheld: Mapping[str, str]
    ranked: frozenset[str] = frozenset()
    resamples: tuple[str, ...] | None = None
    confidence: str | None = None
    warnings: tuple[str, ...] = ()
    graded: pl.DataFrame = field(default_factory=pl.DataFrame)
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def unit(self) -> str:
        """The word for what is resampled: image, patient, or what else its column names; or answer."""
        return "answer" if self.cluster is None else self.cluster.removesuffix("_id")

    @property
    def has_claims(self) -> bool:
        """Whether the answers are claims of reports."""
        return REPORT in self.groups.columns

    def rows_of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a result's `frame` that are about this data set."""
        return frame.filter(pl.col("dataset").eq_missing(pl.lit(self.dataset, dtype=pl.String)))


def evaluation_data(
    answers: CheckedTable,
    pairs: CheckedTable | None = None,
    *,
    cluster: str | None = None,
    by: Sequence[str] = (),
    choices: Mapping[str, str] | None = None,
) -> list[EvaluationData]:
    """Return the answers of every method, and their donor pairs, by data set.

    Equal image ids of two data sets are two images. Raises DataError if a column is missing, a question occurs twice,
    or a pair has no answer, is on the question's own image or has its gold answer.
    """
    answers.need("confidence", "the probability that the answer is correct, and no column 'score'")
    if cluster is not None:
        answers.need(cluster, "which --cluster names", is_declared=False)
    labels = [_group_labels(answers, name) for name in by] + choice_columns(answers, choices or {})
    answers = replace(answers, frame=answers.frame.with_columns(labels))
    cluster = cluster or default_cluster(answers)
    if answers.has(CLAIM):
        refuse_split_reports(answers, cluster)
    shared = check_clusters(answers, cluster) if cluster else []
    if pairs is not None and cluster and not pairs.has(f"donor_{cluster}"):
        pairs = with_clusters(pairs, answers, cluster)
    if pairs is not None:
        for column in (cluster or IMAGE, "sample_id"):
            answers.need(column, "which --pairs needs")
        for column in ("sample_id", f"donor_{cluster}", "donor_confidence"):
            pairs.need(column, "which a table of pairs needs (dualread evaluate --help)")
    names = [name for name in ("dataset", "split") if answers.has(name)]
    places: list[tuple[Any, ...]] = [()]
    if names:
        places = answers.frame.select(names).unique().sort(names).rows()
    if pairs is not None:
        for name in names:
            if answers.frame[name].n_unique() > 1:
                pairs.need(name, f"because {answers.source} has several values of it")
    data_sets = []
    for place in places:
        names_here = dict(zip(names, place, strict=True))
        answers_here, pairs_here = _rows_of(answers, names_here), pairs and _rows_of(pairs, names_here)
        kept = [*(label.name for label in labels), *([REPORT] if answers.has(CLAIM) else [])]
        data = _of_data_set(answers_here, pairs_here, cluster, kept)
        dataset = place[0] if names and len({first for first, *_ in places}) == len(places) else "/".join(place)
        studies = set(answers_here.frame["study"]) if answers.has("study") and len(names) == 2 else set()
        resamples = (*studies, *place) if len(studies) == 1 else None
        data_sets.append(replace(data, dataset=dataset if names else None, resamples=resamples))
    n_read = sum(len(data.graded.filter(table="pairs")) for data in data_sets)
    if pairs is not None and (n := len(pairs.frame) - n_read):
        raise pairs.error(f"{n} pairs belong to a data set of which {answers.source} has no answers.")
    spelled_twice = _spelled_twice(
        answers, [*_KEY, *names, *([cluster] if cluster else []), *(f"{BY}{name}" for name in by)]
    )
    data_sets[0] = replace(data_sets[0], warnings=(*spelled_twice, *shared, *data_sets[0].warnings))
    return data_sets


def _group_labels(answers: CheckedTable, column: str) -> pl.Series:
    """Return the groups of a column as texts, null for a row without a value, under a name that no other column has."""
    answers.need(column, "which --by names", is_declared=False)
    values = answers.frame[column]
    if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Binary):
        raise answers.error(f"{answers.column(column)} holds {values.dtype}; expected one text or number per row.")
    if values.dtype.is_float():  # pandas makes numbers with a decimal point of whole ones where one is missing
        values = values.fill_nan(None)
        values = values.cast(pl.Int64) if (values.drop_nulls() % 1 == 0).all() else values
    labels = values.cast(pl.String).str.strip_chars().replace("", None).rename(f"{BY}{column}")
    if labels.null_count() == len(labels):
        raise answers.error(f"{answers.column(column)} has no value in any row, and --by names it.")
    if (n := labels.n_unique()) > MOST_GROUPS:
        raise answers.error(
            f"{answers.column(column)} has {n} different values, and --by takes at most {MOST_GROUPS}. Write ranges,"
            " such as 60-69, or what else makes larger groups, into a column."
        )
    return labels


def _rows_of(table: CheckedTable, names: Mapping[str, str]) -> CheckedTable:
    return replace(table, frame=table.frame.filter(**{name: value for name, value in names.items() if table.has(name)}))


def _of_data_set(
    table: CheckedTable, pairs: CheckedTable | None, cluster: str | None, by: Sequence[str]
) -> EvaluationData:
    answers = _answers(table, cluster, by)
    donors = None if pairs is None or pairs.frame.is_empty() else _donors(pairs, answers, table, cluster or IMAGE)
    withheld = {} if table.has("question") else {"within_question_auroc": f"no column 'question' in {table.source}"}
    if donors is not None:
        for owner, column in ((table, "answer"), (pairs, "donor_answer")):
            if owner is not None and not owner.has(column):
                withheld["strict_"] = f"no column {column!r} in {owner.source}"
    methods, ranked = {}, set()
    for method in sorted(set(answers["method"])):
        rows = answers.filter(method=method)
        pair_rows = None if donors is None else donors.filter(method=method)
        kinds = {*rows["is_score"], *(() if pair_rows is None else pair_rows["is_score"])}
        if len(kinds) > 1:
            raise (pairs or table).error(
                f"method {method!r} has probabilities in some rows and scores in others; give all of them, in both"
                " tables, as a confidence from 0 to 1 or as a score."
            )
        if kinds == {True}:
            ranked.add(method)
            rows, pair_rows = _ranks(rows, pair_rows)
        methods[method] = _joined(method, rows, pair_rows)
    graded = [graded_rows(answers, "answers")] + ([] if donors is None else [graded_rows(donors, "pairs")])
    return EvaluationData(
        source=str(table.source),
        methods=methods,
        cluster=cluster,
        named=table.has("sample_id"),
        withheld=withheld,
        subsets=("all", "open", "closed") if table.has("answer_type") else ("all",),
        ranked=frozenset(ranked),
        confidence=None if table.has("study") else table.confidence,
        warnings=tuple(doubts(table, graded[0])),
        graded=pl.concat(graded, how="diagonal_relaxed"),
        groups=answers.select(*_KEY, *by),
    )


def _answers(table: CheckedTable, cluster: str | None, by: Sequence[str]) -> pl.DataFrame:
    """Return one row per method and question, as a graded table and predictions together have them."""
    name = table.source.stem if isinstance(table.source, Path) else table.source
    frame = table.frame
    columns = [pl.col("method") if table.has("method") else pl.lit(name).alias("method")]
    columns += [pl.col("confidence"), pl.col("is_score")]
    columns += graded_columns(table, "")
    columns.append(pl.col("answer_type") if table.has("answer_type") else pl.lit("").alias("answer_type"))
    if table.has("question"):
        columns.append(mapped_texts(frame["question"], question_key).alias("question_key"))
    columns += [pl.col(cluster).alias("cluster_id")] if cluster else []
    columns += map(pl.col, by)
    answers = frame.select(*columns, *([pl.col("sample_id")] if table.has("sample_id") else []), "row")
    if table.has("sample_id"):
        _refuse_twice(table, answers)
    else:  # number the sorted rows, so that the order of the file does not matter
        order = [column for column in answers.columns if column not in _UNSORTED]
        numbers = pl.int_range(pl.len()).over("method").cast(pl.String).str.zfill(12)
        answers = answers.sort(order).with_columns(sample_id=numbers)
    absent = [name for name in ("question_key", "cluster_id") if name not in answers.columns]
    return answers.with_columns(pl.lit(False).alias("imputed"), *(pl.col("sample_id").alias(name) for name in absent))


def _donors(pairs: CheckedTable, answers: pl.DataFrame, table: CheckedTable, cluster: str) -> pl.DataFrame:
    """Return one row per method and donor pair."""
    methods = sorted(set(answers["method"]))
    if len(methods) > 1:
        pairs.need("method", f"because {table.source} has {len(methods)} methods")
    donors = pairs.frame.select(
        pl.col("method") if pairs.has("method") else pl.lit(methods[0]).alias("method"),
        "sample_id",
        "row",
        *graded_columns(pairs, "donor_"),
        donor_cluster_id=f"donor_{cluster}",
        is_score="is_score",
        confidence="donor_confidence",
    )
    _refuse_twice(pairs, donors)
    _refuse_spelled_otherwise(pairs, "sample_id", donors["sample_id"], answers["sample_id"])
    _refuse_spelled_otherwise(pairs, "method", donors["method"], answers["method"])
    if len(unknown := donors.join(answers, on=_KEY, how="anti").sort("row")):
        row, method, question = unknown.select("row", "method", "sample_id").row(0)
        raise pairs.error(
            f"{len(unknown)} of {len(donors)} pairs have no answer in {table.source}, the first in row {row}: sample_id"
            f" {question!r}, method {method!r}. Add the answers or drop the pairs."
        )
    donors = donors.join(answers.select(*_KEY, source_cluster_id="cluster_id"), on=_KEY, how="left", validate="1:1")
    plain = _spelling(_spelling(donors, "source_cluster_id", "source"), "donor_cluster_id", "donor").sort("row")
    source, donor = pl.col("source"), pl.col("donor")
    same = plain.filter((source == donor) | source.str.ends_with("/" + donor) | donor.str.ends_with("/" + source))
    if cluster == IMAGE and len(same):  # two images of one patient may be a pair, but never one image
        raise pairs.error(
            f"row {same['row'][0]}: the donor's image {same['donor_cluster_id'][0]!r} is that of the question"
            f" ({same['source_cluster_id'][0]!r}); expected another image. It is so in {len(same)} rows."
        )
    _refuse_spelled_otherwise(pairs, f"donor_{cluster}", donors["donor_cluster_id"], answers["cluster_id"])
    _refuse_same_gold(pairs, donors, answers, are_images=cluster == IMAGE)
    return donors


def _refuse_spelled_otherwise(pairs: CheckedTable, column: str, ids: pl.Series, known: pl.Series) -> None:
    """Refuse ids that are those of the answers but for their spelling: 7 here and 007 there would be two."""
    others, names = pl.DataFrame({"id": ids.unique()}), pl.DataFrame({"known": known.unique()})
    others = others.join(names, left_on="id", right_on="known", how="anti")
    alike = _spelling(others, "id").join(_spelling(names, "known"), on="plain").sort("id", "known")
    if len(alike):
        raise pairs.error(
            f"{pairs.column(column)} is {alike['id'][0]!r} where the answers have {alike['known'][0]!r}. These count as"
            " two. Write the ids of both tables in the same way, as text."
        )


def _refuse_twice(table: CheckedTable, frame: pl.DataFrame) -> None:
    twice = frame.filter(frame.select(_KEY).is_duplicated()).sort("row")
    if len(twice):
        first = twice.row(0, named=True)
        rows = twice.filter(method=first["method"], sample_id=first["sample_id"])["row"].to_list()
        raise table.error(
            f"sample_id {first['sample_id']!r} is in rows {', '.join(map(str, rows[:5]))}; expected one row per method."
            " If several methods answer the question, name them in a column 'method'."
        )


def _refuse_same_gold(pairs: CheckedTable, donors: pl.DataFrame, answers: pl.DataFrame, *, are_images: bool) -> None:
    """Refuse pairs whose gold answers are equal, or must be because one answer is marked as right on both images."""
    # The donor's gold answer is that of the pairs, or else that of the same question about its image in the answers;
    # another image of the same patient may have another.
    columns = [name for name in ("golds", "question_key", "canonical_answer", "correct") if name in answers.columns]
    rows = donors.join(answers.select(*_KEY, *columns), on=_KEY, how="left", suffix="_source", maintain_order="left")
    problems = []
    if "golds" in columns and (are_images or "golds" in donors.columns):
        if "golds" not in donors.columns:
            place = ["question_key", "cluster_id"]
            known = answers.select(*place, "golds").unique().unique(place, keep="none")
            rows = rows.rename({"golds": "golds_source"})
            rows = rows.join(known, left_on=["question_key", "donor_cluster_id"], right_on=place, how="left")
        same = pl.col("golds").list.set_intersection("golds_source").list.len() > 0
        problems.append((rows.filter(same), "the gold answer on the donor's image is that of the question"))
    if "canonical_answer" in columns and "canonical_answer" in donors.columns:
        equal = pl.col("canonical_answer") == pl.col("canonical_answer_source")
        same = pl.col("correct") & pl.col("correct_source") & equal
        problems.append((rows.filter(same), "one answer is marked as right on both images"))
    for wrong, problem in problems:
        if len(wrong):
            row, question = wrong.sort("row").select("row", "sample_id").row(0)
            raise pairs.error(
                f"{len(wrong)} of {len(rows)} pairs are no counterfactual, the first in row {row}, sample_id"
                f" {question!r}: {problem}. CCG-AUC needs an image on which the same question has another gold answer."
                " Drop these pairs."
            )


def _spelling(frame: pl.DataFrame, column: str, name: str = "plain") -> pl.DataFrame:
    return frame.with_columns(plain_ids(pl.col(column)).alias(name))


def _spelled_twice(table: CheckedTable, columns: Sequence[str]) -> Iterator[str]:
    repeated = []
    for column in filter(table.has, dict.fromkeys(columns)):
        names = _spelling(table.frame.select(id=column).unique().sort("id"), "id")
        twice = names.filter(pl.col("plain").is_duplicated()).sort("plain", "id")
        if len(twice):
            repeated.append(f"{table.column(column)}: {', '.join(map(repr, twice['id'][:2]))}")
    if repeated:
        yield (
            f"warning: {table.source}: names that differ only in zeros, case, spaces, Unicode form or a file's suffix"
            f" count as different ({'; '.join(repeated)}). If they are one, write them in the same way."
        )


def _ranks(answers: pl.DataFrame, donors: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Replace scores by their dense ranks among all of them, divided by the largest rank plus 1."""
    both = answers["confidence"] if donors is None else pl.concat([answers["confidence"], donors["confidence"]])
    ranks = both.rank("dense") / (both.n_unique() + 1)
    n = len(answers)
    return answers.with_columns(ranks[:n].alias("confidence")), donors if donors is None else donors.with_columns(
        ranks[n:].alias("confidence")
    )


def _joined(method: str, answers: pl.DataFrame, pairs: pl.DataFrame | None) -> Joined:
    """Join the rows as the workflow does, as if the tables were artifacts."""

    def complete(frame: pl.DataFrame) -> pl.DataFrame:
        is_there = "canonical_answer" in frame.columns
        return (frame if is_there else frame.with_columns(canonical_answer=pl.lit(None, pl.String))).sort("sample_id")

    # To the join, a cluster is an image of its own.
    answers = complete(answers).with_columns(image_id="cluster_id")
    if pairs is not None:
        pairs = complete(pairs).rename({f"{side}_cluster_id": f"{side}_image_id" for side in ("source", "donor")})
    if pairs is None or pairs.is_empty():
        alone = {"original": answers}
        return replace(
            join(where=method, manifest=answers, pairs=None, predictions=alone, graded=alone), pairs=NO_PAIRS
        )
    both = {"original": answers, "donor": pairs.with_columns(image_id="donor_image_id", imputed=pl.lit(False))}
    return join(where=method, manifest=answers, pairs=pairs, predictions=both, graded=both)
