"""The account of the data, the images that several roles share, and the comparison with the paper."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.reporting.report._grid import Grid, count
from dualread.schema.columns import DATA

_REPORTING_ROLES = ("test", "ood")
_LISTED = 200


@dataclass(frozen=True, kw_only=True)
class Data:
    """The questions of a study, and the account of all official rows."""

    asked: Grid
    steps: Grid
    questions: int
    dropped: int


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """Images that two roles share. One that is used for fitting and has another role would have stopped the study."""

    counts: Grid
    pairs: Grid
    n_pairs: int
    fitted: int
    reported: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The study's cells beside the paper's."""

    counts: Grid
    cells: Grid
    verdicts: tuple[tuple[str, int], ...]


def data(study: Path) -> Data | None:
    """Return the questions of the study; None where its data were not summarized."""
    folder = study / "data"
    if not (folder / "MANIFEST.json").exists():
        return None
    asked = read_table(folder / "data.parquet", DATA)
    steps = pl.read_csv(folder / "audit.csv")
    numbers = ("source_rows", "questions", "images", "open", "closed", "pairs")
    rows = [
        (
            f"{row['dataset']} / {row['split']}",
            row["role"],
            *(count(row[name]) for name in numbers),
            row["manifest_sha256"][:12],
            row["reason"] or "",
        )
        for row in asked.iter_rows(named=True)
    ]
    columns = ("Data set / split", "Role", "Official rows", "Questions", "Images", "Open", "Closed", "Donor pairs")
    account = [
        (f"{row['dataset']} / {row['split']}", row["step"], count(row["kept"]), count(row["dropped"]), row["reason"])
        for row in steps.iter_rows(named=True)
    ]
    return Data(
        asked=Grid(
            caption="Questions, images and donor pairs per split",
            columns=(*columns, "Manifest", "Reason for no pairs"),
            rows=rows,
            right=frozenset(range(2, 8)),
            code=frozenset({8}),
        ),
        steps=Grid(
            caption="Rows kept and dropped, step by step",
            columns=("Data set / split", "Step", "Kept", "Dropped", "Rule"),
            rows=account,
            right=frozenset({2, 3}),
        ),
        questions=sum(asked["questions"]),
        dropped=sum(steps.filter(pl.col("step") != "donors")["dropped"]),
    )


def leakage(study: Path) -> Leakage | None:
    """Return which images are shared; None where that was not checked."""
    folder = study / "leakage"
    if not (folder / "MANIFEST.json").exists():
        return None
    counts = pl.read_parquet(folder / "leakage.parquet")
    pairs = pl.read_parquet(folder / "near_duplicates.parquet")
    reporting = pl.col("role").is_in(_REPORTING_ROLES) & pl.col("other_role").is_in(_REPORTING_ROLES)
    within = pl.col("role") == pl.col("other_role")  # the splits of one role may share images
    total = pl.col("n_images") + pl.col("n_near")
    listed = [
        (row["image"], row["role"], row["other_image"], row["other_role"], row["kind"], f"{row['difference']:.4f}")
        for row in pairs.head(_LISTED).iter_rows(named=True)
    ]
    return Leakage(
        counts=_matrix(counts),
        pairs=Grid(
            caption="The pairs of images",
            columns=("Image", "Role", "Other image", "Its role", "Kind", "Difference"),
            rows=listed,
            right=frozenset({5}),
            code=frozenset({0, 2}),
        ),
        n_pairs=pairs.height,
        fitted=counts.filter(~within & ~reporting).select(total.sum()).item(),
        reported=counts.filter(reporting).select(total.sum()).item(),
    )


def _matrix(counts: pl.DataFrame) -> Grid:
    """Return the counts with one row and one column per role. Each pair of roles stands there once."""
    pairs = {(role, other): (images, near) for role, other, images, near in counts.iter_rows()}
    roles = counts["role"].unique(maintain_order=True).to_list()

    def shared(role: str, other: str) -> str:
        images, near = pairs.get((role, other), (None, 0))
        return "" if images is None else count(images) + (f" + {count(near)} copies" if near else "")

    return Grid(
        caption="Images that two roles share with equal pixels, and copies with other pixels; on the diagonal, images "
        "that several data sets or splits of one role share",
        columns=("Role", *roles),
        rows=[(role, *(shared(role, other) for other in roles)) for role in roles],
        right=frozenset(range(1, len(roles) + 1)),
    )


def comparison(study: Path) -> Comparison | None:
    """Return the comparison with the paper; None where the study has none."""
    path = study / "paper_comparison.csv"
    if not path.exists():
        return None
    cells = pl.read_csv(path, infer_schema=False)
    table, verdict = pl.col("table"), pl.col("verdict")
    verdicts = cells.group_by("verdict").len().sort(["len", "verdict"], descending=[True, False])
    names = verdicts["verdict"].to_list()
    shown = [
        (name, *(count(cells.filter(table == name, verdict == verdict_name).height) for verdict_name in names))
        for name in cells["table"].unique(maintain_order=True)
    ]
    numbers = {"published", "published_std", "ours", "ours_std", "n_seeds", "difference"}
    return Comparison(
        counts=Grid(
            caption="Cells of the paper, by table and verdict",
            columns=("Table", *names),
            rows=shown,
            right=frozenset(range(1, len(names) + 1)),
        ),
        cells=Grid(
            caption="Every cell of the paper beside ours",
            columns=[name.replace("_", " ") for name in cells.columns],
            rows=[["—" if text is None else _short(text) for text in row] for row in cells.iter_rows()],
            right=frozenset(k for k, name in enumerate(cells.columns) if name in numbers or name.endswith("_stds")),
        ),
        verdicts=tuple(verdicts.iter_rows()),
    )


def _short(text: str) -> str:
    """Return a number with four decimals, and any other text as it is."""
    try:
        return text if "." not in text else f"{float(text):.4f}"
    except ValueError:
        return text
