"""What a study will cost before it runs: jobs, models loaded, work, CPU seconds, from counts and measured unit costs.

    python benchmarks/budget.py                                                # the embedded study
    python benchmarks/budget.py --configfile workflow/studies/smoke.yaml       # another one
    python benchmarks/budget.py --cores 4

Unit costs (unit_costs.yaml) are those of tiny models on one core of the machine named there; for other models or
machines measure them again: stage_costs.py prints the seconds of a finished study. Counts come from the config alone;
data sets that are not phantoms need their manifests (`snakemake results/<study>/leakage/MANIFEST.json`).
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from dualread.config import resolve
from dualread.plan import Plan
from dualread.training.order import n_steps

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configfile", type=Path, action="append", default=[], help="a study laid over config.yaml")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    config = load([ROOT / "config.yaml", *options.configfile])
    units = yaml.safe_load((HERE / "unit_costs.yaml").read_text())
    schema = dict.fromkeys(("jobs", "models_loaded", "items"), pl.Int64)
    rows = pl.DataFrame(list(costs(config, units)), schema_overrides=schema)
    counts = pl.col("jobs", "models_loaded", "items", "seconds").sum()
    table = rows.group_by("stage", "what", maintain_order=True).agg(counts)
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, float_precision=0):
        print(table)
    total, loads = table["seconds"].sum(), table["models_loaded"].sum()
    print(
        f"study {config['study']}: {table['jobs'].sum()} jobs, {loads} models loaded, {total:.0f} CPU seconds; on "
        f"{options.cores} cores about {total / options.cores / units['busy_share'] / 60:.1f} minutes"
    )
    print(f"unit costs: {units['machine']}")


def load(files: list[Path]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for file in files:
        merged = laid_over(merged, yaml.safe_load(file.read_text()))
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    return resolve(merged, schema, source=", ".join(file.name for file in files), root=ROOT)


def laid_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge as Snakemake does with --configfile: mappings key by key, everything else replaced."""
    both = {key: value for key, value in changes.items() if isinstance(value, dict) and isinstance(base.get(key), dict)}
    return {**base, **changes, **{key: laid_over(base[key], value) for key, value in both.items()}}


def costs(config: Mapping[str, Any], units: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one row a stage and job kind: jobs, models loaded, items and CPU seconds of all backbones and seeds."""
    plan, start = Plan(config), units["start"]
    for name, backbone in config["backbones"].items():
        if recipe := backbone["source"].get("pretrain"):
            seen = recipe["training"]["steps"] * recipe["training"]["images_per_step"]
            yield row("pretrain_base", "images", 1, 1, seen, start["model"] + seen * units["pretrain_image"])
        for actor in plan.answering:
            n_seeds = len(plan.seeds(name, actor))
            for one in of_actor(config, plan, units, actor):
                yield {key: value * n_seeds if isinstance(value, int | float) else value for key, value in one.items()}


def of_actor(config: Mapping[str, Any], plan: Plan, units: Mapping[str, Any], actor: str) -> Iterator[dict[str, Any]]:
    entry, start = config["actors"][actor], units["start"]
    if "training" in entry:
        settings = entry["settings"]
        asked, prompts = questions(config, (plan.in_distribution, "train")), settings["prompts_per_step"]
        steps = settings.get("steps") or n_steps(asked, settings["passes"], prompts)
        completions = steps * prompts * settings["group_size"]
        seconds = start["training"] + completions * units["train_completion"][entry["training"]]
        yield row("train_actor", entry["training"], 1, 1, completions, seconds)
    yield row("generate", "start", 1, 1, 0, start["model"])
    for shard in plan.generated(actor):
        asked = plan.asked(actor, shard)
        kind = kind_of(asked, is_view=len(shard) > 3)
        n = questions(config, shard) * asked.get("decoding", {}).get("n_samples", 1)
        yield row("generate", kind, 0, 0, n, n * units["generate"][kind])
    if plan.replayed(actor):
        n = sum(questions(config, shard) for shard in plan.replayed(actor))
        yield row("replay", "answers", 1, 1, n, start["model"] + n * units["replay_answer"])
    n_shards, methods = len(plan.shards(actor)), plan.methods_of(actor)
    yield row("grade", "shards", 1, 0, n_shards, start["plain"] + n_shards * units["grade_shard"])
    readers = [config["methods"][method]["reader"] for method in methods]
    fits = sum(units["fit"].get(reader, units["fit"]["other"]) for reader in readers)
    yield row("fit_readers", "methods", 1, 0, len(methods), start["plain"] + fits)
    for stage in ("score_answers", "compute_metrics", "measure_costs"):
        yield row(stage, "methods", 1, 0, len(methods), start["plain"] + len(methods) * units[stage])


def kind_of(asked: Mapping[str, Any], *, is_view: bool) -> str:
    """Return what a shard's generation is, a key of the unit costs."""
    if "choices" in asked:
        return next(iter(asked["choices"]))
    if asked["decoding"]["n_samples"] > 1:
        return "samples"
    return "replies" if is_view else "answers"


def questions(config: Mapping[str, Any], shard: tuple[str, ...]) -> int:
    """Return how many questions a shard has; under a donor's image no more than these."""
    dataset, split = shard[:2]
    if phantom := config["datasets"][dataset]["source"].get("phantom"):
        hospital = config["phantoms"][phantom]
        return hospital["images"][split] * hospital["questions_per_image"]
    manifest = ROOT / "results" / config["study"] / "manifests" / dataset / split / "manifest.parquet"
    if not manifest.exists():
        raise SystemExit(f"{manifest}: not there yet. Make the manifests first; see --help.")
    return pl.scan_parquet(manifest).select(pl.len()).collect().item()


def row(stage: str, what: str, jobs: int, models_loaded: int, items: int, seconds: float) -> dict[str, Any]:
    counts = {"jobs": jobs, "models_loaded": models_loaded, "items": items}
    return {"stage": stage, "what": what, **counts, "seconds": seconds}


if __name__ == "__main__":
    main()
