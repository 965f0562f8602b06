# Actors that are trained here, from the base of their backbone.
#
# REQUIRES results/<study>/manifests/<id data set>/train/, the base and its facts
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/


def on_nodes(n):
    """What SLURM is asked for: several nodes with a task each, which the job starts itself by `srun`."""
    return dict(nodes=n, mpi="srun", tasks=n, tasks_per_gpu=0) if n > 1 else {}


# One rule per environment and number of nodes: what samples for the trainings on a backbone may need another environment.
for (rollouts, nodes), backbones in SHARDS.trainings().items():

    stage(
        ARTIFACTS.train_actor,
        ARTIFACTS.of_actor("actors", ANY),
        part="_".join(filter(None, [rollouts, nodes > 1 and f"{nodes}_nodes"])),
        after=ARTIFACTS.at("leakage"),
        only=dict(
            backbone=one_of(backbones), actor=one_of(name for name, actor in STUDY.actors.items() if actor.training)
        ),
        environment=TRAINING_ENVIRONMENTS[rollouts],
        resources=dict(model_slots=1, gpu=ARTIFACTS.gpus_of_training, **on_nodes(nodes)),
    )
