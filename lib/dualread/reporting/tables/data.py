"""The data of the study: number of questions, images and donor pairs per split, and the digest of its manifest.

Reproduces the layout of the paper's Table dataset_audit, with the rows of the official file, the pairs and the digest
added. A split with several roles has one line for all of them and one line for each.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dualread.reporting.tables.cells import PrintedTable
from dualread.reporting.tables.entries import DASH, INDENT, UNDEFINED, Code, Float, Line, TableRow
from dualread.schema.tables import Layout

READS = "data"

_BY_ROLE = {
    **{"questions": "QA", "images": "Images", "clusters": "Patients"},
    **{"open": "Open", "closed": "Closed", "pairs": "Pairs"},
}
_COLUMNS = {"source_rows": "Official rows", **_BY_ROLE, "manifest_sha256": "Manifest"}
_SPLITS = ("train", "validation", "test")
_CSV: dict[str, type[pl.DataType]] = dict.fromkeys(
    ("table", "dataset", "split", "role", "column", "value", "printed", "reason"), pl.String
)


def build(data: pl.DataFrame, layout: Layout) -> PrintedTable:
    """Return the table of `data`, a table of stage summarize_data."""
    by_patient = data["clusters"].is_not_null().any()
    heads = [f"{unit}s".capitalize() for unit in dict.fromkeys((layout.units or {}).values()) if unit != "image"]
    columns = {**_COLUMNS, "clusters": " or ".join(heads) or _COLUMNS["clusters"]}
    columns = {name: head for name, head in columns.items() if by_patient or name != "clusters"}
    body: list[Line] = []
    cells: list[dict[str, str | None]] = []
    for dataset in layout.datasets:
        splits = data.filter(pl.col("dataset") == dataset.name).partition_by("split")
        for roles in sorted(splits, key=lambda split: _SPLITS.index(split["split"][0])):
            label = f"{dataset.label.removesuffix('-test')}-{roles['split'][0]}" if len(splits) > 1 else dataset.label
            for k, line in enumerate(_lines(roles.to_dicts())):
                cells += (of_line := _cells(line, columns))
                printed = {cell["column"]: cell["printed"] for cell in of_line}
                *counts, digest = [DASH if text == UNDEFINED else text or "" for text in map(printed.get, columns)]
                names = ["", f"{INDENT}{line['role']}"] if k else [label, line["role"]]
                body.append(TableRow([*names, *counts, Code(digest) if digest else ""]))
    return PrintedTable(
        floats=[
            Float(
                name="data",
                wide=True,
                columns=f"ll{'r' * (len(columns) - 1)}l",
                head=[TableRow(["Dataset", "Role", *columns.values()])],
                body=body,
                caption=_caption(layout, cells, columns.get("clusters")),
            )
        ],
        cells=pl.DataFrame(cells, schema=_CSV),
    )


def _lines(roles: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for all roles of a split together and, if there are several, one for each role."""
    together = {**roles[0], "role": ", ".join(role["role"] for role in roles)}
    for name in _BY_ROLE:  # an image has one role, so numbers of images add up too
        values = [role[name] for role in roles]
        together[name] = None if None in values else sum(values)
    together["reason"] = None if together["pairs"] else roles[0]["reason"]
    of_split = _COLUMNS.keys() - _BY_ROLE.keys()
    split_rows = [{name: value for name, value in role.items() if name not in of_split} for role in roles]
    return [together, *(split_rows if len(split_rows) > 1 else [])]


def _cells(line: Mapping[str, Any], columns: Mapping[str, str]) -> list[dict[str, str | None]]:
    return [
        {
            "table": "data",
            **{name: line[name] for name in ("dataset", "split", "role")},
            "column": column,
            "value": None if line[column] is None else str(line[column]),
            "printed": UNDEFINED if line[column] is None else str(line[column])[:12],
            "reason": line["reason"] if column == "pairs" else None,
        }
        for column in columns
        if column in line
    ]


def _caption(layout: Layout, cells: Sequence[Mapping[str, str | None]], clusters: str | None) -> str:
    sentences = [
        f"Data of study {layout.study}: number of questions (QA) and of distinct images per manifest.",
        "Roles: actors are trained on the whole training split. Of it, fit fits the readers, stop decides when their "
        "fitting stops early, and calibration fits their temperatures. Validation is for selection; test and ood are "
        "only reported.",
        "Pairs: questions that have a donor with the same question. Manifest: the first digits of its digest; data.csv "
        "has all digits, and the reason where a split has no pairs.",
    ]
    if clusters:
        sentences.append(
            f"{clusters}: what roles, donors and all intervals go by where this table counts them, instead of images."
        )
    if any(cell["printed"] == UNDEFINED and cell["column"] == "pairs" for cell in cells):
        sentences.append(f"{DASH}: the study pairs no questions of this split.")
    return " ".join(sentences)
