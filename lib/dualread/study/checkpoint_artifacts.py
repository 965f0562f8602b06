"""What the checkpoints of a study are made from: bases, trained and copied actors, and what is known of each."""

from typing import Any

from dualread import plugins
from dualread.schema.backbones import (
    AdapterSpec,
    CopyCheckpointSpec,
    PretrainBaseSpec,
    ProbeCheckpointSpec,
    TrainActorSpec,
)
from dualread.schema.base import DatasetSplit, Repository
from dualread.study.artifact_paths import ArtifactPaths
from dualread.study.asked import configured, plugin, prompt_of
from dualread.study.jobs import Description
from dualread.training.settings import training_settings


def _repository_of(place: Any) -> Repository | None:
    return Repository(hub=place.hub, revision=place.revision) if place and place.hub else None


class CheckpointArtifacts(ArtifactPaths):
    """The artifacts that are models, or experiments with them."""

    def pretrain_base(self, w: Any) -> Description:
        """The base of a backbone that is pretrained here, by its recipe."""
        recipe = self._source(w).pretrain
        pool, sizes = recipe.pool, recipe.architecture.model_dump(exclude={"name"})
        spec = PretrainBaseSpec(
            **self._model_of(w.backbone),
            seed=recipe.seed,
            pool=configured("corpora", pool.name, pool.settings),
            architecture=configured("architectures", recipe.architecture.name, sizes),
            training=recipe.training,
            reported=recipe.report,
        )
        manifest = self.at("manifests", pool.dataset, "train") if pool.dataset else None
        return {}, [self.entry(self.of_actor("actors", w), spec, manifest=manifest)]

    def copy_checkpoint(self, w: Any) -> Description:
        """A whole checkpoint, or an adapter with its base, which by default is the backbone."""
        source, model = self._source(w), self._model_of(w.backbone)["model"]
        adapter = source.adapter
        checkpoint = source.base if adapter else source
        repository = _repository_of(checkpoint)
        inputs = {"source": checkpoint.folder if checkpoint and not repository else None}
        spec = CopyCheckpointSpec(model=model, repository=repository)
        if adapter:
            base = (checkpoint or self._study.backbones[w.backbone].source).hub
            from_hub = _repository_of(adapter)
            spec = spec.model_copy(update={"adapter": AdapterSpec(repository=from_hub, base=base)})
            inputs["adapter"] = None if from_hub else adapter.folder
            inputs["base"] = None if checkpoint else self._base(w.backbone)
        return {}, [self.entry(self.of_actor("actors", w), spec, **inputs)]

    def probe_checkpoint(self, w: Any, rollouts: str | None = None) -> Description:
        """The facts of a checkpoint; with `rollouts`, where that opens it to sample for trainings."""
        spec = ProbeCheckpointSpec(
            **self._model_of(w.backbone), rollouts=plugin("rollouts", rollouts) if rollouts else None
        )
        facts = self.of_actor("training_facts" if rollouts else "facts", w)
        return {}, [self.entry(facts, spec, actor=self.of_actor("actors", w))]

    def train_actor(self, w: Any) -> Description:
        """An actor that is trained here, from the base of its backbone."""
        actor: Any = self._study.actors[w.actor]
        dataset = self._shards.in_distribution
        rollouts = self._shards.rollouts_of(w.backbone)
        spec = TrainActorSpec(
            **self._model_of(w.backbone),
            actor=w.actor,
            seed=int(w.seed),
            examples=DatasetSplit(dataset=dataset, split="train"),
            training=plugin("training", actor.training),
            reward=plugin("rewards", actor.reward),
            contract=plugin("contracts", plugins.declared("rewards", actor.reward, "CONTRACT")),
            prompt=prompt_of(self._study, w.actor, dataset, "original"),
            settings=self._training_settings(w),
            rollouts=plugin("rollouts", rollouts) if rollouts else None,
        )
        facts = self.at("training_facts", w.backbone, self._shards.base, 0) if rollouts else self.facts_of(w)
        manifest = self.at("manifests", dataset, "train")
        inputs = {"base": self._base(w.backbone), "facts": facts, "manifest": manifest}
        return inputs, [self.entry(self.of_actor("actors", w), spec)]

    def gpus_of_training(self, w: Any) -> int:
        """Return the number of GPUs of a training: one per process, and those that do nothing but sample for it."""
        settings = self._training_settings(w)
        return settings.get("processes", 1) * (1 + settings.get("rollout_gpus", 0))

    def _training_settings(self, w: Any) -> dict[str, Any]:
        actor: Any = self._study.actors[w.actor]
        return training_settings(actor.settings, self._study.backbones[w.backbone].training)

    def _source(self, w: Any) -> Any:
        """Return where an actor comes from that is not trained here: a recipe, a folder or the hub."""
        if w.actor == self._shards.base:
            return self._study.backbones[w.backbone].source
        actor: Any = self._study.actors[w.actor]
        return actor.checkpoints[w.backbone][int(w.seed)]

    def _base(self, backbone: str) -> str:
        return self.at("actors", backbone, self._shards.base, 0)

    def _model_of(self, backbone: str) -> dict[str, Any]:
        """Return the fields that the spec of every stage has that reads a checkpoint as it is."""
        return {"backbone": backbone, "model": self._study.backbones[backbone].opening()}
