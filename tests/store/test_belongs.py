"""An input of another run, method or shard is refused before anything is computed."""

import pytest

from dualread.errors import ArtifactError
from dualread.store.belongs import RunIdentity, check_identities

RUN = {"backbone": "tiny", "actor": "rlvr", "seed": 17}
SHARD = {"dataset": "slake", "split": "test", "condition": "original"}
STATE = {"method": "p_state", "module": "readers.p_state", "parents": {}}
PER = {"method": "per", "module": "readers.p_visual", "parents": {"state": STATE}}
TRAIN = {"dataset": "slake", "split": "train"}

GENERATE = {**RUN, "shard": SHARD}
FIT = {**RUN, "reader": PER, "examples": TRAIN}
SCORE = {**RUN, "reader": PER, "shards": [SHARD]}
APPLIED = {"actor": "rlvr", "seed": 17}
METRICS = {**RUN, "method": "per", "splits": {"slake": ["test"]}}


def shard(**changes):
    return {"shard": {**SHARD, **changes}}


# (what is made, the name of the input, what the input is of, what is changed in that)
RIGHT = [
    (GENERATE, "manifest", {"dataset": "slake", "split": "test"}),
    (GENERATE, "actor", {**RUN, "settings": {}}),
    (GENERATE, "facts", {"backbone": "tiny"}),
    ({**GENERATE, "actor": "worded", "same_as": "rlvr"}, "actor", {**RUN, "settings": {}}),
    (GENERATE, "actor", {"backbone": "tiny", "seed": 0}),  # a base has no actor, and its seed is its own
    ({**RUN, **shard(condition="original/p_true")}, "generations", GENERATE),
    ({**RUN, **shard(condition="donor_fixed_prefix", completions="original")}, "generations", GENERATE),
    ({**RUN, **SHARD}, "generations", GENERATE),
    (FIT, "graded", {**RUN, **SHARD, **TRAIN}),
    (FIT, "view/black", {**RUN, **shard(split="train", condition="original/black")}),
    (FIT, "parent/state", {**RUN, "reader": STATE, "examples": TRAIN}),
    (SCORE, "reader", FIT),
    ({**SCORE, "actor": "rlcr", "transfer": {**APPLIED, "method": "per"}}, "reader", FIT),
    ({**METRICS, "method": "elsewhere", "transfer": {**APPLIED, "method": "per"}}, "reader", FIT),
    (SCORE, "features/slake/test/original", GENERATE),
    (SCORE, "view/black/slake/test/original", {**RUN, **shard(condition="original/black")}),
    (METRICS, "predictions", SCORE),
    (METRICS, "graded/slake/test/original", {**RUN, **SHARD}),
    (
        {**METRICS, "actor": "signal", "metrics": {"changed_from": "rlvr"}},
        "compared/slake/test/original",
        {**RUN, **SHARD},
    ),
    (METRICS, "pairs/slake/test", {"dataset": "slake", "split": "test"}),
    ({"ood": []}, "metrics/tiny/rlvr/17/per", METRICS),
]
CHANGES = {
    "backbone": {"backbone": "other"},
    "actor": {"actor": "rlcr"},
    "seed": {"seed": 29},
    "dataset": {"dataset": "vqa_rad"},
    "split": {"split": "validation"},
    "condition": {"condition": "donor"},
    "method": {"method": "psr"},
}


def changed(of, key):
    """The same artifact of something else, wherever its spec says it; None if it does not."""
    if key in of and (key != "seed" or "actor" in of):
        return {**of, **CHANGES[key]}
    for part in ("shard", "examples", "reader"):
        if key in of.get(part, {}):
            return {**of, part: {**of[part], **CHANGES[key]}}
    return None


@pytest.mark.parametrize(("made", "name", "of"), RIGHT, ids=lambda value: value if isinstance(value, str) else "")
def test_what_belongs_passes_and_each_change_is_refused(made, name, of):
    check_identities(RunIdentity.from_spec(made), {name: RunIdentity.from_spec(of), "raw": None}, "here")
    said = [key for key in CHANGES if changed(of, key)]
    if name == "reader":  # what it is fitted on is not what it scores
        said = [key for key in said if key not in ("dataset", "split")]
    if name.startswith("compared/"):  # the other actor may have seeds of its own
        said.remove("seed")
    if name.startswith("parent/"):  # it may be fitted on another split
        said.remove("split")
    assert said
    for key in said:
        with pytest.raises(ArtifactError, match=f"here: its input {name} is of "):
            check_identities(RunIdentity.from_spec(made), {name: RunIdentity.from_spec(changed(of, key))}, "here")


def test_a_reader_with_another_parent_is_refused():
    other = {**FIT, "reader": {**PER, "parents": {"state": {**STATE, "module": "readers.psr"}}}}
    with pytest.raises(ArtifactError, match="its input reader is of parents"):
        check_identities(RunIdentity.from_spec(SCORE), {"reader": RunIdentity.from_spec(other)}, "here")
    with pytest.raises(ArtifactError, match="its input parent/state is of reader"):
        check_identities(
            RunIdentity.from_spec(FIT), {"parent/state": RunIdentity.from_spec({**FIT, "reader": PER})}, "here"
        )
