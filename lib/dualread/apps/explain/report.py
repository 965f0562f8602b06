"""Explain a printed number: its runs, the artifacts that they were made from, and the rows of single questions."""

import inspect
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from dualread.apps.explain.cells import MethodRun, PrintedCell, count_rows, find_cell, read_rows, recomputed, runs_of
from dualread.artifacts.tables import read_table
from dualread.data.questions.roles import OF_UNIT, unit_of
from dualread.errors import ConfigError
from dualread.evaluation import conditions
from dualread.plugins import load_module
from dualread.readers.replies import choice_probabilities
from dualread.reporting.tables.subgroups import WORST
from dualread.schema.columns import MANIFEST
from dualread.stages._joined import read_groups
from dualread.store.differences import described
from dualread.store.graph import Lineage
from dualread.store.manifest import Manifest
from dualread.store.place import Target
from dualread.store.store import Store

# Adding the same numbers in another order changes the sum by less than this.
_TOLERANCE = 1e-12


def explain_cell(
    target: Target, store: Store, *, words: str, sample_id: str | None = None, n_rows: int = 2
) -> Iterator[str]:
    """Yield the lines that explain the cell that `words` identify (`find_cell`).

    They show the question `sample_id` for every seed, or else the first `n_rows` questions for the first seed.
    """
    cell = find_cell(target, words)
    runs = runs_of(cell, target, store)
    yield f"{cell.name}: {cell.row['printed']}" + (f" ({cell.row['reason']})" if cell.row.get("reason") else "")
    yield from _arithmetic(cell, runs)
    yield f"  code: {', '.join(_code(cell, target))}"
    shards = sorted(_shards(cell, runs))
    chain = Chain(store, {*shards, *_choosing(cell, runs, store)})
    if not runs:
        yield from chain.lines(target.manifest.key, "table", "  ")
    for run in runs:
        row = run.estimate
        units = _units(run, store)
        every = " or ".join(f"{unit}s" for unit in dict.fromkeys(units.values()))
        yield from ["", f"{row['method']}, actor {row['actor']}, seed {row['seed']}: {_value(row, every)}"]
        yield from (f"  {row['dataset']}: {_value(row, units[row['dataset']] + 's')}" for row in run.members)
        yield from chain.lines(run.key, run.kind, "  ")
    yield from ["", f"made with {chain.versions()}"]
    if sample_id is not None:
        shards = [shard for shard in shards if sample_id.startswith(f"{'/'.join(shard)}/")] or shards
    with_rows = [run for run in runs if run.kind in ("metrics", "subgroups")]
    for run in with_rows if sample_id is not None else with_rows[:1]:
        shard = "/".join(shards[0])
        yield from ["", f"{run.estimate['method']}, seed {run.estimate['seed']}, {shard}:"]
        yield from (f"  {line}" for line in _questions(run.key, store, shard, sample_id, n_rows, cell))


def _arithmetic(cell: PrintedCell, runs: Sequence[MethodRun]) -> Iterator[str]:
    """Yield a line that says whether the runs reproduce the value behind the printed number."""
    stated, again = cell.row.get("mean"), recomputed(cell, runs)
    if stated and again is not None and cell.seed is None:
        seeds = {run.estimate["seed"] for run in runs}
        basis = f"the mean of {len(seeds)} seeds" if len(seeds) > 1 else "of one run"
        difference = ", method minus baseline" if cell.row.get("baseline") else ""
        agrees = abs(float(stated) - again) < _TOLERANCE
        verdict = "as recomputed from the metrics below" if agrees else f"BUT the metrics below give {again!r}"
        yield f"  {stated}, {basis}{difference}, {verdict}"


def _code(cell: PrintedCell, target: Target) -> Iterator[str]:
    """Yield file and line where the cell's metric is declared, and where its table is built."""
    table = Path(inspect.getfile(load_module(target.manifest.action.spec["table"]["module"])))
    of_conditions = Path(conditions.__file__)  # where some metrics have the names of others
    is_condition = str(cell.row.get("subset")).startswith(conditions.PREFIX)
    declared = [
        (*meaning, (file == of_conditions) == is_condition, place)
        for file in (*sorted(of_conditions.parent.glob("*.py")), table)
        for *meaning, place in _declarations(file, (cell.row.get("metric") or "").removeprefix(WORST))
    ]
    if declared:
        yield f"metric {max(declared)[-1]}"
    for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), start=1):
        if re.search(r"^(def build\(|build = )", line):
            yield f"table {os.path.relpath(table)}:{number}"


def _declarations(file: Path, metric: str) -> Iterator[tuple[bool, int, str]]:
    """Yield the lines that name a metric, or a template of it: whether as `name=`, letters that agree, and the line."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        for start, name in re.findall(r'(\bname=|\w\(|^    return )f?"([^"]+)"', line):
            words = re.split(r"\{[^}]*\}", name)
            if any(words) and re.fullmatch(".+".join(map(re.escape, words)), metric):
                yield start == "name=", len("".join(words)), f"{os.path.relpath(file)}:{number}"


def _units(run: MethodRun, store: Store) -> dict[str, str]:
    """Return what is resampled of each data set that an estimate is of, such as images or patients."""
    keys = store.manifest(run.key).input_keys
    shards = [(row["dataset"], row["split"]) for row in run.members or [run.estimate]]
    paths = {shard[0]: f"manifest/{'/'.join(shard)}" for shard in shards}
    tables = {name: store.entry(keys[path]) / "manifest.parquet" for name, path in paths.items() if path in keys}
    return {name: unit_of(read_table(tables[name], MANIFEST, OF_UNIT)) if name in tables else "image" for name in paths}


def _value(row: Mapping[str, Any], units: str) -> str:
    basis = f"on {row['n']:,} rows of {row['n_clusters']:,} {units}"
    if row["estimate"] is None:
        return f"undefined, {row['reason']} ({basis})"
    interval = "" if row["low"] is None else f", 95% interval [{row['low']:.6f}, {row['high']:.6f}]"
    return f"{row['estimate']:.6f}{interval} ({basis})"


def _shards(cell: PrintedCell, runs: Sequence[MethodRun]) -> set[tuple[str, str]]:
    rows = [row for run in runs for row in (run.members or [run.estimate])]
    if not rows and cell.row.get("dataset"):
        splits = [cell.row["split"]] if cell.row.get("split") else ["train", "validation", "test"]
        return {(cell.row["dataset"], split) for split in splits}
    return {(row["dataset"], row["split"]) for row in rows}


def _choosing(cell: PrintedCell, runs: Sequence[MethodRun], store: Store) -> Iterator[tuple[str, str]]:
    """Yield the (data set, split) whose answers have chosen the threshold that a cell rests on."""
    if re.search(r"_at_(risk|miss)_\d+$", cell.row.get("metric") or ""):
        for run in runs:
            dataset, _, split = store.manifest(run.key).action.spec["thresholds_from"].partition("/")
            yield dataset, split or "validation"  # of groups, the data set alone is said


class Chain(Lineage):
    """The lines of several runs, which share artifacts; inputs of other shards than `shards` are left out."""

    def __init__(self, store: Store, shards: Collection[tuple[str, str]]) -> None:
        super().__init__(store)
        self._shards = set(shards)

    def versions(self) -> str:
        """Return the package versions of all artifacts shown so far; several versions of a package if they differ."""
        by_package: dict[str, set[str]] = {}
        for manifest in self.shown.values():
            for package, version in {"python": manifest.action.python, **manifest.action.packages}.items():
                by_package.setdefault(package, set()).add(version)
        return ", ".join(f"{name} {' and '.join(sorted(versions))}" for name, versions in sorted(by_package.items()))

    def followed(self, manifest: Manifest) -> list[str]:
        """Return the inputs to follow, deepest first: a shared input is printed at the end of its longest path."""
        names = [name for name in manifest.action.inputs if (shard := _shard(name)) is None or shard in self._shards]
        order = ("predictions", "reader", "parent", "features", "view", "graded", "generations", "actor", "pairs")
        ranks = {name: order.index(kind) for name in names if (kind := name.split("/")[0]) in order}
        return sorted(names, key=lambda name: (ranks.get(name, len(order)), name))

    def line(self, manifest: Manifest) -> str:
        """Return the line of an artifact, with its seed, what it holds, and where it was shown."""
        record, action = self.record(manifest.key), manifest.action
        seed = f"  seed {action.spec['seed']}" if "seed" in action.spec else ""
        return f"{described(manifest, record, seed)}  {self._held(manifest)}{record.get('output', '')}"

    def _held(self, manifest: Manifest) -> str:
        """Return the rows of an artifact's table, or the digest of its weights, or else what its stage said of it."""
        tables = [name for name in manifest.files if name.endswith(".parquet")]
        weights = [name for name in manifest.files if name.endswith("model.safetensors")]
        if weights:
            return f"{weights[0]} {manifest.files[weights[0]]['sha256'][:8]}  "
        if len(tables) == 1:
            return f"{count_rows(self.store.entry(manifest.key) / tables[0]):,} rows  "
        return f"{summary}  " if (summary := self.record(manifest.key).get("summary")) else ""


def _shard(name: str) -> tuple[str, str] | None:
    """Return the (data set, split) of an input, or None if its name has none, as the inputs of a reader."""
    kind, *rest = name.split("/")
    rest = rest[1:] if kind == "view" else rest
    return (rest[0], rest[1]) if kind != "parent" and len(rest) >= 2 else None


def _questions(
    key: str, store: Store, shard: str, sample_id: str | None, n_rows: int, cell: PrintedCell
) -> Iterator[str]:
    """Yield lines about one question of a run's metrics, or about the first `n_rows`: donor, answers, confidences."""
    metrics = store.manifest(key)
    folders = {name: store.entry(key) for name, key in metrics.input_keys.items()}
    folder = folders[f"manifest/{shard}"]
    rows = read_rows(folder / "manifest.parquet")
    chosen = [row for row in rows if row["sample_id"] == sample_id]
    if sample_id is None:
        chosen = rows
        if cell.group is not None:
            by, group = cell.group
            of_questions = dict(read_groups({"manifest": folder}, "manifest", [by]).iter_rows())
            chosen = [row for row in rows if of_questions[row["sample_id"]] == group]
        chosen = chosen[:n_rows]
    if not chosen and sample_id is not None:
        known = [row["sample_id"] for row in rows]
        listed = ", ".join(get_close_matches(sample_id, known, n=5) or known[:5])
        raise ConfigError(
            f"--sample {sample_id}: not among the {len(rows)} questions of {shard}. The nearest: {listed}."
        )
    golds = {row["sample_id"]: " | ".join(row["reference_answers"]) for row in rows}
    start = f"graded/{shard}/"
    conditions = [name.removeprefix(start) for name in metrics.action.inputs if name.startswith(start)]
    for question in chosen:
        name = question["sample_id"]
        yield f"question {name}: {question['question']}"
        yield (
            f"  reference answer: {golds[name]}; {question['answer_type']}, role {question['role']}, row"
            f" {question['source_row']} of the official file, image {question['image_id']}"
        )
        yield from (f"  {folder / file}" for file in question["image_files"])
        yield from _choices(metrics, folders, shard, name, cell)
        if f"pairs/{shard}" in folders:
            for pair in read_rows(folders[f"pairs/{shard}"] / "pairs.parquet", sample_id=name):
                yield (
                    f"  donor: {pair['donor_sample_id']}, one of {pair['n_candidates']}, reference answer:"
                    f" {golds[pair['donor_sample_id']]}, image {pair['donor_image_id']}"
                )
        for condition in sorted(conditions, key=lambda condition: (condition != "original", condition)):
            yield from _answers(metrics, store, f"{shard}/{condition}", name)


def _choices(
    metrics: Manifest, folders: Mapping[str, Path], shard: str, sample_id: str, cell: PrintedCell
) -> Iterator[str]:
    """Yield a line about the choices of a question, where the cell is about answer sets."""
    view = f"view/{metrics.action.spec.get('choices')}/{shard}/original"
    if (cell.row.get("metric") or "").startswith("set_") and view in folders:
        scored = read_rows(folders[view] / "choices.parquet", sample_id=sample_id)
        log_probs = {row["choice"]: np.array([row["log_prob"]]) for row in scored}
        shares = zip(log_probs, choice_probabilities(log_probs, 1)[0], strict=False)
        yield f"  choices: {', '.join(f'{name} {p:.4f}' for name, p in shares) or 'none'}"


def _answers(metrics: Manifest, store: Store, shard: str, sample_id: str) -> Iterator[str]:
    """Yield lines about the answers to a question: what was written, graded and replayed, and the confidences."""
    graded, scored = (store.manifest(metrics.input_keys[name]) for name in (f"graded/{shard}", "predictions"))
    condition = shard.rpartition("/")[2]
    predictions = store.entry(scored.key) / "predictions.parquet"
    confidences = read_rows(predictions, sample_id=sample_id, condition=condition)
    written, replayed = [], []
    if "generations" in graded.input_keys:
        for path in sorted(store.entry(graded.input_keys["generations"]).glob("generations*.parquet")):
            written += read_rows(path, sample_id=sample_id)
    if (name := f"features/{shard}") in scored.input_keys:
        replayed = read_rows(store.entry(scored.input_keys[name]) / "features.parquet", sample_id=sample_id)
    for row in read_rows(store.entry(graded.key) / "graded.parquet", sample_id=sample_id):
        yield f"  {condition}, on image {row['image_id']}:"
        for completion in written:
            yield f"    completion: {completion['text']!r} ({completion['finish_reason']})"
        yield f"    answer: {row['answer']!r}, {row['parse_status']}; {'correct' if row['correct'] else 'not correct'}"
        for read in replayed:
            positions = ", ".join(map(str, read["answer_positions"]))
            answer = f"answer in tokens {positions}, closed by token {read['t_close']}"
            yield (
                f"    replayed in row {read['row']} of the features: {read['n_prompt_tokens']} prompt tokens,"
                f" {read['n_image_tokens']} of the image; {answer if read['has_answer_block'] else 'no answer block'};"
                f" log-probabilities differ from the generation's by at most {read['log_prob_max_difference']:.1e}"
            )
        for prediction in confidences:
            score = f"score {prediction['score']:.6f}{', imputed' if prediction['imputed'] else ''}"
            yield f"    confidence of {prediction['method']}: {prediction['confidence']:.6f} ({score})"
