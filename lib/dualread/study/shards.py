"""What a study's config implies: who answers what, what is asked about the answers, which readers read which of it.

Pure functions of the config, which `dualread.study.config.resolve` has checked; no paths and no files. The rules turn
them into jobs. A shard is (data set, split, condition); a view of a shard is (data set, split, condition, view).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dualread import plugins
from dualread.evaluation.side_by_side import FIXED_PREFIX
from dualread.readers.declarations import features
from dualread.schema.answers import Image, Service, name_and_settings
from dualread.schema.readers import AskedView, ScoringSpec
from dualread.schema.replay import OF_IMAGE, OF_ONE_IMAGE, OPTIONAL_TENSORS, PassReading
from dualread.schema.study import Config
from dualread.schema.tables import LabeledCondition
from dualread.study.asked import contract_of, shard_spec
from dualread.study.selection import given

Shard = tuple[str, str, str]
ShardOrView = tuple[str, ...]


class StudyShards:
    """The shards of one study and who needs them.

    Actors and readers are fitted on the data set that is `in_distribution`. Methods that are `uncalibrated` give scores
    alone; of their split, a replay says how states are read.
    """

    def __init__(self, config: Config, uncalibrated: Mapping[str, str] | None = None) -> None:
        self._config = config
        entries = {name: "test" for name, method in config.methods.items() if method.uncalibrated}
        self.uncalibrated = {**entries, **(uncalibrated or {})}
        self.in_distribution = next(name for name, dataset in config.datasets.items() if dataset.id)
        # The backbone as it comes; None where all answers are given.
        self.base = next((name for name, actor in config.actors.items() if actor.is_base), None)
        self.given = given(config)
        # Those that a method reads; nothing needs the answers of others.
        self.answering = [actor for actor in config.actors if self.methods_of(actor)]

    # --- Actors and methods

    def seeds(self, backbone: str, actor: str) -> list[int]:
        """Return the seeds of an actor: those of its backbone, or of the study.

        The base, and actors whose answers are given, have the one seed 0.
        """
        one_seed = (self.base, *self.given)
        return [0] if self.checkpoint_of(actor) in one_seed else self._config.seeds_of(backbone)

    def checkpoint_of(self, actor: str) -> str:
        """Return the actor whose checkpoint answers: itself, or the one that it is the same as."""
        return self._config.actors[actor].same_as or actor

    def rollouts_of(self, backbone: str) -> str | None:
        """Return what samples for the trainings on a backbone; None if the trained model itself does."""
        return self._config.backbones[backbone].training.get("rollouts")

    def trainings(self) -> dict[tuple[str | None, int], list[str]]:
        """Return the backbones by what samples for their trainings, and by the number of nodes of each training."""
        backbones: dict[tuple[str | None, int], list[str]] = {}
        for name, backbone in self._config.backbones.items():
            backbones.setdefault((self.rollouts_of(name), backbone.training.get("nodes", 1)), []).append(name)
        return backbones

    def methods_of(self, actor: str) -> list[str]:
        """Return the methods that read the actor's answers, parents before their children."""
        return [name for name, method in self._config.methods.items() if method.actor == actor]

    def fitted_methods(self, actor: str) -> list[str]:
        """Return those of the methods that read the actor's answers whose readers are fitted on them."""
        return [name for name in self.methods_of(actor) if self._config.methods[name].transfer is None]

    def nulls_of(self, actor: str) -> list[str]:
        """Return those of the methods that read the actor's answers that see neither the image nor a state."""
        readers = {method: self._config.methods[method].reader for method in self.methods_of(actor)}
        return [method for method, reader in readers.items() if plugins.declared("readers", reader, "NULL")]

    def with_known_difficulty(self) -> list[str]:
        """Return the actors whose answers to the in-distribution test set nulls judge, if its images are phantoms.

        Only some writers of phantoms tell how hazy each image is; and haze decides about answers, not about claims.
        """
        dataset = self._config.datasets[self.in_distribution]
        if not dataset.source.phantom or "test" not in dataset.splits or dataset.claims is not None:
            return []
        writer = self._config.phantoms[dataset.source.phantom].format
        known = plugins.declared("writers", writer, "IMAGE_NAME") is not None
        return [actor for actor in self.answering if known and self.nulls_of(actor)]

    def parents(self, method: str) -> dict[str, str]:
        """Return the methods that a method builds on, by role; of a transfer, those of the reader that it applies."""
        transfer = self._config.methods[method].transfer
        return self._config.methods[transfer.method if transfer else method].parents

    def reads(self, method: str, what: str) -> Any:
        """Return the FEATURES or FITTED_ON that a method's reader, or one that it builds on, declares; empty if none
        does.
        """
        if what == "FITTED_ON" and (method in self.uncalibrated or self._config.methods[method].transfer):
            return None
        declared = plugins.declared("readers", self._config.methods[method].reader, what)
        inherited = (self.reads(parent, what) for parent in self.parents(method).values())
        return declared or next((value for value in inherited if value), None)

    def features(self, method: str) -> set[str]:
        """Return what the reader of a method, and those that it builds on, read of the replay."""
        entries = (self._config.methods[name] for name in (method, *self._ancestors(method)))
        return {name for entry in entries for name in features(entry.reader, entry.settings)}

    def fitted_shard(self, method: str) -> Shard:
        """Return the answers that a reader is fitted on.

        A reader that is fitted on nothing gets the training split, whose replay describes how states were read.
        """
        split = self.reads(method, "FITTED_ON") or self.uncalibrated.get(method, "train")
        return (self.in_distribution, split, "original")

    def views_of(self, method: str, step: str) -> list[str]:
        """Return the views that a method's reader reads when it is fitted (`step` "fit") or scores ("score")."""
        entry = self._config.methods[method]
        when, fitted = (plugins.declared("readers", entry.reader, what) for what in ("VIEWS", "FITTED_ON"))
        reads = when == "score" or (when == "fit" and step == "fit")
        return (entry.views or []) if reads and (step == "score" or fitted) else []

    def choices_of(self, method: str) -> str | None:
        """Return the view of the choices of each question that a method reads; None if it reads none."""
        asked = {view: self._config.views[view].choices for view in self.scoring_views(method)}
        return next((view for view, choices in asked.items() if choices is not None and choices.options), None)

    def draws_of(self, method: str) -> dict[str, int] | None:
        """Return how often those views draw their image that draw it several times; None if none does."""
        drawn = {view: self._config.views[view].draws for view in self.scoring_views(method)}
        return {view: draws for view, draws in drawn.items() if draws is not None} or None

    def passes_of(self, method: str) -> dict[str, int] | None:
        """Return how many passes over each answer a view takes, of those with a measure; None if there are none."""
        measures = {view: self._config.views[view].measure for view in self.scoring_views(method)}
        return {
            view: plugins.declared("measures", measure.name, "PASSES") or 1
            for view, measure in measures.items()
            if measure is not None
        } or None

    def samples_of(self, method: str) -> dict[str, int]:
        """Return how many completions of its views a method, and those that it builds on, read where not all (`k`)."""
        samples: dict[str, list[int | None]] = {}
        for name in (method, *self._ancestors(method)):
            for view in self.views_of(name, "score"):
                samples.setdefault(view, []).append(self._config.methods[name].settings.get("k"))
        return {view: max(k for k in ks if k) for view, ks in samples.items() if None not in ks}

    def views_of_parents(self, method: str) -> list[str]:
        """Return the views that the readers on which a method builds read to score, besides its own."""
        views = self.views_of(method, "score")
        inherited = [view for parent in self._ancestors(method) for view in self.views_of(parent, "score")]
        return [view for view in dict.fromkeys(inherited) if view not in views]

    def fitting_views(self, method: str) -> list[str]:
        """Return the views of the answers that a method is fitted on: its own, and those of its parents."""
        if self._config.methods[method].transfer:
            return []
        of_parents = self.views_of_parents(method) if self.reads(method, "FITTED_ON") else []
        of_target = self.scoring_views(target) if (target := self.parents(method).get("target")) else []
        return list(dict.fromkeys([*self.views_of(method, "fit"), *of_parents, *of_target]))

    def fitting_cost(self, method: str) -> str | None:
        """Return what views cost that fitting alone reads, per answer on which a method is fitted, as `cost` has it."""
        only = set(self.fitting_views(method)) - set(self.scoring_views(method))
        views = [self._config.views[view] for view in only]
        counts = {
            "t": sum(view.decoding.n_samples * (view.draws or 1) for view in views if view.decoding),
            r"\rho": sum(view.choices is not None for view in views),
            r"\tau": sum(view.gives_states for view in views),
        }
        terms = [f"{'' if n == 1 else n}{symbol}" for symbol, n in counts.items() if n]
        return f"${'+'.join(terms)}$" if terms else None

    def scoring_views(self, method: str) -> list[str]:
        """Return the views of all answers that a method and those that it builds on read to score."""
        return [*self.views_of(method, "score"), *self.views_of_parents(method)]

    def _ancestors(self, method: str) -> list[str]:
        parents = [parent for role, parent in self.parents(method).items() if role != "target"]
        return [*parents, *(above for parent in parents for above in self._ancestors(parent))]

    # --- Shards and views

    def shards(self, actor: str) -> list[Shard]:
        """Return everything that the actor answers; the training split only where a reader is fitted on it.

        Of a data set of reports, conditions force the reports on the original images: others would have other claims.
        """
        on_train = any(self.reads(method, "FITTED_ON") == "train" for method in self.methods_of(actor))
        return [
            (name, split, condition)
            for name, dataset in self._config.datasets.items()
            for split in dataset.splits
            for condition, entry in self._config.conditions.items()
            if (entry.actors is None or actor in entry.actors)
            and (entry.datasets is None or name in entry.datasets)
            and (entry.splits is None or split in entry.splits)
            and (not self.needs_pairs(condition) or self.has_pairs(name, split))
            and (dataset.claims is None or condition == "original" or entry.completions is not None)
            and (split != "train" or (on_train and name == self.in_distribution and not self._is_control(condition)))
        ]

    def reported(self, actor: str) -> list[Shard]:
        """Return the shards that get confidences: all but those of the training split."""
        return [shard for shard in self.shards(actor) if shard[1] != "train"]

    def scored(self, method: str) -> list[Shard]:
        """Return the shards that the method has confidences on.

        No views are taken under a control. The likelihood of a given answer is known on its own image alone. Where no
        image is shown, there are no states of image tokens.
        """
        actor = self._config.methods[method].actor
        reads_views = self.scoring_views(method)
        reads_likelihoods = actor in self.given and self.reads(method, "FEATURES")
        reads_image = any(name in OF_IMAGE or name.startswith(OF_ONE_IMAGE) for name in self.features(method))
        return [
            shard
            for shard in self.reported(actor)
            if not (reads_views and self._is_control(shard[2]))
            and not (reads_likelihoods and self._is_forced(shard))
            and not (reads_image and self._declares(self._config.conditions[shard[2]].image, "NO_IMAGE"))
        ]

    def views(self, actor: str) -> list[ShardOrView]:
        """Return everything that the actor is asked or shown about its answers, in the order of the config."""
        wanted = set()
        for method in self.methods_of(actor):
            wanted |= {(*shard, view) for view in self.scoring_views(method) for shard in self.scored(method)}
            wanted |= {(*self.fitted_shard(method), view) for view in self.fitting_views(method)}
        return [
            (*shard, view) for shard in self.shards(actor) for view in self._config.views if (*shard, view) in wanted
        ]

    def generated(self, actor: str) -> list[ShardOrView]:
        """Return the shards and views that generation makes, each after those that it is about."""
        shards = [shard for shard in self.shards(actor) if not self._is_forced(shard)]
        asked = (view for view in self.views(actor) if not self._gives_states(view))
        return [*shards, *(view for view in asked if self._config.views[view[3]].groups is None)]

    def grouped(self, actor: str) -> list[ShardOrView]:
        """Return the views that say which of the actor's answers mean the same."""
        return [view for view in self.views(actor) if self._config.views[view[3]].groups is not None]

    def replayed(self, actor: str) -> list[ShardOrView]:
        """Return the shards and views that replay makes; none where no method reads states.

        Given answers are not replayed: these are the shards whose likelihoods are read from the responses.
        """
        reads_states = any(self.reads(method, "FEATURES") for method in self.methods_of(actor))
        shards = [shard for shard in self.shards(actor) if not (actor in self.given and self._is_forced(shard))]
        shards = shards if reads_states else []
        return [*shards, *(view for view in self.views(actor) if self._gives_states(view))]

    def pass_reading(self, actor: str, shard: ShardOrView) -> PassReading | None:
        """Return what the pass that makes an actor's answers reads of their states; None if they are replayed.

        That can be greedy answers alone: others are sampled, or forced with another image. Nor can it be where a method
        reads the states of single images, which a replay alone tells apart.
        """
        replay = self._config.replay
        if replay.from_ is None or actor in self.given or len(shard) == 4 or shard not in self.replayed(actor):
            return None
        if not shard_spec(self._config, actor, shard).is_greedy:
            return None
        read = {name for method in self.methods_of(actor) for name in self.features(method)}
        if any(name.startswith(OF_ONE_IMAGE) for name in read):
            return None
        return PassReading(kappa=replay.kappa, middle="h_mid" in read, entropies="token_entropies" in read)

    def keeps_states(self, method: str) -> bool:
        """Return whether a method reads states that the pass keeps which makes the answers."""
        actor, shard = self._config.methods[method].actor, (self.in_distribution, "test", "original")
        return bool(self.features(method)) and self.pass_reading(actor, shard) is not None

    def optional_tensors(self, actor: str) -> tuple[str, ...] | None:
        """Return what the replay of the actor's answers stores only because a method reads it; None if nothing."""
        read = {name for method in self.methods_of(actor) for name in self.features(method)}
        of_images = sorted(name for name in read if name.startswith(OF_ONE_IMAGE))
        return (*(name for name in OPTIONAL_TENSORS if name in read), *of_images) or None

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
            contract=contract_of(self._config, actor, shard[0], shard[2]),
            answer=shard_spec(self._config, actor, shard),
            views=tuple(
                AskedView(
                    name=view,
                    asked=shard_spec(self._config, actor, (*shard, view)),
                    groups=groups.by if (groups := self._config.views[view].groups) else None,
                )
                for view in views
            ),
            spans=claims.spans if (claims := self._config.datasets[shard[0]].claims) else None,
        )

    def needs_pairs(self, condition: str) -> bool:
        """Return whether the condition shows an image that donor pairs name."""
        return self._declares(self._config.conditions[condition].image, "NEEDS_PAIRS")

    def strengths(self) -> tuple[LabeledCondition, ...]:
        """Return what each condition but the original does to its images, and how strongly."""
        strengths = []
        for name, condition in self._config.conditions.items():
            image, settings = name_and_settings(condition.image)
            if name != "original":
                strengths.append(LabeledCondition(name=name, image=image, strength=settings.get("strength")))
        return tuple(strengths)

    def depths(self, methods: Sequence[str]) -> dict[str, float]:
        """Return the depth of the layer (`layer`) that each of some methods reads, of those that read one."""
        layers = {method: self._config.methods[method].settings.get("layer") for method in methods}
        return {method: depth for method, depth in layers.items() if depth is not None}

    def has_pairs(self, dataset: str, split: str) -> bool:
        """Return whether the questions of a split have same-question donors."""
        pairing = self._config.datasets[dataset].pairing
        return pairing is not None and split in pairing.splits

    def has_claims(self, dataset: str) -> bool:
        """Return whether answers to a data set are reports, whose claims are graded and scored."""
        return self._config.datasets[dataset].claims is not None

    def of_reports(self, actor: str) -> list[Shard]:
        """Return the shards of original reports whose claims are listed."""
        return [shard for shard in self.shards(actor) if self.has_claims(shard[0]) and shard[2] == "original"]

    def forced_on_donors(self, actor: str, dataset: str, split: str) -> bool:
        """Return whether an actor's reports on a split are forced on donors' images, too."""
        return (dataset, split, FIXED_PREFIX) in self.shards(actor)

    def hub_files(self, dataset: str) -> list[str]:
        """Return the patterns of the files that the splits of a data set need of the hub's repository."""
        entry = self._config.datasets[dataset]
        needed = plugins.declared("datasets", entry.loader, "HUB_FILES") or {}
        return sorted({pattern for split in entry.splits for pattern in needed[split]})

    def _is_forced(self, shard: Shard) -> bool:
        return self._config.conditions[shard[2]].completions is not None

    def _is_control(self, condition: str) -> bool:
        return self._config.conditions[condition].control is not None

    def _gives_states(self, view: ShardOrView) -> bool:
        return self._config.views[view[3]].gives_states

    def _declares(self, image: Image, constant: str) -> bool:
        return bool(plugins.declared("images", name_and_settings(image)[0], constant))
