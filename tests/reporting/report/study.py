"""A small finished study on disk: a store, tables, a figure, audits; one upstream entry is not in the store."""

import json

import polars as pl
from PIL import Image

from dualread.data.questions.leakage import count, shared_pictures
from dualread.reporting.tables.cells import PrintedTable
from dualread.reporting.tables.entries import Float, TableRow
from dualread.store.key import Action
from dualread.store.results import link
from dualread.store.store import Store
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import PAPER_METHODS, data_rows, layout

RECORD = {"host": "node-1", "cpu": "A CPU", "peak_memory_mb": 100.0, "written": "2026-01-02T03:04:05+00:00"}
CELLS = """table,backbone,dataset,subset,method,metric,mean,std,n_seeds,printed,bold,reason
main,tiny,slake,all,psr,auroc,0.75,0.1,2,.750±.100†,true,
main,tiny,slake,all,psr,brier,,,2,---,false,"seed 17: one class only"
"""
_LINES = {"head": [TableRow(["a", "b"])], "body": [TableRow(["x", "<b>5</b>"])]}
MINE = PrintedTable(floats=[Float(name="mine", wide=False, columns="lr", caption="", **_LINES)], cells=pl.DataFrame())
_MEASURED = {"image_tokens": 1200, "image_tokens_that_images_change": 1180, "layers": 28, "width": 64}
FACTS = {
    "facts": {"completion_type": 1, "images_once": False, "shared": "prompt", "tree": True},
    "found": {**_MEASURED, "token_types": ["t"]},
}
COMPARED = """table,backbone,dataset,subset,method,metric,published,ours,n_seeds,difference,verdict,reason
main,tiny,slake,all,psr,auroc,0.9,0.75,2,-0.15,far,
main,tiny,slake,all,per,auroc,0.9,,0,,not measured,no such method
"""


class Maker:
    """Publishes entries and links them into the study `mine`."""

    def __init__(self, root):
        self.root = root
        self.study = root / "results/mine"
        self.store = Store(root / "results/store")

    def make(self, stage, place, files, *, spec=None, inputs=(), seconds=1.0, code="c" * 64):
        action = Action(
            stage=stage, code=code, spec={"place": place, **(spec or {})}, python="3.11",
            inputs={f"input/{k}": made.digest for k, made in enumerate(inputs)}, packages={"polars": "2.1.0"},
        )  # fmt: skip
        keys = {f"input/{k}": made.key for k, made in enumerate(inputs)}
        record = {**RECORD, "seconds": seconds, "output": f"results/mine/{place}", "summary": "made"}
        with self.store.scratch(action.key) as out:
            for name, content in files.items():
                content(out / name) if callable(content) else (out / name).write_text(content)
            manifest = self.store.publish(out, action, input_keys=keys, record=record)
        link(self.store.entry(manifest.key), manifest, self.study / place)
        return manifest


def table_files(name, table, cells="a\n"):
    """The files of a table's artifact, by their names."""
    return {f"{name}.tex": table.tex, f"{name}.html": table.html, f"{name}.csv": cells}


def finished(root):
    """Make the study and return its maker."""
    maker = Maker(root)
    spec = {"dataset": "slake", "split": "test"}
    manifest = maker.make("build_manifest", "manifests/slake/test", {"manifest.txt": "rows"}, spec=spec)
    run = {"backbone": "qwen3-vl-2b", "actor": "rlvr", "seed": 17}
    probed = {"backbone": "qwen3-vl-2b"}
    facts = maker.make("probe_checkpoint", "facts/base/0", {"facts.json": json.dumps(FACTS)}, spec=probed)
    inputs = [manifest, facts]
    answers = maker.make("generate", "generations/17", {"g.txt": "17"}, spec=run, inputs=inputs, seconds=30.0)
    metrics = maker.make("collect_metrics", "metrics", {"metrics.txt": "m"}, inputs=[answers])
    for name, table in {"main": cases.paper("main"), "calib": cases.paper("calib"), "mine": MINE}.items():
        files = table_files(name, table, CELLS if name == "main" else "table,printed\n")
        shown = {"layout": layout(PAPER_METHODS).to_spec(), "table": {"module": f"reporting.tables.{name}"}}
        maker.make("build_table", f"tables/{name}", files, spec=shown, inputs=[metrics])
    maker.make("preview_tables", "tables/preview", {"preview.txt": "p"}, spec={"tables": ["calib", "main", "mine"]})
    picture = Image.linear_gradient("L").resize((300, 600))
    files = {"training.png": picture.save, "training.pdf": "%PDF", "training.csv": "a\n1\n"}
    shown = {"layout": {"actors": [{"name": "rlvr", "label": "GRPO (RLVR)"}], "study": "mine"}}
    maker.make("draw_figure", "figures/training", files, spec=shown, inputs=[answers])
    audit = "dataset,split,step,kept,dropped,reason\nslake,test,language,1061,1033,q_lang is <en>\n"
    maker.make("summarize_data", "data", {"data.parquet": data_rows().write_parquet, "audit.csv": audit})
    pairs = shared_pictures(_NO_PICTURES, [])
    files = {"leakage.parquet": count(pairs).write_parquet, "near_duplicates.parquet": pairs.write_parquet}
    maker.make("check_leakage", "leakage", files)
    return maker


def compare(maker):
    """Add a comparison with the paper, as another part of the workflow writes it."""
    (maker.study / "paper_comparison.csv").write_text(COMPARED)


def forget(maker, stage):
    """Remove the entries of a stage from the store, as when only a part of it was copied here."""
    for path in maker.store.root.glob("??/*/MANIFEST.json"):
        if json.loads(path.read_text())["stage"] == stage:
            path.unlink()


_TEXTS = dict.fromkeys(("role", "dataset", "split", "image_id"), pl.String)
_NO_PICTURES = pl.DataFrame(schema={**_TEXTS, "pixel_sha256s": pl.List(pl.String)})
