"""What a study's config implies: who answers what, what is asked about the answers, which readers read which of it.

Pure functions of the config, which `dualread.study.config.resolve` has checked; no paths and no files. The rules turn
them into jobs. A shard is (data set, split, condition); a view of it is (data set, split, condition, view).
"""

from collections.abc import Mapping
from typing import Any

from dualread import plugins
from dualread.models import prompts

Shard = tuple[str, str, str]
ShardOrView = tuple[str, ...]


class Plan:
    """The plan of one study.

    Attributes:
        in_distribution: The data set that actors and readers are fitted on.
        base: The actor that is the backbone as it comes.
        answering: Actors that a method reads; nobody waits for the answers of others.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._datasets, self._actors, self._methods = config["datasets"], config["actors"], config["methods"]
        self._conditions, self._views = config["conditions"], config.get("views", {})
        self.in_distribution = next(name for name, dataset in self._datasets.items() if dataset.get("id"))
        self.base = next(name for name, actor in self._actors.items() if not {"training", "checkpoints"} & set(actor))
        self.answering = [actor for actor in self._actors if self.methods_of(actor)]

    # --- Actors and methods

    def seeds(self, backbone: str, actor: str) -> list[int]:
        """Return the seeds of an actor: those of its backbone, or of the study; the base has the one seed 0."""
        return [0] if actor == self.base else self._config["backbones"][backbone].get("seeds", self._config["seeds"])

    def rows(self, table: str) -> list[str]:
        """Return the methods that a table shows: all, those `without` some, or exactly those that its entry lists."""
        entry = self._config["tables"][table]
        return entry.get("methods") or [name for name in self._methods if name not in entry.get("without", [])]

    def contrasts(self) -> list[dict[str, Any]]:
        """Return what is compared: the study's contrasts, and a table's `method` with each other row of the table.

        Keys: name, method, baselines, datasets (the means ood6 and ood_ccg among them), split; metrics where not all.
        """
        means = ["ood6", "ood_ccg"]
        named = [
            {
                **{"name": name, "method": entry["method"], "baselines": [entry["baseline"]]},
                **{"datasets": [self.in_distribution, *means], "split": "test"},
                **{key: entry[key] for key in ("datasets", "split", "metrics") if key in entry},
            }
            for name, entry in self._config.get("contrasts", {}).items()
        ]
        of_tables = [
            {
                **{"name": name, "method": table["method"]},
                "baselines": [method for method in self.rows(name) if method != table["method"]],
                **{"datasets": [*self.shown(name), *means], "split": "test"},
            }
            for name, table in self._config["tables"].items()
            if "method" in table
        ]
        return named + of_tables

    def shown(self, table: str) -> list[str]:
        """Return the data sets that a table shows: all, or those that its entry lists."""
        return [name for name in self._datasets if name in self._config["tables"][table].get("datasets", [name])]

    def shown_seeds(self, table: str, backbone: str) -> list[int]:
        """Return the seeds that the means of a table run over: all of the backbone's, or those that its entry lists."""
        seeds = self._config["backbones"][backbone].get("seeds", self._config["seeds"])
        return [seed for seed in seeds if seed in self._config["tables"][table].get("seeds", [seed])]

    def contract(self, actor: str) -> str:
        """Return the form of the actor's completions: what the config says, or what its reward asks for."""
        entry = self._actors[actor]
        rewarded = plugins.declared("rewards", entry["reward"], "CONTRACT") if "reward" in entry else None
        return entry.get("contract") or rewarded or "single"

    def methods_of(self, actor: str) -> list[str]:
        """Return the methods that read the actor's answers, parents before their children."""
        return [name for name, method in self._methods.items() if method["actor"] == actor]

    def parents(self, method: str) -> dict[str, str]:
        """Return the methods that a method builds on, by role."""
        return self._methods[method].get("parents", {})

    def reads(self, method: str, what: str) -> Any:
        """Return what the reader, or one that it builds on, declares as `what`; None or empty where none does.

        Args:
            method: A method.
            what: FEATURES or FITTED_ON, see `dualread.readers.base`.
        """
        own = plugins.declared("readers", self._methods[method]["reader"], what)
        found = (self.reads(parent, what) for parent in self.parents(method).values())
        return own or next((value for value in found if value), None)

    def fitted_shard(self, method: str) -> Shard:
        """Return the answers that a reader is fitted on (where on none: those that describe how states were read)."""
        return (self.in_distribution, self.reads(method, "FITTED_ON") or "train", "original")

    def views_of(self, method: str, step: str) -> list[str]:
        """Return the views that a method's reader reads when it is fitted (`step` "fit") or scores ("score")."""
        reader = self._methods[method]["reader"]
        when, fitted = (plugins.declared("readers", reader, what) for what in ("VIEWS", "FITTED_ON"))
        reads = when == "score" or (when == "fit" and step == "fit")
        return self._methods[method].get("views", []) if reads and (step == "score" or fitted) else []

    # --- Shards and views

    def shards(self, actor: str) -> list[Shard]:
        """Return everything that the actor answers; the training split only where a reader is fitted on it."""
        on_train = any(self.reads(method, "FITTED_ON") == "train" for method in self.methods_of(actor))
        return [
            (name, split, condition)
            for name, dataset in self._datasets.items()
            for split in dataset["splits"]
            for condition in self._conditions
            if self._is_asked(actor, name, split, condition)
            and (split != "train" or (on_train and name == self.in_distribution and not self._is_control(condition)))
        ]

    def reported(self, actor: str) -> list[Shard]:
        """Return the shards that get confidences: all but those of the training split."""
        return [shard for shard in self.shards(actor) if shard[1] != "train"]

    def scored(self, method: str) -> list[Shard]:
        """Return the shards that the method has confidences on: no views are taken under a control."""
        of_actor = self.reported(self._methods[method]["actor"])
        reads_views = self.views_of(method, "score")
        return [shard for shard in of_actor if not (reads_views and self._is_control(shard[2]))]

    def views(self, actor: str) -> list[ShardOrView]:
        """Return everything that the actor is asked or shown about its answers, in the order of the config."""
        wanted = set()
        for method in self.methods_of(actor):
            wanted |= {(*shard, view) for view in self.views_of(method, "score") for shard in self.scored(method)}
            wanted |= {(*self.fitted_shard(method), view) for view in self.views_of(method, "fit")}
        return [(*shard, view) for shard in self.shards(actor) for view in self._views if (*shard, view) in wanted]

    def generated(self, actor: str) -> list[ShardOrView]:
        """Return the shards and views that generation makes, each after those that it is about."""
        own = [shard for shard in self.shards(actor) if "completions" not in self._conditions[shard[2]]]
        return [*own, *(view for view in self.views(actor) if not self._gives_states(view))]

    def replayed(self, actor: str) -> list[ShardOrView]:
        """Return the shards and views that replay makes; none where no method reads states."""
        reads_states = any(self.reads(method, "FEATURES") for method in self.methods_of(actor))
        own = self.shards(actor) if reads_states else []
        return [*own, *(view for view in self.views(actor) if self._gives_states(view))]

    # --- What a stage is told

    def asked(self, actor: str, shard: ShardOrView) -> dict[str, Any]:
        """Return the part of a spec that says what is shown and asked, the same for generation and replay.

        Keys: dataset, split, condition, image, prompt; decoding or choices; completions, shows, places_answer where
        `dualread.stages.generate` and `replay` need them.
        """
        dataset, split, condition = shard[:3]
        entry, view = self._conditions[condition], self._views.get(shard[3], {}) if len(shard) > 3 else {}
        prompt = self.prompt(actor, dataset, condition, *shard[3:])
        spec = {
            **{"dataset": dataset, "split": split, "condition": "/".join(shard[2:])},
            **{"image": entry["image"], "prompt": prompt},
        }
        if view and "{ANSWER}" in prompts.template(prompt["name"]):
            spec["places_answer"] = {"contract": self.contract(actor)}
        if "choices" in view:
            return {**spec, "choices": view["choices"]}
        budget = {key: value for key, value in self._actors[actor].items() if key == "max_completion_tokens"}
        own = {**(entry.get("decoding") or self._config["generation"]["decoding"]), **budget}
        spec["decoding"] = view.get("decoding") or own
        if "image" in view:
            return {**spec, "image": view["image"], "shows": entry["image"], "completions": {"condition": condition}}
        return {**spec, "completions": {"condition": entry["completions"]}} if "completions" in entry else spec

    def prompt(self, actor: str, dataset: str, condition: str, view: str | None = None) -> dict[str, str]:
        """Return the prompt of the first that names one: view, actor (its own format), condition, data set."""
        entries = (self._views.get(view or "", {}), self._actors[actor], self._conditions[condition])
        name = next(entry["prompt"] for entry in (*entries, self._datasets[dataset]) if "prompt" in entry)
        return {"name": name, "file": f"models/prompts/{name}.txt"}

    def shows_donors(self, condition: str) -> bool:
        """Return whether the condition shows the donor's image."""
        return self._conditions[condition]["image"] == "donor"

    def has_pairs(self, dataset: str, split: str) -> bool:
        """Return whether the questions of a split have same-question donors."""
        return split in self._datasets[dataset].get("pairing", {}).get("splits", [])

    def hub_files(self, dataset: str) -> list[str]:
        """Return the patterns of the files that the splits of a data set need of the hub's repository."""
        entry = self._datasets[dataset]
        needed = plugins.declared("datasets", entry["loader"], "HUB_FILES") or {}
        return sorted({pattern for split in entry["splits"] for pattern in needed[split]})

    def _is_asked(self, actor: str, dataset: str, split: str, condition: str) -> bool:
        entry = self._conditions[condition]
        chosen = {"actors": actor, "datasets": dataset, "splits": split}
        is_chosen = all(value in entry[key] for key, value in chosen.items() if key in entry)
        return is_chosen and (not self.shows_donors(condition) or self.has_pairs(dataset, split))

    def _is_control(self, condition: str) -> bool:
        return "control" in self._conditions[condition]

    def _gives_states(self, view: ShardOrView) -> bool:
        return "image" in self._views[view[3]]
