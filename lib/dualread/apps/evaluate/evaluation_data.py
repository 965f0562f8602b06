"""The answers of every method and their donor pairs, in the form that the workflow evaluates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from dualread.apps.evaluate.donors import IMAGE, KEY, donor_rows, refuse_twice, with_clusters
from dualread.apps.evaluate.graded import choice_columns, doubts, graded_columns, graded_rows, mapped_texts
from dualread.data.tables.checks import CheckedTable
from dualread.data.tables.claims import refuse_split_reports
from dualread.data.tables.contract import CLAIM, MISSING_WORDS, REPORT, plain_ids
from dualread.evaluation.join import Joined, join
from dualread.grading.canonical import question_key

CLUSTER = "cluster_id"
BY = "by "  # before the columns of groups
MOST_GROUPS = 100
NO_PAIRS = "no pairs (--pairs)"
_UNSORTED = ("golds", "answer", "reference_answer", "equal", "row")


@dataclass(frozen=True, kw_only=True)
class EvaluationData:
    """The answers to one data set, or to all questions of a table that names no data sets."""

    source: str  # the table of answers
    dataset: str | None = None  # name of the data set; None if the table names none
    methods: Mapping[str, Joined]  # one `Joined` per method, sorted by name. Its clusters are the values of `cluster`
    cluster: str | None  # the column whose values are resampled; None if every row is a cluster by itself
    identities: frozenset[str]  # columns of the answers that the table has: sample_id, question_key, cluster_id
    subsets: tuple[str, ...]  # "all"; also "open" and "closed" if there are answer types
    # {beginning of a metric's name: why it has no value}, for metrics whose columns are missing.
    withheld: Mapping[str, str]
    # The methods whose confidences are scores; these are replaced by their ranks in (0, 1).
    ranked: frozenset[str] = frozenset()
    # The names from which the resamples are drawn, if the table comes from a study.
    resamples: tuple[str, ...] | None = None
    chooser: "EvaluationData | None" = None  # the calibration answers that choose its thresholds
    confidence: str | None = None  # the name that the column of confidences has in the user's table
    warnings: tuple[str, ...] = ()  # sentences about names and grades that contradict each other
    # One row per answer and per donor answer: table, method, sample_id, row, answer, reference_answer, confidence,
    # correct, equal (in canonical form; null without both texts), contained (whether one text stands in the other,
    # though the answer counts as wrong).
    graded: pl.DataFrame = field(default_factory=pl.DataFrame)
    # Method, sample_id, and each column of groups with `BY` before its name: texts, null without a value; and the
    # probability of each choice, with `CHOICE` before its name, and that of the right one in `RIGHT`. Where rows are
    # claims, also `report`.
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def title(self) -> str:
        """The table's name, and the data set's."""
        return Path(self.source).name + ("" if self.dataset is None else f", {self.dataset}")

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

    Values of `cluster` are resampled; None for cluster_id or image_id, if there is one. `by` are columns of groups,
    `choices` as in `TableOptions`. Equal image ids of two data sets are two images. Raises DataError if a column is
    missing, a question occurs twice, or a pair has no answer, is on the question's own image or has its gold answer.
    """
    answers.need("confidence", "the probability that the answer is correct, and no column 'score'")
    if cluster is not None:
        answers.need(cluster, "which --cluster names", is_declared=False)
    labels = [_group_labels(answers, name) for name in by] + choice_columns(answers, choices or {})
    answers = replace(answers, frame=answers.frame.with_columns(labels))
    cluster = cluster or _default_cluster(answers)
    if answers.has(CLAIM):
        refuse_split_reports(answers, cluster)
    shared = _check_clusters(answers, cluster) if cluster else []
    names = [name for name in ("dataset", "split") if answers.has(name)]
    if pairs is not None:
        pairs = _with_needed(pairs, answers, cluster, names)
    places: list[tuple[str, ...]] = answers.frame.select(names).unique().sort(names).rows() if names else [()]
    kept = [*(label.name for label in labels), *([REPORT] if answers.has(CLAIM) else [])]
    data_sets = []
    for place in places:
        names_here = dict(zip(names, place, strict=True))
        answers_here, pairs_here = _rows_of(answers, names_here), pairs and _rows_of(pairs, names_here)
        is_clear = len({name[:1] for name in places}) == len(places)
        dataset = "/".join(place[:1] if is_clear else place) if names else None
        studies = set(answers_here.frame["study"]) if answers.has("study") and len(names) == 2 else set()
        resamples = (*studies, *place) if len(studies) == 1 else None
        data = _of_data_set(answers_here, pairs_here, cluster, kept)
        data_sets.append(replace(data, dataset=dataset, resamples=resamples))
    n_read = sum(len(data.graded.filter(table="pairs")) for data in data_sets)
    if pairs is not None and (n := len(pairs.frame) - n_read):
        raise pairs.error(f"{n} pairs belong to a data set of which {answers.source} has no answers.")
    spelled_twice = _spelled_twice(
        answers, [*KEY, *names, *([cluster] if cluster else []), *(f"{BY}{name}" for name in by)]
    )
    data_sets[0] = replace(data_sets[0], warnings=(*spelled_twice, *shared, *data_sets[0].warnings))
    return data_sets


def _with_needed(pairs: CheckedTable, answers: CheckedTable, cluster: str | None, names: Sequence[str]) -> CheckedTable:
    """Return the pairs with the clusters of donors; refuse tables that lack a column which pairs need."""
    if cluster and not pairs.has(f"donor_{cluster}"):
        pairs = with_clusters(pairs, answers, cluster)
    for column in (cluster or IMAGE, "sample_id"):
        answers.need(column, "which --pairs needs")
    for column in ("sample_id", f"donor_{cluster}", "donor_confidence"):
        pairs.need(column, "which a table of pairs needs (dualread evaluate --help)")
    for name in names:
        if answers.frame[name].n_unique() > 1:
            pairs.need(name, f"because {answers.source} has several values of it")
    return pairs


def _default_cluster(answers: CheckedTable) -> str | None:
    """Return the column that is resampled where none is named; clusters that are the images change no word.

    Claims of one report never count as independent.
    """
    if answers.has(IMAGE) and answers.has(CLUSTER) and (answers.frame[IMAGE] == answers.frame[CLUSTER]).all():
        return IMAGE
    names = (CLUSTER, IMAGE, REPORT) if answers.has(CLAIM) else (CLUSTER, IMAGE)
    return next(filter(answers.has, names), None)


def _check_clusters(answers: CheckedTable, cluster: str) -> list[str]:
    """Refuse a word that may mean that a row has no cluster, and return a warning where clusters share an image."""
    clusters = answers.frame[cluster]
    expected = (
        "expected a name in every row, because this word may mean that there is none. Name it, or leave the column out"
    )
    answers.refuse(cluster, clusters.is_in(MISSING_WORDS), clusters, expected)
    if not answers.has(IMAGE) or cluster == IMAGE:
        return []
    names = [name for name in ("dataset", "split", IMAGE) if answers.has(name)]
    shared = answers.frame.group_by(names).agg(pl.col(cluster).unique().sort()).filter(pl.col(cluster).list.len() > 1)
    if shared.is_empty():
        return []
    first = shared.sort(names).row(0, named=True)
    return [
        f"warning: {answers.source}: images with several values of {cluster}: {len(shared)}, such as {first[IMAGE]!r}"
        f" with {first[cluster][0]!r} and {first[cluster][1]!r}. Answers about one image depend on each other, so that"
        " the intervals may be too narrow."
    ]


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
    donors = None if pairs is None or pairs.frame.is_empty() else donor_rows(pairs, answers, table, cluster or IMAGE)
    withheld = {} if table.has("question") else {"within_question_auroc": f"no column 'question' in {table.source}"}
    if donors is not None:
        for owner, column in ((table, "answer"), (pairs, "donor_answer")):
            if owner is not None and not owner.has(column):
                withheld["strict_"] = f"no column {column!r} in {owner.source}"
    methods, ranked = {}, set()
    for method in sorted(set(answers["method"])):
        frames = [frame.filter(method=method) for frame in (answers, donors) if frame is not None]
        values = pl.concat(frame.select("is_score", "confidence") for frame in frames)
        if values["is_score"].n_unique() > 1:
            raise (pairs or table).error(
                f"method {method!r} has probabilities in some rows and scores in others; give all of them, in both"
                " tables, as a confidence from 0 to 1 or as a score."
            )
        if values["is_score"][0]:  # dense ranks of all scores, divided by the largest rank plus 1
            ranked.add(method)
            ranks = values["confidence"].rank("dense") / (values["confidence"].n_unique() + 1)
            places = ranks[: len(frames[0])], ranks[len(frames[0]) :]
            frames = [frame.with_columns(confidence=part) for frame, part in zip(frames, places, strict=False)]
        methods[method] = _joined(method, *frames)
    graded = [graded_rows(answers, "answers")] + ([] if donors is None else [graded_rows(donors, "pairs")])
    known = {"sample_id": "sample_id", "question_key": "question", "cluster_id": cluster}
    return EvaluationData(
        source=str(table.source),
        methods=methods,
        cluster=cluster,
        identities=frozenset(name for name, column in known.items() if column and table.has(column)),
        withheld=withheld,
        subsets=("all", "open", "closed") if table.has("answer_type") else ("all",),
        ranked=frozenset(ranked),
        confidence=None if table.has("study") else table.confidence,
        warnings=tuple(doubts(table, graded[0])),
        graded=pl.concat(graded, how="diagonal_relaxed"),
        groups=answers.select(*KEY, *by),
    )


def _answers(table: CheckedTable, cluster: str | None, by: Sequence[str]) -> pl.DataFrame:
    """Return one row per method and question, as a graded table and predictions together have them."""
    name = table.source.stem if isinstance(table.source, Path) else table.source
    columns = [pl.col("method") if table.has("method") else pl.lit(name).alias("method"), "confidence", "is_score"]
    columns += graded_columns(table, "")
    columns.append(pl.col("answer_type") if table.has("answer_type") else pl.lit("").alias("answer_type"))
    if table.has("question"):
        columns.append(mapped_texts(table.frame["question"], question_key).alias("question_key"))
    columns += [*([pl.col(cluster).alias("cluster_id")] if cluster else []), *by]
    answers = table.frame.select(*columns, *(["sample_id"] if table.has("sample_id") else []), "row")
    if table.has("sample_id"):
        refuse_twice(table, answers)
    else:  # number the sorted rows, so that the order of the file does not matter
        order = [column for column in answers.columns if column not in _UNSORTED]
        numbers = pl.int_range(pl.len()).over("method").cast(pl.String).str.zfill(12)
        answers = answers.sort(order).with_columns(sample_id=numbers)
    absent = [name for name in ("question_key", "cluster_id") if name not in answers.columns]
    return answers.with_columns(pl.lit(False).alias("imputed"), *(pl.col("sample_id").alias(name) for name in absent))


def _spelled_twice(table: CheckedTable, columns: Sequence[str]) -> Iterator[str]:
    repeated = []
    for column in filter(table.has, dict.fromkeys(columns)):
        names = table.frame.select(id=column).unique().sort("id").with_columns(plain=plain_ids(pl.col("id")))
        twice = names.filter(pl.col("plain").is_duplicated()).sort("plain", "id")
        if len(twice):
            repeated.append(f"{table.column(column)}: {', '.join(map(repr, twice['id'][:2]))}")
    if repeated:
        yield (
            f"warning: {table.source}: names that differ only in zeros, case, spaces, Unicode form or a file's suffix"
            f" count as different ({'; '.join(repeated)}). If they are one, write them in the same way."
        )


def _joined(method: str, answers: pl.DataFrame, pairs: pl.DataFrame | None = None) -> Joined:
    """Join the rows as the workflow does, as if the tables were artifacts; to the join, a cluster is an image."""
    answers = answers.sort("sample_id").with_columns(image_id="cluster_id")
    if pairs is None or pairs.is_empty():
        alone = {"original": answers}
        return replace(
            join(where=method, manifest=answers, pairs=None, predictions=alone, graded=alone), pairs=NO_PAIRS
        )
    images = {f"{side}_cluster_id": f"{side}_image_id" for side in ("source", "donor")}
    pairs = pairs.sort("sample_id").rename(images)
    both = {"original": answers, "donor": pairs.with_columns(image_id="donor_image_id", imputed=pl.lit(False))}
    return join(where=method, manifest=answers, pairs=pairs, predictions=both, graded=both)
