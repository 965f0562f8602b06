"""The claims of the reports of a shard: where they are, and which of them are supported."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.data.tables.files import read_file
from dualread.errors import DataError
from dualread.grading.answers import graded_claim
from dualread.grading.claim_labels.base import Claim, claim_id
from dualread.grading.parse import Parsed
from dualread.grading.spans.base import Span, divided
from dualread.schema.base import ConfiguredPlugin, NoSettings
from dualread.schema.columns import CLAIMS, FEATURES, GRADED
from dualread.schema.data import ClaimsSpec

SPANS, LABELS = "spans", "labels"  # inputs: the tables that the plugins read


def claims_in(
    plugin: ConfiguredPlugin,
    completions: pl.DataFrame,
    inputs: Mapping[str, Path],
    thinking_ends: str | None,
    *,
    where: str,
) -> list[list[Span]]:
    """Return the claims of each completion, in the order of the table. Input `spans`: a table that the plugin reads."""
    texts = completions.select("sample_id", "text").iter_rows()
    module, settings, source = _opened(plugin, inputs.get(SPANS))
    return divided(module, texts, settings, source, thinking_ends, f"{where}: {plugin.module}")


def write_grades(
    spec: ClaimsSpec,
    completions: pl.DataFrame,
    references: Mapping[str, Sequence[str]],
    parse: Callable[[str], Parsed],
    inputs: Mapping[str, Path],
    out: Path,
    where: str,
) -> str:
    """Write claims.parquet, all claims of a shard, and graded.parquet, those with a label; return a line about them.

    Other arguments are those of `labeled` and `graded_claims`; the input `original` has the grades of the condition
    whose completions are forced here.
    """
    claims = labeled(spec, completions, references, inputs, where=where)
    write_table(out / "claims.parquet", claims, CLAIMS)
    graded = graded_claims(claims, completions, parse, inputs.get("original"))
    write_table(out / "graded.parquet", graded, GRADED)
    without = len(completions) - claims.select("question", "sample_index").n_unique()
    supported = f": {graded['correct'].mean():.1%} supported" if len(graded) else ""
    return (
        f"read {len(completions)} reports, {without} without a claim: {len(claims)} claims"
        f" ({claims['label'].null_count()} without a label); graded {len(graded)}{supported}"
    )


def labeled(
    spec: ClaimsSpec,
    completions: pl.DataFrame,
    references: Mapping[str, Sequence[str]],
    inputs: Mapping[str, Path],
    *,
    where: str,
) -> pl.DataFrame:
    """Return the CLAIMS table of a shard, sorted by question and sample_index.

    `references` has the reports of the image that was shown, by sample_id. Inputs `spans`, `labels`: tables of plugins.
    """
    completions = completions.sort("sample_id", "sample_index")
    spans = claims_in(spec.spans, completions, inputs, spec.thinking_ends, where=where)
    for sample_id in completions["sample_id"]:
        if not any(reference.strip() for reference in references[sample_id]):
            raise DataError(f"{where}: {sample_id}: its reference report is empty. Expected at least one sentence.")
    rows, claims = [], []
    for completion, of_report in zip(completions.iter_rows(named=True), spans, strict=True):
        question, text = completion["sample_id"], completion["text"]
        shown = {name: completion[name] for name in ("condition", "image_id")}
        for k, (start, end) in enumerate(of_report):
            place = {"start": start, "end": end, "text": text[start:end]}
            name, accepted = claim_id(question, k), tuple(references[question])
            claims.append(Claim(id=name, sample_id=question, references=accepted, **shown, **place))
            index = completion["sample_index"]
            rows.append({"sample_id": name, "question": question, "sample_index": index, **shown, **place})
    module, *arguments = _opened(spec.labels, inputs.get(LABELS))
    labels = module.supported(claims, *arguments)
    if len(labels) != len(claims) or not all(label is None or isinstance(label, bool) for label in labels):
        raise DataError(
            f"{where}: {spec.labels.module}: {len(labels)} labels of {len(claims)} claims, such as {labels[:3]!r}."
            " Expected True, False or None for each."
        )
    return from_rows([{**row, "label": label} for row, label in zip(rows, labels, strict=True)], CLAIMS)


def graded_claims(
    claims: pl.DataFrame, completions: pl.DataFrame, parse: Callable[[str], Parsed], original: Path | None
) -> pl.DataFrame:
    """Return the GRADED table of the claims that have a label, here and in the condition `original`, if that is forced
    here.

    A claim's answer is its text. The confidence that a report states is that of each of its claims.
    """
    labeled = claims.drop_nulls("label")
    if original is not None:
        there = read_table(original / "graded.parquet", GRADED, ("sample_id", "sample_index"))
        labeled = labeled.join(there, on=["sample_id", "sample_index"], how="semi", maintain_order="left")
    stated = {
        (sample_id, index): parse(text).confidence
        for sample_id, index, text in completions.select("sample_id", "sample_index", "text").iter_rows()
    }
    rows = []
    for row in labeled.iter_rows(named=True):
        answer = graded_claim(row["text"], stated[row["question"], row["sample_index"]])
        shown = {name: row[name] for name in ("sample_id", "condition", "sample_index", "image_id")}
        rows.append({**shown, **answer, "correct": row["label"]})
    return from_rows(rows, GRADED).sort("sample_id", "sample_index")


def claims_index(index: pl.DataFrame, replayed: Sequence[Any]) -> pl.DataFrame:
    """Return the FEATURES table of the claims of replayed reports, of whose own table it has the other columns."""
    rows = [
        {
            **report,
            "sample_id": claim_id(report["sample_id"], k),
            "t_close": claim.positions.close,
            "answer_positions": list(claim.positions.answer),
        }
        for report, answer in zip(index.iter_rows(named=True), replayed, strict=True)
        for k, claim in enumerate(answer.claims)
    ]
    return from_rows([{**row, "row": number} for number, row in enumerate(rows)], FEATURES)


def _opened(plugin: ConfiguredPlugin, table: Path | None) -> tuple:
    """Return a plugin, its settings, and the rows of the table that it reads."""
    module = plugins.load_module(plugin.module)
    settings = getattr(module, "Settings", NoSettings).from_spec(plugin.settings, f"{plugin.module}: settings")
    return module, settings, None if table is None else read_file(table).frame
