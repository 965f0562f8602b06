"""What a study's config implies: who answers what, what is asked about the answers, which readers read which of it.

Pure functions of the config, which `dualread.study.config.resolve` has checked; no paths and no files. The rules turn
them into jobs. A shard is (data set, split, condition); a view of a shard is (data set, split, condition, view).
"""

from typing import Any

from dualread import plugins
from dualread.declared.answers import OPTIONAL_TENSORS, Service
from dualread.declared.readers import AskedView, ScoringSpec
from dualread.declared.study import Config
from dualread.study.asked import contract_of, shard_spec
from dualread.study.given import given

Shard = tuple[str, str, str]
ShardOrView = tuple[str, ...]


class StudyShards:
    """The shards of one study and who needs them.

    Attributes:
        in_distribution: The data set that actors and readers are fitted on.
        base: The actor that is the backbone as it comes; None where all answers are given.
        given: Actors whose answers are given.
        answering: Actors that a method reads; nothing needs the answers of others.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.in_distribution = next(name for name, dataset in config.datasets.items() if dataset.id)
        self.base = next((name for name, actor in config.actors.items() if actor.is_base), None)
        self.given = given(config)
        self.answering = [actor for actor in config.actors if self.methods_of(actor)]

    # --- Actors and methods

    def seeds(self, backbone: str, actor: str) -> list[int]:
        """Return the seeds of an actor: those of its backbone, or of the study.

        The base, and actors whose answers are given, have the one seed 0.
        """
        return [0] if actor in (self.base, *self.given) else self._config.seeds_of(backbone)

    def methods_of(self, actor: str) -> list[str]:
        """Return the methods that read the actor's answers, parents before their children."""
        return [name for name, method in self._config.methods.items() if method.actor == actor]

    def nulls_of(self, actor: str) -> list[str]:
        """Return those of the methods that read the actor's answers that see neither the image nor a state."""
        readers = {method: self._config.methods[method].reader for method in self.methods_of(actor)}
        return [method for method, reader in readers.items() if plugins.declared("readers", reader, "NULL")]

    def with_known_difficulty(self) -> list[str]:
        """Return the actors whose answers to the in-distribution test set nulls judge, if its images are phantoms.

        Only some writers of phantoms tell how hazy each image is.
        """
        dataset = self._config.datasets[self.in_distribution]
        if not dataset.source.phantom or "test" not in dataset.splits:
            return []
        writer = self._config.phantoms[dataset.source.phantom].format
        known = plugins.declared("writers", writer, "IMAGE_NAME") is not None
        return [actor for actor in self.answering if known and self.nulls_of(actor)]

    def parents(self, method: str) -> dict[str, str]:
        """Return the methods that a method builds on, by role."""
        return self._config.methods[method].parents

    def reads(self, method: str, what: str) -> Any:
        """Return what the reader of a method, or a reader that it builds on, declares as `what`.

        Args:
            method: A method.
            what: FEATURES or FITTED_ON, see `dualread.readers.base`.

        Returns:
            The declared value; None or empty if none of the readers declares one.
        """
        own = plugins.declared("readers", self._config.methods[method].reader, what)
        found = (self.reads(parent, what) for parent in self.parents(method).values())
        return own or next((value for value in found if value), None)

    def fitted_shard(self, method: str) -> Shard:
        """Return the answers that a reader is fitted on.

        A reader that is fitted on nothing gets the training split, whose replay describes how states were read.
        """
        return (self.in_distribution, self.reads(method, "FITTED_ON") or "train", "original")

    def views_of(self, method: str, step: str) -> list[str]:
        """Return the views that a method's reader reads when it is fitted (`step` "fit") or scores ("score")."""
        entry = self._config.methods[method]
        when, fitted = (plugins.declared("readers", entry.reader, what) for what in ("VIEWS", "FITTED_ON"))
        reads = when == "score" or (when == "fit" and step == "fit")
        return (entry.views or []) if reads and (step == "score" or fitted) else []

    # --- Shards and views

    def shards(self, actor: str) -> list[Shard]:
        """Return everything that the actor answers; the training split only where a reader is fitted on it."""
        on_train = any(self.reads(method, "FITTED_ON") == "train" for method in self.methods_of(actor))
        return [
            (name, split, condition)
            for name, dataset in self._config.datasets.items()
            for split in dataset.splits
            for condition in self._config.conditions
            if self._is_asked(actor, name, split, condition)
            and (split != "train" or (on_train and name == self.in_distribution and not self._is_control(condition)))
        ]

    def reported(self, actor: str) -> list[Shard]:
        """Return the shards that get confidences: all but those of the training split."""
        return [shard for shard in self.shards(actor) if shard[1] != "train"]

    def scored(self, method: str) -> list[Shard]:
        """Return the shards that the method has confidences on.

        No views are taken under a control. The likelihood of a given answer is known on its own image alone.
        """
        actor = self._config.methods[method].actor
        reads_views = self.views_of(method, "score")
        reads_likelihoods = actor in self.given and self.reads(method, "FEATURES")
        return [
            shard
            for shard in self.reported(actor)
            if not (reads_views and self._is_control(shard[2])) and not (reads_likelihoods and self._is_forced(shard))
        ]

    def views(self, actor: str) -> list[ShardOrView]:
        """Return everything that the actor is asked or shown about its answers, in the order of the config."""
        wanted = set()
        for method in self.methods_of(actor):
            wanted |= {(*shard, view) for view in self.views_of(method, "score") for shard in self.scored(method)}
            wanted |= {(*self.fitted_shard(method), view) for view in self.views_of(method, "fit")}
        return [
            (*shard, view) for shard in self.shards(actor) for view in self._config.views if (*shard, view) in wanted
        ]

    def generated(self, actor: str) -> list[ShardOrView]:
        """Return the shards and views that generation makes, each after those that it is about."""
        own = [shard for shard in self.shards(actor) if not self._is_forced(shard)]
        return [*own, *(view for view in self.views(actor) if not self._gives_states(view))]

    def replayed(self, actor: str) -> list[ShardOrView]:
        """Return the shards and views that replay makes; none where no method reads states.

        Given answers are not replayed: these are the shards whose likelihoods are read from the responses.
        """
        reads_states = any(self.reads(method, "FEATURES") for method in self.methods_of(actor))
        own = [shard for shard in self.shards(actor) if not (actor in self.given and self._is_forced(shard))]
        own = own if reads_states else []
        return [*own, *(view for view in self.views(actor) if self._gives_states(view))]

    def optional_tensors(self, actor: str) -> tuple[str, ...] | None:
        """Return what the replay of the actor's answers stores only because a method reads it; None if nothing."""
        read = {name for method in self.methods_of(actor) for name in self.reads(method, "FEATURES") or ()}
        return tuple(name for name in OPTIONAL_TENSORS if name in read) or None

    # --- What a stage is told

    def service(self, backbone: str, actor: str) -> Service:
        """Return the service that gives an actor's answers, and what is asked for besides them."""
        answers, source = self._config.actors[actor].answers, self._config.backbones[backbone].source
        assert answers is not None, f"the answers of {actor} are not given"
        return Service(
            model=source.service or source.hub or backbone,
            log_probs=bool(self.replayed(actor)),
            max_choices=answers.max_choices,
            body=answers.body,
        )

    def scoring(self, method: str, backbone: str) -> ScoringSpec:
        """Return how the method's actor is asked where the method scores: what its reader depends on."""
        actor, shard = self._config.methods[method].actor, self.fitted_shard(method)
        opened = self._config.backbones[backbone]
        views = self.views_of(method, "score")
        return ScoringSpec(
            model=opened.answering(),
            contract=contract_of(self._config, actor),
            answer=shard_spec(self._config, actor, shard),
            views=tuple(AskedView(name=view, asked=shard_spec(self._config, actor, (*shard, view))) for view in views),
        )

    def shows_donors(self, condition: str) -> bool:
        """Return whether the condition shows the donor's image."""
        return self._config.conditions[condition].image == "donor"

    def has_pairs(self, dataset: str, split: str) -> bool:
        """Return whether the questions of a split have same-question donors."""
        pairing = self._config.datasets[dataset].pairing
        return pairing is not None and split in pairing.splits

    def hub_files(self, dataset: str) -> list[str]:
        """Return the patterns of the files that the splits of a data set need of the hub's repository."""
        entry = self._config.datasets[dataset]
        needed = plugins.declared("datasets", entry.loader, "HUB_FILES") or {}
        return sorted({pattern for split in entry.splits for pattern in needed[split]})

    def _is_asked(self, actor: str, dataset: str, split: str, condition: str) -> bool:
        entry = self._config.conditions[condition]
        choices = ((entry.actors, actor), (entry.datasets, dataset), (entry.splits, split))
        is_chosen = all(chosen is None or value in chosen for chosen, value in choices)
        return is_chosen and (not self.shows_donors(condition) or self.has_pairs(dataset, split))

    def _is_forced(self, shard: Shard) -> bool:
        return self._config.conditions[shard[2]].completions is not None

    def _is_control(self, condition: str) -> bool:
        return self._config.conditions[condition].control is not None

    def _gives_states(self, view: ShardOrView) -> bool:
        return self._config.views[view[3]].image is not None
