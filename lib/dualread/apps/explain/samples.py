"""Single questions of a run: the manifest's row, the donor, the actor's completion, its grade, what the replay read of
it, and the method's confidence.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from dualread.apps.explain.runs import read_rows
from dualread.errors import ConfigError
from dualread.store.manifest import Manifest
from dualread.store.store import Store


def sample_lines(
    key: str, store: Store, *, dataset: str, split: str, sample_id: str | None, n_rows: int
) -> Iterator[str]:
    """Yield lines about one question, or about the first `n_rows` of the manifest, as a run's metrics were given them.

    Args:
        key: The key of a compute_metrics artifact.
        store: The store with the artifact and its inputs.
        dataset: The data set of the questions.
        split: The split of the questions.
        sample_id: The question; None for the first ones.
        n_rows: Number of questions if `sample_id` is None.

    Raises:
        ConfigError: The manifest has no such question.
        ArtifactError: A file cannot be read.
    """
    metrics = store.manifest(key)
    questions = read_rows(store.entry(metrics.input_keys[f"manifest/{dataset}/{split}"]) / "manifest.parquet")
    folder = store.entry(metrics.input_keys[f"manifest/{dataset}/{split}"])
    predictions = store.entry(metrics.input_keys["predictions"]) / "predictions.parquet"
    start = f"graded/{dataset}/{split}/"
    conditions = [name.removeprefix(start) for name in metrics.action.inputs if name.startswith(start)]
    conditions.sort(key=lambda condition: (condition != "original", condition))
    for question in _chosen(questions, sample_id, n_rows, f"{dataset}/{split}"):
        yield f"question {question['sample_id']}: {question['question']}"
        gold = " | ".join(question["reference_answers"])
        yield (
            f"  reference answer: {gold}; {question['answer_type']}, role {question['role']}, row"
            f" {question['source_row']} of the official file, image {question['image_id']}"
        )
        yield f"  {folder / question['image_file']}"
        yield from _donor_lines(metrics, store, f"{dataset}/{split}", question, questions)
        for condition in conditions:
            yield from _answer_lines(metrics, store, f"{dataset}/{split}/{condition}", question, predictions)


def _chosen(rows: Sequence[Mapping], sample_id: str | None, n_rows: int, where: str) -> Sequence[Mapping[str, Any]]:
    if sample_id is None:
        return rows[:n_rows]
    if chosen := [row for row in rows if row["sample_id"] == sample_id]:
        return chosen
    known = [row["sample_id"] for row in rows]
    near = get_close_matches(sample_id, known, n=5) or known[:5]
    listed = ", ".join(near)
    raise ConfigError(f"--sample {sample_id}: not among the {len(rows)} questions of {where}. The nearest: {listed}.")


def _donor_lines(
    metrics: Manifest, store: Store, shard: str, question: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    if (name := f"pairs/{shard}") not in metrics.input_keys:
        return
    gold = {row["sample_id"]: " | ".join(row["reference_answers"]) for row in questions}
    for pair in read_rows(store.entry(metrics.input_keys[name]) / "pairs.parquet", sample_id=question["sample_id"]):
        yield (
            f"  donor: {pair['donor_sample_id']}, one of {pair['n_candidates']}, reference answer:"
            f" {gold[pair['donor_sample_id']]}, image {pair['donor_image_id']}"
        )


def _answer_lines(
    metrics: Manifest, store: Store, shard: str, question: Mapping[str, Any], predictions: Any
) -> Iterator[str]:
    sample_id, condition = question["sample_id"], shard.split("/")[2]
    graded = store.manifest(metrics.input_keys[f"graded/{shard}"])
    judged = read_rows(store.entry(graded.key) / "graded.parquet", sample_id=sample_id)
    confidences = read_rows(predictions, sample_id=sample_id, condition=condition)
    written = []
    if "generations" in graded.input_keys:
        folder = store.entry(graded.input_keys["generations"])
        for path in sorted(folder.glob("generations*.parquet")):
            written += read_rows(path, sample_id=sample_id)
    replayed = []
    scored = store.manifest(metrics.input_keys["predictions"])
    if (name := f"features/{shard}") in scored.input_keys:
        replayed = read_rows(store.entry(scored.input_keys[name]) / "features.parquet", sample_id=sample_id)
    for row in judged:
        yield f"  {condition}, on image {row['image_id']}:"
        for completion in written:
            yield f"    completion: {completion['text']!r} ({completion['finish_reason']})"
        yield f"    answer: {row['answer']!r}, {row['parse_status']}; {'correct' if row['correct'] else 'not correct'}"
        yield from (f"    {_replay_line(read)}" for read in replayed)
        for prediction in confidences:
            imputed = ", imputed" if prediction["imputed"] else ""
            score = f"score {prediction['score']:.6f}{imputed}"
            yield f"    confidence of {prediction['method']}: {prediction['confidence']:.6f} ({score})"


def _replay_line(read: Mapping[str, Any]) -> str:
    positions = ", ".join(map(str, read["answer_positions"]))
    answer = f"answer in tokens {positions}, closed by token {read['t_close']}"
    return (
        f"replayed in row {read['row']} of the features: {read['n_prompt_tokens']} prompt tokens,"
        f" {read['n_image_tokens']} of the image; {answer if read['has_answer_block'] else 'no answer block'};"
        f" log-probabilities differ from the generation's by at most {read['log_prob_max_difference']:.1e}"
    )
