"""What can be checked: data, images that several roles share, the comparison with the paper, controls on phantoms."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.data.questions.roles import OF_UNIT, unit_of
from dualread.evaluation.difficulty import EXCHANGED, OWN
from dualread.reporting.pages import Grid
from dualread.reporting.report.findings import interval
from dualread.reporting.report.provenance import Labels, count
from dualread.reporting.tables.significance import is_significant
from dualread.reporting.tables.values import number, p_text
from dualread.schema.columns import DATA, DIFFICULTY, MANIFEST, Schema
from dualread.store.digest import MANIFEST_NAME

Row = Mapping[str, Any]

_REPORTING_ROLES = ("test", "ood")
_LISTED = 200
_UNIT = pl.col("clusters").cast(pl.String).fill_null("by image")  # what intervals, roles and donors go by
_COUNTS = ("source_rows", "questions", "images", _UNIT, "open", "closed", "pairs")
_PLACE = pl.format("{} / {}", "dataset", "split")
_READINGS = {OWN: "Own image", EXCHANGED: "Another image"}


def read(folder: Path, schema: Schema) -> pl.DataFrame | None:
    """Return the table of an artifact; None where the study has no such artifact."""
    return read_table(folder / f"{schema.name}.parquet", schema) if (folder / MANIFEST_NAME).exists() else None


def data(study: Path) -> dict[str, Any] | None:
    """Return the questions of the study and the account of all official rows; None where they were not summarized."""
    if (asked := read(study / "data", DATA)) is None:
        return None
    steps = pl.read_csv(study / "data/audit.csv")
    digest, reason = pl.col("manifest_sha256").str.head(12), pl.col("reason").fill_null("")
    return {
        "asked": asked.select(_PLACE, "role", *_COUNTS, digest, reason).rows(),
        "steps": steps.select(_PLACE, "step", "kept", "dropped", "reason").rows(),
        "questions": sum(asked["questions"]),
        "dropped": sum(steps.filter(pl.col("step") != "donors")["dropped"]),
    }


def units(study: Path) -> dict[str, str]:
    """Return what is resampled, by data set whose test set is in a study's folder: image, patient, or image set."""
    paths = sorted(study.glob("manifests/*/test/manifest.parquet"))
    return {path.parts[-3]: unit_of(read_table(path, MANIFEST, OF_UNIT)) for path in paths}


def leakage(study: Path) -> dict[str, Any] | None:
    """Return which images two roles share; None where that was not checked.

    An image that is used for fitting and has another role would have stopped the study.
    """
    folder = study / "leakage"
    if not (folder / MANIFEST_NAME).exists():
        return None
    counts = pl.read_parquet(folder / "leakage.parquet")
    pairs = pl.read_parquet(folder / "near_duplicates.parquet")
    reporting = pl.col("role").is_in(_REPORTING_ROLES) & pl.col("other_role").is_in(_REPORTING_ROLES)
    within = pl.col("role") == pl.col("other_role")  # the splits of one role may share images
    total = (pl.col("n_images") + pl.col("n_near")).sum()
    listed = pairs.head(_LISTED).select("image", "role", "other_image", "other_role", "kind", "difference")
    shared = {  # each pair of roles stands once in the table
        (role, other): count(images) + (f" + {count(near)} copies" if near else "")
        for role, other, images, near in counts.iter_rows()
    }
    roles = counts["role"].unique(maintain_order=True).to_list()
    return {
        "roles": roles,
        "counts": [(role, *(shared.get((role, other), "") for other in roles)) for role in roles],
        "pairs": [(*row, f"{difference:.4f}") for *row, difference in listed.iter_rows()],
        "n_pairs": pairs.height,
        "fitted": counts.filter(~within & ~reporting).select(total).item(),
        "reported": counts.filter(reporting).select(total).item(),
    }


def comparison(study: Path) -> dict[str, Any] | None:
    """Return the study's cells beside the paper's; None where they were not compared."""
    path = study / "paper_comparison.csv"
    if not path.exists():
        return None
    cells = pl.read_csv(path, infer_schema=False)
    verdicts = cells.group_by("verdict").len().sort(["len", "verdict"], descending=[True, False])
    names = verdicts["verdict"].to_list()
    shown = [
        (table, *(cells.filter(table=table, verdict=verdict).height for verdict in names))
        for table in cells["table"].unique(maintain_order=True)
    ]
    numbers = {"published", "published_std", "ours", "ours_std", "n_seeds", "difference"}
    right = [k for k, name in enumerate(cells.columns) if name in numbers or name.endswith("_stds")]
    return {
        "verdicts": verdicts.rows(),
        "counts": Grid("Cells of the paper, by table and verdict", ("Table", *names), shown, range(1, len(names) + 1)),
        "cells": Grid(
            "Every cell of the paper beside ours",
            [name.replace("_", " ") for name in cells.columns],
            [[_short(text) for text in row] for row in cells.iter_rows()],
            right,
        ),
    }


def _short(text: str | None) -> str | None:
    """Return a number with four decimals, and any other text as it is."""
    try:
        return text if text is None or "." not in text else f"{float(text):.4f}"
    except ValueError:
        return text


def controls(study: Path, labels: Labels) -> list[Grid]:
    """Return two controls on phantoms, see `described`; none of real images, as nobody knows how hard they are."""
    folders = sorted(path.parent for path in study.glob(f"difficulty/*/{MANIFEST_NAME}"))
    tables = [read_table(folder / "difficulty.parquet", DIFFICULTY) for folder in folders]
    return described(pl.concat(tables), labels) if tables else []


def described(difficulty: pl.DataFrame, labels: Labels) -> list[Grid]:
    """Return, per actor and backbone of a difficulty table, whether tests find what is there, and nothing elsewhere."""
    parts = difficulty.partition_by("actor", "backbone", maintain_order=True)
    return [_grid(part.to_dicts(), labels) for part in parts]


def _grid(rows: Sequence[Row], labels: Labels) -> Grid:
    """Return the AUROC of every method with both readings, the p-values of the differences, and the verdicts."""
    row_of = {(row["reading"], row["metric"], row["method"], row["baseline"]): row for row in rows}
    of_methods = labels.get("methods", {})
    names = {
        kind: labels.get(f"{kind}s", {}).get(rows[0][kind], rows[0][kind]) for kind in ("backbone", "actor", "dataset")
    }
    nulls = list(dict.fromkeys(row["baseline"] for row in rows if row["baseline"]))
    tested = dict.fromkeys(row["method"] for row in rows if row["baseline"])
    methods = [*(name for name in of_methods if name in tested), *(name for name in tested if name not in of_methods)]
    clear, hazy = (row_of[OWN, f"accuracy_{kind}", None, None] for kind in ("clear", "hazy"))
    against = [f"p, {of_methods.get(null, null)}" for null in nulls]
    heads = [f"{name}: {what}" for name in _READINGS.values() for what in ("AUROC", *against, "verdict")]

    def cells(method: str) -> Iterator[str]:
        for reading in _READINGS:
            yield _with_interval(row_of[reading, "auroc", method, None])
            tests = [] if method in nulls else [row_of[reading, "auroc", method, null] for null in nulls]
            yield from map(_p, tests) if tests else [""] * len(nulls)
            is_above = all(is_significant(row) and row["estimate"] > 0 for row in tests)
            yield "" if not tests else "above every null" if is_above else "not above every null"

    difficulty = ("True difficulty", _with_interval(row_of[OWN, "auroc", None, None]), *[""] * (len(heads) - 1))
    return Grid(
        caption=f"{names['backbone']}, {names['actor']}: {_with_interval(clear)} of the answers about"
        f" {clear['n_clusters']} clear images of {names['dataset']} are right, and {_with_interval(hazy)} about"
        f" {hazy['n_clusters']} hazy ones. AUROC of the confidence in the answer itself, and in an equal answer"
        " about another image; True difficulty: of the haze and nothing else. p-values of the differences from the"
        " nulls are adjusted by Holm's method over all methods and nulls",
        columns=("Method", *heads),
        rows=[difficulty, *((of_methods.get(name, name), *cells(name)) for name in [*methods, *nulls])],
        right=range(1, len(heads) + 1),
    )


def _with_interval(row: Row) -> str:
    if row["estimate"] is None:
        return f"undefined ({row['reason']})"
    return f"{number(row['estimate'])}{interval(row)}"


def _p(row: Row) -> str:
    """Return the larger of the p-values for these seeds and for retrained actors; a dash where there is none."""
    if row["p_holm"] is None:
        return "—"
    p = max(row["p_holm"], row["p_holm_retrained"] or 0.0)
    return p_text(p, at_most=bool(row["p_holm_at_most"]) and p == row["p_holm"])
