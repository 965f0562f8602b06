"""What the tables and figures of a study are made from, and its comparison with the paper."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from dualread import plugins
from dualread.schema.metrics import CompareWithPaperSpec
from dualread.schema.tables import (
    BuildTableSpec,
    DrawFigureSpec,
    FigureLayout,
    Labeled,
    LabeledBackbone,
    LabeledDataset,
    LabeledMethod,
    Layout,
    PreviewTablesSpec,
    StudySettings,
)
from dualread.store.key import public_versions
from dualread.study.artifact_paths import ArtifactPaths
from dualread.study.asked import plugin
from dualread.study.jobs import Description


@cache
def _latex_version() -> str | None:
    if shutil.which("pdflatex") is None:
        return None
    return subprocess.run(["pdflatex", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


class TableArtifacts(ArtifactPaths):
    """The artifacts that people read."""

    def build_table(self, w: Any) -> Description:
        """A table: of what it READS, or of the metrics; or of the study's settings."""
        reads = plugins.declared("tables", w.table, "READS") or "metrics"
        is_of_settings = plugins.declared("tables", w.table, "CONFIG") is not None
        spec = BuildTableSpec(
            table=plugin("tables", w.table),
            settings=self._settings(w.table) if is_of_settings else None,
            layout=None if is_of_settings else self._layout(w.table, reads),
        )
        actor = self._tables.only_actor(w.table)
        source = self.at("metrics_of", actor) if actor else self.at(reads)
        inputs = self._of_groups(self._tables.rows(w.table)) if reads == "subgroups" else {reads: source}
        inputs |= self._tested(self._tables.datasets(w.table))
        return inputs, [self.entry(self.at("tables", w.table), spec)]

    def preview_tables(self, w: Any) -> Description:
        """All tables as LaTeX prints them, where it is installed."""
        inputs = {table: self.at("tables", table) for table in self._study.tables}
        spec = PreviewTablesSpec(latex=_latex_version(), tables=tuple(inputs))
        return inputs, [self.entry(self.at("tables", "preview"), spec)]

    def compare_with_paper(self, w: Any) -> Description:
        """Our numbers beside the paper's."""
        spec = CompareWithPaperSpec(
            study=self._study.study,
            backbones=tuple(self._study.backbones),
            actors={name: method.actor for name, method in self._study.methods.items()},
            **self._tables.ood_means(),
        )
        inputs = {table: self.at("tables", table) for table in self._tables.in_paper()}
        return inputs, [self.entry(self.at("paper_comparison"), spec)]

    def draw_figure(self, w: Any) -> Description:
        """A figure, of what it READS; `layout` holds what is printed besides numbers."""
        figure, reads = self._study.figures[w.figure], plugins.declared("figures", w.figure, "READS")
        shown = {
            "backbones": list(self._study.backbones),
            "actors": [*(figure.actors or ())],
            "methods": [*(figure.methods or ())],
            "datasets": (figure.datasets or [self._shards.in_distribution]) if figure.methods else [],
        }
        conditions, layers, inputs = None, None, {}
        if reads == "metrics":
            shown["actors"] = list(dict.fromkeys(self._study.methods[name].actor for name in shown["methods"]))
            conditions, layers = self._shards.strengths(), self._shards.depths(shown["methods"])
            inputs = {"metrics": self.at("metrics")}
        elif reads == "contrasts":  # beside the nulls of their actor
            actor = self._study.methods[shown["methods"][0]].actor
            shown["methods"] += [null for null in self._shards.nulls_of(actor) if null not in shown["methods"]]
            known = {"difficulty": self.at("difficulty", actor)}
            inputs = {
                **self._tested(shown["datasets"]),
                "contrasts": self.at("contrasts_of", actor),
                **(known if actor in self._shards.with_known_difficulty() else {}),
            }
        elif reads == "subgroups":
            inputs = {**self._tested(shown["datasets"]), **self._of_groups(shown["methods"])}
        elif reads == "train_log":
            inputs = {
                f"train_log/{run.backbone}/{run.actor}/{run.seed}": self.of_actor("actors", run)
                for run in self.runs(shown["actors"])
            }
        else:
            inputs = self._confidences(shown, pairs=reads == "pairs")
        labeled: Any = {
            section: tuple(Labeled(name=name, label=getattr(self._study, section)[name].label) for name in names)
            for section, names in shown.items()
        }
        layout = FigureLayout(study=self._study.study, **labeled, conditions=conditions, layers=layers)
        spec = DrawFigureSpec(figure=plugin("figures", w.figure), layout=layout)
        return inputs, [self.entry(self.at("figures", w.figure), spec)]

    def _of_groups(self, methods: Sequence[str]) -> dict[str, str]:
        """Return the metrics of groups of some methods."""
        runs = ((method, run) for method in methods for run in self.runs([self._study.methods[method].actor]))
        return self.named(("subgroups", *run.names, method) for method, run in runs)

    def _tested(self, datasets: Sequence[str]) -> dict[str, str]:
        """Return the manifests of the test sets of some data sets, which say what is resampled."""
        return self.manifests(shard for shard in self._splits() if shard[0] in datasets and shard[1] == "test")

    def _confidences(self, shown: Mapping[str, Sequence[str]], *, pairs: bool) -> dict[str, str]:
        """Return confidences in the test answers, and the grades of these answers; of one seed only for pairs."""
        conditions, n_seeds = (["original", "donor"], 1) if pairs else (["original"], None)
        shards = [(dataset, "test", condition) for dataset in shown["datasets"] for condition in conditions]
        inputs = {**self.manifests(shards), **(self.pairs(shards) if pairs else {})}
        for backbone in shown["backbones"]:
            for method in shown["methods"]:
                actor = self._study.methods[method].actor
                for seed in self._shards.seeds(backbone, actor)[:n_seeds]:
                    run = (backbone, actor, seed)
                    paths = [("predictions", *run, method), *(("graded", *run, *shard) for shard in shards)]
                    paths += [("claims", *run, *shard[:2]) for shard in shards if self._shards.has_claims(shard[0])]
                    inputs |= self.named(paths)
        return inputs

    def _layout(self, table: str, reads: str) -> Layout:
        """Return what a table prints besides numbers: entries in order, with their labels."""
        study, shards, tables = self._study, self._shards, self._tables
        contrasts = [table] if study.tables[table].method else list(study.contrasts)
        return Layout(
            study=study.study,
            backbones=tuple(
                LabeledBackbone(name=name, label=backbone.label, seeds=tuple(tables.seeds(table, name)))
                for name, backbone in study.backbones.items()
            ),
            methods=tuple(
                LabeledMethod(
                    name=name,
                    readers=self._readers(name),
                    states="generation" if shards.keeps_states(name) else None,
                    fitting=shards.fitting_cost(name),
                    transfer=self._fitted_on(name),
                    **study.methods[name].model_dump(include={"label", "group", "actor", "cost"}),
                )
                for name in tables.rows(table)
            ),
            datasets=tuple(
                LabeledDataset(
                    name=name,
                    label=study.datasets[name].label,
                    id=name == shards.in_distribution,
                    role=pairing.role if (pairing := study.datasets[name].pairing) else None,
                )
                for name in tables.datasets(table)
            ),
            contrasts=tuple(contrasts) if reads == "contrasts" else (),
        )

    def _fitted_on(self, method: str) -> str | None:
        """Return on whose answers the reader of a transfer was fitted."""
        if (transfer := self._study.methods[method].transfer) is None:
            return None
        actor = self._study.actors[self._study.methods[transfer.method].actor].label
        return f"{actor}, another seed" if transfer.seed else actor

    def _readers(self, method: str) -> tuple[str, ...]:
        """Return the reader of a method and, recursively, those that it builds on."""
        parents = {reader for parent in self._shards.parents(method).values() for reader in self._readers(parent)}
        return tuple(sorted({self._study.methods[method].reader, *parents}))

    def _settings(self, table: str) -> StudySettings:
        """Return what a table of settings prints."""
        config = self._study.as_mapping()
        trained_by = sorted({actor.training for actor in self._study.actors.values() if actor.training is not None})
        return StudySettings(
            study=self._study.study,
            config={name: config[name] for name in plugins.declared("tables", table, "CONFIG")},
            order={name: tuple(config[name]) for name in plugins.declared("tables", table, "ORDERED")},
            software=public_versions(plugins.declared("tables", table, "SOFTWARE")),
            trainings=tuple(plugin("training", name) for name in trained_by),
            constants=self._tables.constants(table),
        )
