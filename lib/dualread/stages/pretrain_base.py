"""Stage pretrain_base: the base checkpoint of a tiny backbone, pretrained from scratch.

Output: checkpoint/ (weights, tokenizer, chat template, image processor) and train_log.parquet (step, name, value).
"""

from collections.abc import Mapping
from pathlib import Path

from dualread import plugins
from dualread.artifacts.tables import from_rows, write_table
from dualread.models import prompts
from dualread.schema.backbones import PretrainBaseSpec
from dualread.schema.columns import TRAIN_LOG


def compute(spec: PretrainBaseSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Train as the spec says; `manifest` is an input if the images come from a data set."""
    from dualread.models.backbones.checkpoint import Opened
    from dualread.seeding import derive_seed
    from dualread.training.pretraining.exercises import DATA_FILES, TAGS
    from dualread.training.pretraining.loop import pretrain, report, tokenizer_texts

    pool = plugins.load_module(spec.pool.module)
    seed = derive_seed("base", spec.backbone, spec.seed)
    corpus = pool.open_corpus(
        pool.Settings.from_spec(spec.pool.settings, "pool.settings"), inputs.get("manifest"), seed
    )
    pieces = (*prompts.fixed_pieces(Path(file).stem for file in DATA_FILES), *TAGS)
    create = plugins.load_module(spec.architecture.module).create
    model, processor = create(tokenizer_texts(corpus, seed), pieces, spec.architecture.settings, seed)
    opened = Opened.of(model, processor, spec.model)
    log = pretrain(model, opened.encoder, corpus, spec.training, seed)
    summary = report(opened, corpus, step=spec.training.steps, **spec.reported.model_dump(), seed=seed)
    model.save_pretrained(out / "checkpoint")
    processor.save_pretrained(out / "checkpoint")
    write_table(out / "train_log.parquet", from_rows([*log, *summary], TRAIN_LOG), TRAIN_LOG)
    n_parameters = sum(p.numel() for p in model.parameters())
    shares = ", ".join(f"{row['name']} {row['value']:.2f}" for row in summary)
    return f"pretrained {n_parameters:,} parameters on {len(corpus.training)} images; held-out: {shares}"
