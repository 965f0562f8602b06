"""The table of data: counts over the rows of every manifest."""

import polars as pl

from tests.workflow.recount.cells import DASH
from tests.workflow.recount.study import Study

_ORDER = ("fit", "stop", "calibration", "validation", "test", "ood")


def cells(study: Study) -> dict[tuple[str, str, str, str], str | None]:
    """Return (data set, split, role, column) -> value, None where the study pairs nothing."""
    found = {}
    for dataset in (study.in_distribution, *study.ood):
        for split in sorted(path.name for path in (study.results / "manifests" / dataset).iterdir()):
            manifest, folder = study.manifest(dataset, split), study.results / "manifests" / dataset / split
            roles = [role for role in _ORDER if role in set(manifest["role"])]
            audit = pl.read_parquet(folder / "audit.parquet")
            of_split = {
                "source_rows": str(audit["kept"][0] + audit["dropped"][0]),
                "manifest_sha256": (folder / "manifest_digest.txt").read_text().strip(),
            }
            counted = {", ".join(roles): {**of_split, **_counts(study, manifest, dataset, split)}}
            if len(roles) > 1:
                counted |= {r: _counts(study, manifest.filter(role=r), dataset, split) for r in roles}
            for role, columns in counted.items():
                found |= {(dataset, split, role, column): value for column, value in columns.items()}
    return found


def _counts(study: Study, rows: pl.DataFrame, dataset: str, split: str) -> dict[str, str | None]:
    pairs = study.pairs(dataset, split)
    types = rows["answer_type"].to_list()
    return {
        "questions": str(len(rows)),
        "images": str(len(set(map(tuple, rows["pixel_sha256s"])))),
        **_clusters(study, rows, dataset, split),
        "open": str(types.count("open")),
        "closed": str(types.count("closed")),
        "pairs": None if pairs is None else str(len(set(pairs["sample_id"]) & set(rows["sample_id"]))),
    }


def _clusters(study: Study, rows: pl.DataFrame, dataset: str, split: str) -> dict[str, str | None]:
    """Return the number of patients, or of what else holds images together; no column where nothing does anywhere."""
    alone = {}
    for name in (study.in_distribution, *study.ood):
        for part in (path.name for path in (study.results / "manifests" / name).iterdir()):
            manifest = study.manifest(name, part)
            alone[name, part] = manifest["cluster_id"].equals(manifest["image_id"])
    if all(alone.values()):
        return {}
    clusters = study.clusters(dataset, split)
    return {"clusters": None if alone[dataset, split] else str(len({clusters[image] for image in rows["image_id"]}))}


def differences(study: Study) -> list[str]:
    """Return a line for every cell of the CSV that is wrong, missing, or there without a reason to be."""
    columns = ("dataset", "split", "role", "column")
    path = study.results / "tables" / "data" / "data.csv"
    rows = {tuple(row[name] for name in columns): row for row in pl.read_csv(path, infer_schema=False).to_dicts()}
    wanted = cells(study)
    found = [f"data {'/'.join(key)}: only on one side" for key in rows.keys() ^ wanted.keys()]
    for key in rows.keys() & wanted.keys():
        value = wanted[key]
        shown = DASH if value is None else value[:12]
        if (rows[key]["value"], rows[key]["printed"]) != (value, shown):
            found.append(f"data {'/'.join(key)}: {rows[key]['value']} ({rows[key]['printed']}), expected {value}")
    return sorted(found)
