"""A small study, whose shards and tables the tests write out by hand."""

from typing import Any

GREEDY = {"temperature": 0.0, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 64}
SAMPLED = GREEDY | {"temperature": 1.0, "n_samples": 8}
EVERY_SPLIT = ["train", "validation", "test"]


def named(**entries):
    """Entries with a label, which nothing here depends on."""
    return {name: {"label": name, **entry} for name, entry in entries.items()}


def trained():
    return {"training": "grpo", "reward": "rlvr", "settings": {}}


def read(actor, reader, **others):
    return {"group": "", "actor": actor, "reader": reader, **others}


def small() -> dict[str, Any]:
    dataset = {"loader": "slake", "source": {"folder": "nowhere"}, "roles": {}, "seed": 0}
    settings = {"dtype": "float32", "attention": "sdpa", "max_prompt_tokens": 9}
    backbone = {"source": {"hub": "owner/name", "revision": "0" * 40}, "settings": settings}
    checkpoints = {"gemma": {43: {"folder": "nowhere"}}}
    return {
        **{"study": "small", "store": "store", "seeds": [17, 29]},
        "machine": {"model_job_memory_gb": 1.0, "vllm": "cpu"},
        "backbones": named(qwen=backbone, gemma={**backbone, "seeds": [43]}),
        "tables": {"all": {}, "main": {"without": ["psr", "p_state"]}, "some": {"methods": ["dualread", "base"]}},
        "datasets": named(
            slake={
                **dataset,
                **{"id": True, "splits": EVERY_SPLIT, "prompt": "shared"},
                "pairing": {"splits": ["test"], "match_on": []},
            },
            pmc={**dataset, "splits": ["test"], "prompt": "option_visible"},
        ),
        "actors": named(
            base={},
            rlvr=trained(),
            own={
                **{"checkpoints": checkpoints, "prompt": "vl_calibration"},
                **{"contract": "dual", "max_completion_tokens": 512},
            },
            unread=trained(),
        ),
        "generation": {"engine": "transformers_engine", "decoding": GREEDY},
        "conditions": {
            "original": {"image": "original"},
            "donor": {"image": "donor"},
            "fixed": {"image": "donor", "completions": "original", "control": True, "actors": ["rlvr"]},
            "shuffled": {"image": "shuffled", "control": True, "datasets": ["pmc"]},
        },
        "views": {
            "p_true": {"prompt": "p_true", "choices": {"words": ["Yes", "No"]}},
            "samples": {"decoding": SAMPLED},
        },
        "replay": {
            **{"settings": {"batch_size": 1}, "kappa": 0.1},
            "agreement": dict.fromkeys(
                ("max_mean_log_prob_difference", "max_argmax_mismatch_share", "argmax_tolerance"), 0.0
            ),
        },
        "methods": named(
            base=read("base", "verbalized"),
            own=read("own", "verbalized"),
            psr=read("rlvr", "psr"),
            p_state=read("rlvr", "p_state"),
            per=read("rlvr", "p_visual", parents={"state": "p_state"}),
            dualread=read("rlvr", "dualread", parents={"pre": "psr", "post": "per"}),
        ),
        "metrics": {"bootstrap": {"replicates": 0}, "target_risk_percent": []},
    }
