"""What a study says about what it refuses: messages.txt has one message per case.

Lists that any new method, plugin or setting changes are not among them; `test_config_refused.py` has these.
"""

from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from dualread.source_snapshot import ROOT as LIBRARY
from dualread.study import workflow as insides
from dualread.study.config import resolve
from dualread.study.files import laid_over, load
from dualread.study.locks import hold
from dualread.study.run import check
from tests import golden
from tests.study.embedded import EMBEDDED, ROOT, merged
from tests.study.test_given import GIVEN

# A checkpoint for one backbone and seed only.
OWN = {"medgemma-tiny": {17: {"hub": "someone/actor", "revision": "0" * 40}}}
AS_CHECKPOINTS = {
    "actors": {"rlvr": {"checkpoints": OWN, "training": None, "reward": None, "settings": None}},
    "figures": None,
}
# What a study without the method `base` leaves out.
NO_BASE = {"controls": None, "base_models": None}
MASKED = {"mode": "token_mask", "clip_max": 2.0}


ELSEWHERE = {"transfer": {"method": "psr", "seed": "next"}}


def of_slake(**changes):
    return {"datasets": {"slake": changes}}


def of_training(**settings):
    return {"backbones": {"qwen3-vl-tiny": {"training": settings}}}


def of_groups(method="sc2", **changes):
    groups = {"by": "entailment", "of": ["samples"], "source": {"hub": "a/b", "revision": "0" * 40}, **changes}
    views = {"sc2": ["samples", "meaning"], "p_true": ["p_true", "meaning"]}[method]
    return {"views": {"meaning": {"groups": groups}}, "methods": {method: {"views": views}}}


def of_condition(**changes):
    return {"conditions": {"mine": {"image": "original", "control": True, **changes}}}


AFTER_THINKING = {
    **{"label": "Thought", "group": "baseline", "actor": "rlvr", "reader": "after_thinking", "cost": "$t+\\rho$"},
    "settings": {"steps": 20, "learning_rate": 1e-3, "l2": 1e-4},
}

# What is laid over the embedded study.
CHANGES = {
    "the end of thinking of an actor that does not think": {"methods": {"thought": AFTER_THINKING}},
    "a prompt of a package that is not installed": of_slake(prompt="their_ward.prompts.asked"),
    "the name of a study is that of the store": {"study": "store"},
    "a store in a home folder": {"store": "~/store"},
    "a store among the results": {"study": "a", "store": "results/a/store"},
    "a type in place of another": {"seeds": ["17"]},
    "a branch in place of a commit": of_slake(source={"phantom": None, "hub": "owner/name", "revision": "main"}),
    "a hub without a revision": of_slake(source={"phantom": None, "hub": "owner/name"}),
    "a null where a label has to be": {"methods": {"psr": {"label": None}}},
    "a text that YAML reads as a truth value": {"methods": {"psr": {"group": True}}},
    "a power of ten that YAML reads as text": {"replay": {"kappa": "5e-5"}},
    "a reader that drops all units": {"methods": {"bicr": {"settings": {"dropout": 1.0}}}},
    "a threshold for a risk that is no percentage": {"metrics": {"target_risk_percent": [100]}},
    "a seed twice": {"seeds": [17, 17]},
    "groups by a column that no table has": {
        "subgroups": ["content_family", "sxe"],
        "datasets": {
            "clinic": {**EMBEDDED["datasets"]["pmc_vqa"], "loader": "table", "settings": {"subgroups": ["sex"]}}
        },
    },
    "a table of groups that the study does not name": {"tables": {"subgroups": {}}},
    "scores of a reader that has to be fitted": {"methods": {"psr": {"uncalibrated": True}}},
    "a method that builds on scores, and a figure of probabilities": {
        "methods": {"sc8": {"uncalibrated": True}},
        "figures": {"reliability": {"methods": ["sc8", "dualread"]}},
    },
    "no data set is in distribution": of_slake(id=False),
    "the data set in distribution has no training split": of_slake(splits=["test"]),
    "roles that do not add up to 1": of_slake(roles={"train": {"fit": 0.5}}),
    "a number of questions of a type that is not asked": of_slake(
        select={"answer_types": ["closed"], "questions": {"open": 3, "closed": 3}}
    ),
    "the digest of a split that is not there": of_slake(id=False, splits=["test"], expect_sha256={"train": "0" * 64}),
    "a phantom and a folder": of_slake(source={"folder": "x"}),
    "a split that is not drawn": {"phantoms": {"slake": {"images": {"train": None}}}},
    "a backbone without a source": {"backbones": {"medgemma-tiny": {"source": {"pretrain": None}}}},
    "no actor is the base": {"actors": {"base": None}, "methods": {"base": None}, "tables": NO_BASE, "figures": None},
    "a table without the data set in distribution": {
        "datasets": {"other": {**EMBEDDED["datasets"]["slake"], "id": False}},
        "tables": {"costs": {"datasets": ["other"]}},
    },
    "a figure of a training that there is not": {"figures": {"training": {"actors": ["rlvr", "base"]}}},
    "a figure of pairs of two actors": {"figures": {"counterfactuals": {"methods": ["dualread", "base"]}}},
    "a figure of contrasts of two actors": {"figures": {"forest": {"methods": ["dualread", "base"]}}},
    "a key that a figure does not read": {"figures": {"forest": {"datasets": ["slake"]}}},
    "a figure of pairs of a data set without donors": {"figures": {"counterfactuals": {"datasets": ["pmc_vqa"]}}},
    "a figure without its methods": {"figures": {"reliability": {"methods": None}}},
    "a parent after its child": {"methods": {"psr": {"parents": {"x": "per"}}}},
    "a parent of another actor": {"methods": {"dualread": {"actor": "base"}}},
    "a parent is missing": {"methods": {"dualread": {"parents": {"post": None}}}},
    "a view that a reader does not read": {"methods": {"psr": {"views": ["samples"]}}},
    "a reader without its view": {"methods": {"sc2": {"views": None}}},
    "a measure of drawn completions": {"views": {"samples": {"measure": {"name": "hidden_core"}}}},
    "a measure without its settings": {
        "views": {"core": {"image": "original", "measure": {"name": "hidden_core", "settings": {"share": 0.4}}}}
    },
    "a target of a reader of validation answers": {"methods": {"sc2": {"parents": {"target": "p_true"}}}},
    "a transfer from the same answers": {"methods": {"psr": {"transfer": {"method": "per"}}}},
    "a transfer with parents and between seeds of two actors": {
        "methods": {"dualread": {"transfer": {"method": "rlcr", "seed": "next"}}}
    },
    "a transfer of a transfer, between seeds that are not there": {
        "methods": {"psr": ELSEWHERE, "p_state": ELSEWHERE},
        "backbones": {"medgemma-tiny": {"seeds": [43]}},
    },
    "a target that comes later": {"methods": {"psr": {"parents": {"target": "per"}}}},
    "groups by embedding without a threshold": of_groups(by="embedding"),
    "groups by a judge without a grader": of_groups(by="judge"),
    "groups by a judge that is not told the question": of_groups(by="judge", grader="meaning", with_question=False),
    "groups of two models": of_groups(by="judge", grader="meaning", service={"model": "m", "folder": "judge"}),
    "groups by an unknown grader": of_groups(by="judge", grader="meening"),
    "groups of answers that a view does not draw": of_groups(of=["p_true"]),
    "groups that a reader cannot use": of_groups("p_true"),
    "groups of other samples": of_groups("sc2", of=["self_probing"]),
    "a view of a donor's image": {"views": {"samples": {"image": "donor"}}},
    "a prompt with a hint outside of a condition": {"actors": {"rlvr": {"prompt": "misled"}}},
    "methods with and without": {"tables": {"main": {"methods": ["psr"]}}},
    "a comparison without its method": {"tables": {"significance": {"method": None}}},
    "a method in a table that compares none": {"tables": {"main": {"method": "psr"}}},
    "a comparison of a method that is not shown": {"tables": {"significance": {"without": ["dualread"]}}},
    "a contrast with itself": {"contrasts": {"rlcr": {"baseline": "dualread"}}},
    "a contrast with the name of a table": {"contrasts": {"paired": {"method": "psr", "baseline": "per"}}},
    "a contrast on the validation set of a mean": {"contrasts": {"visual": {"datasets": ["slake", "ood6"]}}},
    "an actor with two origins": {"actors": {"rlvr": {"checkpoints": OWN}}},
    "an actor without a checkpoint for each seed": AS_CHECKPOINTS,
    "an actor that is the same as one that is the same as another": {
        "actors": {name: {"label": name, "same_as": other} for name, other in (("one", "rlvr"), ("two", "one"))}
    },
    "completions of a condition that has none of its own": of_condition(completions="donor_fixed_prefix"),
    "an engine for rollouts that samples warmer than the loss": of_training(rollouts="vllm", temperature=0.9),
    "an engine for rollouts that samples a part": of_training(rollouts="vllm", top_p=0.9, importance_sampling=MASKED),
    "importance sampling without an engine": of_training(importance_sampling=MASKED),
    "an actor chooses an engine for rollouts": {"actors": {"rlvr": {"settings": {"rollouts": "vllm"}}}},
    "only seeds that there are not": {"only": {"seeds": [17, 18]}},
    "only methods of actors that are left out": {"only": {"actors": ["base"], "methods": ["psr"]}},
    "only a backbone without the only seed": {
        "backbones": {"qwen3-vl-tiny": {"seeds": [17]}, "medgemma-tiny": {"seeds": [29]}},
        "only": {"backbones": ["qwen3-vl-tiny"], "seeds": [29]},
    },
}
# What is laid over the embedded study with given answers of the actor rlvr.
OF_GIVEN = {
    "given answers of an actor that is trained": {"actors": {"dcpo": {"answers": {"folder": "x"}}}},
    "given answers of the base": {"actors": {"base": {"answers": {"folder": "x"}}}},
    "a service runs a backbone whose actors are trained": {
        "backbones": {"qwen3-vl-tiny": {"source": {"pretrain": None, "service": "x"}}}
    },
    "a service and a recipe": {"backbones": {"qwen3-vl-tiny": {"source": {"service": "x"}}}},
    "a backbone without settings": {"backbones": {"qwen3-vl-tiny": {"settings": None}}},
}
# Files that are laid over config.yaml.
FILES = {
    "a file: a list": "- 1",
    "a file: an unknown alias": "a: 1\nb: *netwrok",
    "a file: an entry twice": "study: x\nseeds: [1]\nmethods: {a: 1}\nseeds: [2]",
    "a file: an entry twice inside of others": "a:\n  - {b: {c: 1, 'c': 2}}",
    "a file: mappings in a line": "a: 1\n  b: 2",
    "a file: a list that does not end": "a: [1\nb: 2\n",
    "a file: a tab": "a:\n\tb: 1",
    "a file: not UTF-8": b"a: \xff",
    "a file: an alias of itself": "a: &a [*a]",
    "a file: a seed twice": "seeds: [17, 17]",
}


def of_workflow(found, folder):
    found("an older Snakemake", partial(insides.check_version, "9.26.4"))
    lacks = SimpleNamespace(**dict.fromkeys(set(insides._NEEDED) - {"_prepare_dag"}))
    found("another Snakemake", partial(insides.check_insides, lacks, "9.31.0"))
    complete = SimpleNamespace(**dict.fromkeys(insides._NEEDED))
    found("the library of another checkout", partial(check, folder, complete, "9.27.1"))
    (folder / "taken").touch()
    found("a file where results go", partial(hold, folder / "taken"))
    moved = SimpleNamespace(
        is_main_snakefile=lambda: False, path_modifier=SimpleNamespace(prefix="there/", _prefix_replacements=None)
    )
    found("a module with a prefix", partial(insides.asked_for, SimpleNamespace(modifier=moved), {}))


def test_the_messages(tmp_path):
    found = {}

    def add(name, ask):
        found[name] = golden.message_of(ask, tmp_path, LIBRARY, ROOT)

    for name, changes in CHANGES.items():
        add(name, partial(resolve, merged(EMBEDDED, changes), source="config.yaml"))
    of_given = laid_over(EMBEDDED, {"actors": {"rlvr": GIVEN}, "figures": {"training": None}})
    for name, changes in OF_GIVEN.items():
        add(name, partial(resolve, laid_over(deepcopy(of_given), changes)))
    for name, text in FILES.items():
        file = tmp_path / "study.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        add(name, partial(load, [file], ROOT))
    add("a file: none", partial(load, [tmp_path / "none.yaml"], ROOT))
    of_workflow(add, tmp_path)
    golden.check(Path(__file__).with_name("messages.txt"), found)
