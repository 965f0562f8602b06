"""The base checkpoint of a backbone: pretrained here from scratch, or copied from a folder or the hub.

Output: checkpoint/ (weights, tokenizer, chat template, image processor) and train_log.parquet (step, name, value).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins, prompts

LOG_SCHEMA = {"step": pl.Int64, "name": pl.String, "value": pl.Float64}


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Write the base checkpoint that `spec["source"]` names (`pretrain`, `folder` or `hub`)."""
    source = spec["source"]
    if "pretrain" in source:
        return _pretrain(spec, inputs, out)
    return _copy(source, inputs, out)


def _pretrain(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    from dualread.backbones.encode import Encoder
    from dualread.pretraining.loop import corpus, pretrain, report
    from dualread.seeding import derive_seed

    recipe = spec["source"]["pretrain"]
    backbone = plugins.load_module(spec["family"]["module"])
    open_pool = plugins.load_module(recipe["pool"]["module"]).open_pool
    seed = derive_seed("base", spec["backbone"], recipe["seed"])
    pool = open_pool(recipe["pool"]["settings"], inputs.get("manifest"), seed)
    model, processor = backbone.create(corpus(pool, seed), prompts.fixed_pieces(), recipe["architecture"], seed)
    encoder = Encoder(backbone, processor, spec["model"]["max_prompt_tokens"])
    log = pretrain(model, encoder, pool, recipe["training"], seed)
    summary = report(model, encoder, pool, step=recipe["training"]["steps"], **recipe["report"], seed=seed)
    model.save_pretrained(out / "checkpoint")
    processor.save_pretrained(out / "checkpoint")
    pl.DataFrame([*log, *summary], schema=LOG_SCHEMA).write_parquet(out / "train_log.parquet")
    n_parameters = sum(p.numel() for p in model.parameters())
    shares = ", ".join(f"{row['name']} {row['value']:.2f}" for row in summary)
    return f"pretrained {n_parameters:,} parameters on {len(pool.training)} images; held-out: {shares}"


def _copy(source: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    import shutil

    if "hub" in source:
        from huggingface_hub import snapshot_download

        # The checkpoint becomes part of the store, so that whoever pulls a store can run without the hub.
        folder = snapshot_download(
            source["hub"], revision=source["revision"], ignore_patterns=["*.bin", "*.pt", "*.pth", "*.gguf", "*.md"]
        )
    else:
        folder = inputs["source"]
    shutil.copytree(folder, out / "checkpoint", symlinks=False)
    pl.DataFrame(schema=LOG_SCHEMA).write_parquet(out / "train_log.parquet")
    n_files = sum(1 for path in (out / "checkpoint").rglob("*") if path.is_file())
    return f"copied {n_files} files of {source.get('hub', folder)}"
