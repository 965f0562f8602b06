# Actors that are trained here, from the base of their backbone.
#
# REQUIRES results/<study>/manifests/<id data set>/train/, the base and its facts
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/

from dualread import plugins
from dualread.schema.backbones import TrainActorSpec
from dualread.schema.base import DatasetSplit
from dualread.study.asked import prompt_of
from dualread.training.settings import training_settings


def train_actor(w, part=None):
    actor, engine = STUDY.actors[w.actor], rollouts_of(w.backbone)
    spec = TrainActorSpec(
        **model_of(w.backbone),
        actor=w.actor,
        seed=int(w.seed),
        examples=DatasetSplit(dataset=SHARDS.in_distribution, split="train"),
        training=plugin("training", actor.training),
        reward=plugin("rewards", actor.reward),
        contract=plugin("contracts", plugins.declared("rewards", actor.reward, "CONTRACT")),
        prompt=prompt_of(STUDY, w.actor, SHARDS.in_distribution, "original"),
        settings=training_settings(actor.settings, STUDY.backbones[w.backbone].training),
        rollouts=plugin("rollouts", engine) if engine else None,
    )
    inputs = {
        "base": artifact("actors", w.backbone, SHARDS.base, 0),
        "facts": artifact("training_facts", w.backbone, SHARDS.base, 0) if engine else ARTIFACTS.facts_of(w),
        "manifest": artifact("manifests", SHARDS.in_distribution, "train"),
    }
    return inputs, [entry(of_actor("actors", w), spec)]


def gpus_of_training(w):
    """One per process that trains the actor, and those that do nothing but sample for it."""
    settings = training_settings(STUDY.actors[w.actor].settings, STUDY.backbones[w.backbone].training)
    return settings.get("processes", 1) * (1 + settings.get("rollout_gpus", 0))


def nodes_of(backbone):
    """The machines of a cluster on which an actor of a backbone is trained."""
    return STUDY.backbones[backbone].training.get("nodes", 1)


def on_nodes(n):
    """What SLURM is asked for: several nodes with a task each, which the job starts itself by `srun`."""
    return dict(nodes=n, mpi="srun", tasks=n, tasks_per_gpu=0) if n > 1 else {}


# One rule per environment and number of nodes: what samples for the trainings on a backbone may need another environment.
for rollouts, environment in TRAINING_ENVIRONMENTS.items():
    for nodes in sorted({nodes_of(name) for name in sampled_by(rollouts)}):

        stage(
            train_actor,
            artifact("actors", "{backbone}", "{actor}", "{seed}"),
            part="_".join(filter(None, [rollouts, nodes > 1 and f"{nodes}_nodes"])),
            after=artifact("leakage"),
            only=dict(
                backbone=one_of(name for name in sampled_by(rollouts) if nodes_of(name) == nodes),
                actor=one_of(name for name, actor in STUDY.actors.items() if actor.training),
            ),
            environment=environment,
            resources=dict(model_slots=1, gpu=gpus_of_training, **on_nodes(nodes)),
        )
