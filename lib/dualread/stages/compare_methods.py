"""Stage compare_methods: every method across seeds with its interval, and differences between methods with p-values.

inputs:  metrics, a collect_metrics artifact; replicates/...: the compute_metrics artifacts that it was collected from
output:  contrasts.parquet
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.artifacts.tensors import read_header, read_tensors
from dualread.errors import ArtifactError
from dualread.evaluation.answer_metrics import STORED
from dualread.evaluation.contrasts import Results, Run, compare
from dualread.evaluation.controls import forced_claims_in
from dualread.evaluation.pair_metrics import COMPARABLE, PairValues
from dualread.evaluation.samples import PAIR_IMAGES
from dualread.schema.columns import CONTRASTS, METRICS
from dualread.schema.metrics import CompareMethodsSpec

_KEYS = ("study", "backbone", "contrast", "dataset", "split", "metric", "method", "baseline")


def compute(spec: CompareMethodsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read metrics and replicates, write contrasts.parquet, and return one line about it."""
    metrics = read_table(inputs["metrics"] / "metrics.parquet", METRICS)
    paths = [path / "replicates.safetensors" for name, path in inputs.items() if name.startswith("replicates/")]
    headers = [(read_header(path), path) for path in paths]
    of_claims = forced_claims_in(metrics)
    files = {(header["backbone"], header["seed"], header["method"]): path for header, path in headers}

    def read(run: Run, name: str) -> np.ndarray | PairValues:
        if run not in files:
            raise ArtifactError(f"compare_methods: no replicates of {'/'.join(map(str, run))}. Add them to the inputs.")
        shard, _, metric = name.rpartition("/")
        if metric not in (*COMPARABLE, *of_claims):
            return read_tensors(files[run], [name])[name]
        images = f"{shard}/{PAIR_IMAGES}"
        tensors = read_tensors(files[run], [name, images])
        values, counts = tensors[name] if metric in of_claims else (tensors[name], 1.0)
        return PairValues(values=values, source=tensors[images][0], donor=tensors[images][1], counts=counts)

    results = Results(metrics, read, spec.members, (*STORED, *COMPARABLE, *of_claims))
    rows = [{"study": spec.study, **row} for row in compare(results, spec.contrasts)]
    write_table(out / "contrasts.parquet", from_rows(rows, CONTRASTS).sort(_KEYS), CONTRASTS)
    n_values = sum("contrast" not in row for row in rows)
    return f"read {len(files)} runs, wrote {n_values} values and {len(rows) - n_values} differences"
