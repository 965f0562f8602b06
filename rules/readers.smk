# Readers: fitted on the answers to the training split (some on validation); then every other answer gets a confidence.
#
# REQUIRES results/<study>/graded/... and features/... of one actor, and the actor
# PROVIDES results/<study>/readers/<backbone>/<actor>/<seed>/<method>/ and predictions/<same>/, which hold no labels


from dualread.declared.base import DatasetSplit
from dualread.declared.answers import Shard
from dualread.declared.readers import FitReadersSpec, MethodReference, ScoreAnswersSpec


def fit_readers(w):
    """A reader sees the labels of the original questions of one split; it divides them by role itself.

    With the actor and `scoring`, its file says all that scoring a new image depends on.
    """

    def inputs(method):
        shard = SHARDS.fitted_shard(method)
        labels = {
            "manifest": artifact("manifests", *shard[:2]),
            "graded": of_actor("graded", w, *shard),
            **{f"view/{view}": of_actor("views", w, *shard, view) for view in SHARDS.fitting_views(method)},
        }
        return {
            **(labels if SHARDS.reads(method, "FITTED_ON") else {}),
            "features": of_actor("features", w, *shard) if SHARDS.reads(method, "FEATURES") else None,
            **{f"parent/{role}": of_actor("readers", w, parent) for role, parent in SHARDS.parents(method).items()},
        }

    return {"actor": checkpoint_of(w), "facts": facts_of(w)}, [
        entry(
            of_actor("readers", w, method),
            FitReadersSpec(
                **reader_of(w, method, "fit"),
                **same_as(w),
                settings=STUDY.methods[method].settings,
                examples=DatasetSplit(**dict(zip(("dataset", "split"), SHARDS.fitted_shard(method)))),
                scoring=SHARDS.scoring(method, w.backbone),
            ),
            **inputs(method),
        )
        for method in SHARDS.methods_of(w.actor)
    ]


def score_answers(w):
    keys = ("dataset", "split", "condition")

    def inputs(method):
        return {
            **(answers(w, ("features",), SHARDS.scored(method)) if SHARDS.reads(method, "FEATURES") else {}),
            **{
                f"view/{view}/{'/'.join(shard)}": of_actor("views", w, *shard, view)
                for view in SHARDS.scoring_views(method)
                for shard in SHARDS.scored(method)
            },
        }

    return answers(w, ("graded",), SHARDS.reported(w.actor)), [
        entry(
            of_actor("predictions", w, method),
            ScoreAnswersSpec(
                **reader_of(w, method, "score"),
                shards=tuple(Shard(**dict(zip(keys, shard))) for shard in SHARDS.scored(method)),
            ),
            reader=of_actor("readers", w, method),
            **inputs(method),
        )
        for method in SHARDS.methods_of(w.actor)
    ]


def reader_of(w, method, step):
    """The fields that the spec of every stage with a reader has."""
    of_parents = tuple(SHARDS.views_of_parents(method)) or None
    views = tuple(SHARDS.views_of(method, step))
    return {**run_of(w), "reader": reference(method), "views": views, "of_parents": of_parents}


def reference(method):
    """A method and, recursively, those that it builds on: the code digest only covers modules that a spec names."""
    above = {role: reference(parent) for role, parent in SHARDS.parents(method).items()}
    return MethodReference(method=method, parents=above, module=module_of("readers", STUDY.methods[method].reader))


for actor in SHARDS.answering:

    stage(
        fit_readers,
        [artifact("readers", "{backbone}", "{actor}", "{seed}", method) for method in SHARDS.methods_of(actor)],
        after=artifact("leakage"),
        actor=actor,
        resources=dict(model_slots=1),
    )

    stage(
        score_answers,
        [artifact("predictions", "{backbone}", "{actor}", "{seed}", method) for method in SHARDS.methods_of(actor)],
        actor=actor,
    )
