"""What the tables of a study show: methods, data sets and seeds; and which methods are compared."""

from collections.abc import Sequence
from typing import Any

from dualread import plugins
from dualread.schema.metrics import ContrastSpec
from dualread.schema.study import Config
from dualread.study.references import MEANS

# The backbones of the paper; and our tables that it has too, each with its name in the paper.
PAPER_BACKBONES = frozenset({"qwen3-vl-2b", "medgemma-1.5-4b"})
PAPER_TABLES = {
    "data": "dataset_audit",
    **{name: name for name in ("main", "cascade", "ood_acc", "calib", "reliability", "ccg_ood", "ccg", "ccg_denom")},
    **{name: name for name in ("sc_tradeoff", "channel", "paired")},
}
# A figure shows these against the nulls.
AGAINST_NULLS = ("auroc", "natural_ccg_auc")


class StudyTables:
    """The tables of one study; its config has been checked by `dualread.study.config.resolve`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._in_distribution = next(name for name, dataset in config.datasets.items() if dataset.id)

    def rows(self, table: str) -> list[str]:
        """Return the methods that a table shows: all, those `without` some, or exactly those that its entry lists."""
        entry = self._config.tables[table]
        return entry.methods or [name for name in self._config.methods if name not in (entry.without or [])]

    def only_actor(self, table: str) -> str | None:
        """Return the actor whose metrics are all that a table reads; None if it reads others, or no metrics."""
        actors = {self._config.methods[method].actor for method in self.rows(table)}
        reads_metrics = plugins.declared("tables", table, "READS") is None
        return actors.pop() if reads_metrics and len(actors) == 1 else None

    def in_paper(self) -> list[str]:
        """Return the tables that the paper has too; none if the study has none of the paper's backbones."""
        is_of_paper = not PAPER_BACKBONES.isdisjoint(self._config.backbones)
        return [name for name in self._config.tables if name in PAPER_TABLES] if is_of_paper else []

    def ood_means(self) -> dict[str, tuple[str, ...]]:
        """Return the members of the means over out-of-distribution data sets: of answers, and of donor pairs."""
        ood = tuple(name for name in self._config.datasets if name != self._in_distribution)
        pairings = {name: self._config.datasets[name].pairing for name in ood}
        # What is exchanged by role is another question than what all other images tell.
        whole = tuple(name for name, pairing in pairings.items() if pairing and pairing.role is None)
        return {"ood": ood, "ood_ccg": whole}

    def contrasts(self) -> list[ContrastSpec]:
        """Return what is compared: the study's contrasts, and a table's `method` with every other row of the table."""
        named = [
            ContrastSpec(
                name=name,
                method=entry.method,
                baselines=(entry.baseline,),
                datasets=tuple(entry.datasets or (self._in_distribution, *MEANS)),
                split=entry.split or "test",
                metrics=tuple(entry.metrics) if entry.metrics else None,
            )
            for name, entry in self._config.contrasts.items()
        ]
        of_tables = [
            ContrastSpec(
                name=name,
                method=table.method,
                baselines=tuple(method for method in self.rows(name) if method != table.method),
                datasets=(*self.datasets(name), *MEANS),
                split="test",
            )
            for name, table in self._config.tables.items()
            if table.method is not None
        ]
        return named + of_tables

    def against(self, nulls: Sequence[str], methods: Sequence[str]) -> list[ContrastSpec]:
        """Return the comparisons of each of `methods` with all `nulls`, in distribution: none without nulls."""
        return [
            ContrastSpec(
                name="nulls",
                method=method,
                baselines=tuple(nulls),
                datasets=(self._in_distribution,),
                split="test",
                metrics=AGAINST_NULLS,
            )
            for method in methods
            if nulls
        ]

    def datasets(self, table: str) -> list[str]:
        """Return the data sets that a table shows: all, or those that its entry lists."""
        listed = self._config.tables[table].datasets
        return [name for name in self._config.datasets if listed is None or name in listed]

    def seeds(self, table: str, backbone: str) -> list[int]:
        """Return the seeds that the means of a table run over: all of the backbone's, or those that its entry lists."""
        listed = self._config.tables[table].seeds
        return [seed for seed in self._config.seeds_of(backbone) if listed is None or seed in listed]

    def constants(self, table: str) -> dict[str, Any]:
        """Return the constants of plugins that a table of settings shows, such as {"readers.bicr.OPTIMIZER": "Adam"}.

        They are part of its spec, because what a stage reads through `plugins` is in no digest of code.
        """
        used = {
            "readers": sorted({method.reader for method in self._config.methods.values()}),
            "generation": [self._config.generation.engine],
        }
        shown = plugins.declared("tables", table, "CONSTANTS") or {}
        names = [(family, name, c) for family, constants in shown.items() for name in used[family] for c in constants]
        constants = {f"{family}.{name}.{c}": plugins.declared(family, name, c) for family, name, c in names}
        return {name: value for name, value in constants.items() if value is not None}
