"""The account of the data, the images that several roles share, and the comparison with the paper."""

from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.reporting.report.provenance import Grid, count
from dualread.schema.columns import DATA

_REPORTING_ROLES = ("test", "ood")
_LISTED = 200
_COUNTS = ("source_rows", "questions", "images", "open", "closed", "pairs")
_PLACE = pl.format("{} / {}", "dataset", "split")


def data(study: Path) -> dict[str, Any] | None:
    """Return the questions of the study and the account of all official rows; None where they were not summarized."""
    folder = study / "data"
    if not (folder / "MANIFEST.json").exists():
        return None
    asked, steps = read_table(folder / "data.parquet", DATA), pl.read_csv(folder / "audit.csv")
    digest, reason = pl.col("manifest_sha256").str.head(12), pl.col("reason").fill_null("")
    return {
        "asked": asked.select(_PLACE, "role", *_COUNTS, digest, reason).rows(),
        "steps": steps.select(_PLACE, "step", "kept", "dropped", "reason").rows(),
        "questions": sum(asked["questions"]),
        "dropped": sum(steps.filter(pl.col("step") != "donors")["dropped"]),
    }


def leakage(study: Path) -> dict[str, Any] | None:
    """Return which images two roles share; None where that was not checked.

    An image that is used for fitting and has another role would have stopped the study.
    """
    folder = study / "leakage"
    if not (folder / "MANIFEST.json").exists():
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
