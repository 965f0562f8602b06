"""What a unit of work takes: the table costs.yaml, also for a backbone and a GPU that were not measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError
from dualread.study.files import laid_over, read

COSTS = Path(__file__).with_name("costs.yaml")


@dataclass(frozen=True, kw_only=True)
class PlannedCost:
    """A row of the table, for one backbone and one GPU."""

    value: float  # seconds per unit, or GB
    per: str  # the unit of a time
    basis: str  # where it was measured, what it was scaled by, or that it was not measured
    row: Mapping[str, Any]  # the row itself


class Costs:
    """The table of measured costs, with a file laid over it whose own times come first."""

    def __init__(self, over: Path | None = None) -> None:
        table, changes = read(COSTS), {} if over is None else read(over)
        self._table, self._measured_on = laid_over(table, changes), table["gpu"]
        for name in ("times", "memory"):
            self._table[name] = [*changes.get(name, []), *table[name]]

    def __getitem__(self, section: str) -> Any:
        return self._table[section]

    def time(
        self, stage: str, what: str, backbone: tuple[str, Mapping[str, Any]] | None = None, engine: str | None = None
    ) -> PlannedCost:
        """Return the seconds per unit of the first row that fits; without a backbone (name, entry), those of a core."""
        rows = [
            row
            for row in self._table["times"]
            if row["stage"] in (stage, "any")
            and row.get("kind", row["per"]) in (what, "any")
            and row.get("engine") in (None, engine)
        ]
        if backbone is None or is_tiny(backbone[1]):
            model = "core" if backbone is None else "tiny"
            row = next(row for row in rows if row["model"] == model)
            return PlannedCost(value=row["seconds"], per=row["per"], basis=row["from"], row=row)
        row, ratio, basis = self._nearest(rows, *backbone)
        if row["per"] == "step":  # takes as long with other models and on other GPUs, as far as we have seen
            return PlannedCost(value=row["seconds"], per="step", basis=row["from"], row=row)
        speed = self._measured_on["tflops"] / self._table["gpu"]["tflops"]
        if speed != 1:
            basis += f"; times {speed:.2g} on {self._table['gpu']['name']}, not measured"
        return PlannedCost(value=row["seconds"] * ratio * speed, per=row["per"], basis=basis, row=row)

    def peak(self, stage: str, name: str, backbone: Mapping[str, Any], n_images: int = 1) -> PlannedCost:
        """Return the GB that a GPU needs for a stage, without a margin, where a question shows up to `n_images`."""
        row, ratio, basis = self._nearest([r for r in self._table["memory"] if r["stage"] == stage], name, backbone)
        gb = row["gb"] * ratio
        if n_images > 1:  # what is there beside the weights grows with the tokens
            gb += (gb - 2e-9 * parameters_of(name, backbone)) * self._further(n_images)
            basis += f"; with {n_images} images per question, not measured"
        return PlannedCost(value=gb, per="GPU", basis=basis, row=row)

    def _further(self, n_images: int) -> float:
        """Return what the images of a question after the first add, as a share of what a question with one takes."""
        return self._table["assumed"]["image_share"] * (n_images - 1)

    def completion_gb(self, name: str, backbone: Mapping[str, Any], n_images: int = 1) -> float:
        """Return the GB that one completion takes while a training learns from it; its question shows `n_images`."""
        rows = [
            {"model": model, "gb": gb, "from": ""}
            for model, gb in self._table["training_memory"]["completion_gb"].items()
        ]
        row, ratio, _ = self._nearest(rows, name, backbone)
        return row["gb"] * ratio * (1 + self._further(n_images))

    def _nearest(self, rows: list[Any], name: str, backbone: Mapping[str, Any]) -> tuple[Any, float, str]:
        """Return the row of the backbone whose number of parameters is nearest, the ratio of both, and the basis."""
        n, measured = parameters_of(name, backbone), self._table["backbones"]
        row = min(
            (row for row in rows if row["model"] in measured), key=lambda row: abs(log(n / measured[row["model"]]))
        )
        ratio = n / measured[row["model"]]
        if abs(ratio - 1) < 0.01:
            return row, 1.0, row["from"]
        return row, ratio, f"not measured: {ratio:.2g} times {row['model']}"


def is_tiny(backbone: Mapping[str, Any]) -> bool:
    """Return whether the workflow trains a backbone from scratch, on a core."""
    return "pretrain" in backbone["source"]


def parameters_of(name: str, backbone: Mapping[str, Any]) -> float:
    """Return the number of parameters of a backbone that comes as a checkpoint."""
    if "size" not in backbone:
        raise ConfigError(
            f"backbones.{name}.size: missing. A plan needs it for every backbone that is not pretrained by the"
            " workflow: copy the entry of a backbone in workflow/studies/paper.yaml, and put in the numbers of the"
            " checkpoint's config.json."
        )
    return backbone["size"]["parameters"]
