"""A study of reports, from its manifest to its metrics; every number is recomputed from states and labels by hand.

The reports are given, and their states are those of a tiny, untrained model. Everything else is what a study runs.
"""

from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import dualread.study
from dualread.apps.browse.page import collect
from dualread.apps.score import ScorerChoice
from dualread.apps.score.bundle_writer import export
from dualread.apps.score.results import Question
from dualread.apps.score.scorer import Scorer
from dualread.apps.serve.opening import open_service
from dualread.artifacts.tables import from_rows, write_table
from dualread.errors import ArtifactError, ConfigError
from dualread.evaluation.statistics.jackknife import Variance
from dualread.evaluation.statistics.t_intervals import difference_interval
from dualread.models import prompts
from dualread.models.actor import Completion, ReadSpec, Request, read_states
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.encode import prompt_sha256
from dualread.readers.artifact import load_reader, save_reader
from dualread.schema.columns import GENERATIONS
from dualread.stages._joined import read_joined
from dualread.store.job import Entry
from dualread.store.runner import Runner
from dualread.store.store import Store
from dualread.study.artifact_paths import Run
from dualread.study.artifacts import StudyArtifacts
from dualread.study.config import resolve
from dualread.study.files import laid_over, read
from dualread.study.shards import StudyShards
from tests import golden
from tests.apps.serve.running import serving
from tests.stages import shards as small
from tests.tiny import MODEL, build, image

SENTENCES = ["No lesion.", "A small lesion.", "The left lung is clear.", "Fluid!", "Axial ct."]
SPLITS = {"train": 24, "validation": 6, "test": 16}
METHODS = {
    "sequence_likelihood": {"reader": "sequence_likelihood", "settings": {}},
    "before": {
        "reader": "linear_probe",
        "settings": {"steps": 3, "learning_rate": 0.05, "l2": 1e-3, "state": "h_pre"},
    },
    "prior": {"reader": "question_answer_prior", "settings": {"pseudo_counts": 5}},
}
RUN = Run("tiny", "base", 0)


def study(**changes):
    config = read(Path(dualread.study.__file__).with_name("config.yaml"))
    reports = {
        **{"label": "Reports", "id": True, "loader": "table", "source": {"folder": "reports"}, "settings": {}},
        **{"splits": list(SPLITS), "seed": 0, "prompt": "shared", "pairing": {"splits": ["test"], "match_on": []}},
        "roles": {
            **{"train": {"fit": 0.6, "stop": 0.1, "calibration": 0.3}},
            **{"validation": "validation", "test": "test"},
        },
        "claims": {"spans": "sentences", "labels": {"table": {"path": "labels.csv"}}},
    }
    method = {"label": "x", "group": "y", "actor": "base"}
    ours = {
        **{"study": "reports", "phantoms": None, "tables": None, "figures": None, "seeds": [1]},
        "contrasts": {
            **dict.fromkeys(config["contrasts"]),
            "ours": {"method": "before", "baseline": "sequence_likelihood", "datasets": ["reports"]},
        },
        "datasets": {**dict.fromkeys(config["datasets"]), "reports": reports},
        "backbones": {
            **dict.fromkeys(config["backbones"]),
            "tiny": {"label": "Tiny", "source": {"folder": "checkpoint"}, "settings": MODEL},
        },
        "actors": dict.fromkeys(name for name in config["actors"] if name != "base"),
        "conditions": {"donor_fixed_prefix": {"actors": None}, "shuffled_image": None},
        "methods": {**dict.fromkeys(config["methods"]), **{k: {**method, **v} for k, v in METHODS.items()}},
        "replay": {"agreement": {"max_argmax_mismatch_share": 1.0}},  # the reports are not its own
        "metrics": {"bootstrap": {"replicates": 50}},
    }
    return resolve({**laid_over(laid_over(config, ours), changes), "tables": {}}, source="reports")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The study, run in memory; with the reports, and the labels that were given."""
    folder = tmp_path_factory.mktemp("reports")
    tiny = build("qwen3_vl", folder / "checkpoint")
    rng, number, rows = np.random.default_rng(1), count(), []
    (folder / "reports").mkdir()
    for split, n in SPLITS.items():
        for _ in range(n):
            k = next(number)
            image(k).save(folder / "reports" / f"{k}.png")
            gold = [SENTENCES[i] for i in sorted(rng.choice(5, 2, replace=False))]
            row = {"id": f"r{k:02}", "image": f"{k}.png", "question": "Report?", "reference_answers": [" ".join(gold)]}
            rows.append({**row, "answer_type": "open", "split": split})
    pl.DataFrame(rows).write_parquet(folder / "reports" / "rows.parquet")
    config = study(backbones={"tiny": {"source": {"folder": str(tiny.checkpoint)}}})
    store, out = Store(folder / "store"), folder / "results"
    paths = StudyArtifacts(config, StudyShards(config), str(out), lambda *_: str(folder / "reports"), folder)

    def run(stage, described):
        inputs, entries = described
        Runner(stage, store, below=out).run([Entry.of(entry, inputs) for entry in entries])

    for split in SPLITS:
        run("build_manifest", paths.build_manifest(SimpleNamespace(dataset="reports", split=split)))
    run("pair_donors", paths.pair_donors(SimpleNamespace(dataset="reports", split="test")))
    for stage in ("copy_checkpoint", "probe_checkpoint"):
        run(stage, getattr(paths, stage)(RUN))
    manifest = pl.concat(pl.read_parquet(out / f"manifests/reports/{split}/manifest.parquet") for split in SPLITS)
    pairs = pl.read_parquet(out / "pairs/reports/test/pairs.parquet")
    references = dict(manifest.select("sample_id", pl.col("reference_answers").list.first()).iter_rows())
    donors = dict(pairs.select("sample_id", "donor_sample_id").iter_rows())
    texts = {q: " ".join(SENTENCES[i] for i in rng.choice(5, rng.integers(0, 4), replace=False)) for q in references}
    opened = open_checkpoint(tiny.checkpoint, MODEL)
    _generate(out, opened, manifest, texts)
    labels = []
    for question, text in texts.items():
        for sentence in {s for s in SENTENCES if s in text}:
            row = {"question": question, "condition": "original", "text": sentence}
            labels.append({**row, "label": _label(sentence, references[question])})
            if question in donors:
                label = _label(sentence, references[donors[question]])
                labels.append({**row, "condition": "donor_fixed_prefix", "label": label})
    pl.DataFrame(labels).write_csv(folder / "labels.csv")
    for stage in ("grade", "list_claims", "replay", "fit_readers", "score_answers", "compute_metrics", "measure_costs"):
        run(stage, getattr(paths, stage)(RUN))
    run("collect_metrics", paths.collect_metrics({}))
    run("compare_methods", paths.compare_methods({}))
    run("export_answers", paths.export_answers(None, runs=[RUN]))
    return SimpleNamespace(out=out, texts=texts, references=references, donors=donors, opened=opened)


def _label(sentence, reference):
    """Nobody has labeled this sentence."""
    return None if sentence == "Axial ct." else "yes" if sentence in reference else "no"


def _generate(out, opened, manifest, texts):
    """Write given reports as an actor's, with its log-probabilities."""
    for (split,), part in manifest.group_by("split", maintain_order=True):
        rows, asked, ids = [], [], []
        for question in part["sample_id"]:
            report = f"<answer>{texts[question]}</answer><confidence>80</confidence>"
            k = int(question[-2:])
            text = prompts.render("shared", question="Report?")
            asked.append(Request(text=text, images=[image(k)], image_name=str(k), row=question))
            tokens = opened.encoder.tokenizer(report, add_special_tokens=False)["input_ids"]
            ids.append([*tokens, opened.encoder.tokenizer.eos_token_id])
        read = read_states(opened, asked, ids, ReadSpec(kappa=0.1), batch_size=64)
        for question, request, tokens, states in zip(part["sample_id"], asked, ids, read, strict=True):
            prompt = request.encoded(opened.encoder).token_ids
            shown = part.row(by_predicate=pl.col("sample_id") == question, named=True)
            rows.append(
                {
                    **{"sample_id": question, "condition": "original", "sample_index": 0},
                    **{"image_id": shown["image_id"], "prompt_sha256": prompt_sha256(prompt)},
                    **{"n_prompt_tokens": len(prompt), "token_ids": tokens, "finish_reason": "stop"},
                    **{"token_log_probs": states.token_log_probs.tolist(), "text": opened.encoder.decode(tokens)},
                }
            )
        folder = out / f"generations/tiny/base/0/reports/{split}/original"
        folder.mkdir(parents=True)
        write_table(folder / "generations.parquet", from_rows(rows, GENERATIONS), GENERATIONS)
        small.seal(folder)


def claims_of(done, split="test"):
    """The claims by hand: (id, text, supported, supported on the donor's image), None without a label."""
    for question, text in done.texts.items():
        if f"/{split}/" in question:
            for k, sentence in enumerate(sorted((s for s in SENTENCES if s in text), key=text.index)):
                of = [done.references[question], done.references.get(done.donors.get(question))]
                yes = [None if reference is None else _label(sentence, reference) for reference in of]
                yield f"{question}#{k}", sentence, *(None if label is None else label == "yes" for label in yes)


def metrics(done, method):
    table = pl.read_parquet(done.out / f"metrics/tiny/base/0/{method}/metrics.parquet")
    return {row["metric"]: row for row in table.filter(split="test", subset="all").to_dicts()}


def confidences(done, method, condition):
    table = pl.read_parquet(done.out / f"predictions/tiny/base/0/{method}/predictions.parquet")
    return dict(table.filter(split="test", condition=condition).select("sample_id", "confidence").iter_rows())


def test_claims_have_the_place_of_questions(finished):
    by_hand = list(claims_of(finished))
    table = pl.read_parquet(finished.out / "graded/tiny/base/0/reports/test/original/claims.parquet")
    assert list(table.select("sample_id", "text", "label").iter_rows()) == [claim[:3] for claim in by_hand]
    listed = finished.out / "claims/tiny/base/0/reports/test"
    labeled = sorted(claim[0] for claim in by_hand if claim[2] is not None)
    assert pl.read_parquet(listed / "manifest.parquet")["sample_id"].to_list() == labeled
    pairs = pl.read_parquet(listed / "pairs.parquet")
    assert pairs["sample_id"].to_list() == sorted(claim[0] for claim in by_hand if claim[3] is not None)
    assert {claim.rpartition("#")[0] for claim in pairs["sample_id"]} <= finished.donors.keys()
    exported = pl.read_parquet(finished.out / "answers/tiny/base/0/answers.parquet").filter(method="before")
    assert exported.select("sample_id", "answer", "correct").rows() == sorted(
        c[:3] for c in by_hand if c[2] is not None
    )
    of_pairs = pl.read_parquet(finished.out / "answers/tiny/base/0/pairs.parquet").filter(method="before")
    assert of_pairs["donor_correct"].to_list() == [c[3] for c in sorted(by_hand) if c[3] is not None]


def test_a_probe_of_claims_scores_the_state_before_each(finished):
    """Its features are those of a pass over the prompt and the report as a whole."""
    from dualread.artifacts.tensors import read_tensors

    folder = finished.out / "features/tiny/base/0/reports/test/donor_fixed_prefix"
    index, stored = pl.read_parquet(folder / "features.parquet"), read_tensors(folder / "features.safetensors")
    question = next(q for q in finished.donors if len([c for c in claims_of(finished) if c[0].startswith(q)]) > 1)
    ids = finished.opened.encoder.tokenizer(
        f"<answer>{finished.texts[question]}</answer><confidence>80</confidence>", add_special_tokens=False
    )["input_ids"]
    donor = int(finished.donors[question][-2:])
    text = prompts.render("shared", question="Report?")
    request = Request(text=text, images=[image(donor)], image_name="x", row="x")
    # The state that a completion of the tokens before the claim ends with, without what follows.
    second = index.row(by_predicate=pl.col("sample_id") == f"{question}#1", named=True)
    before = ids[: second["answer_positions"][0]]
    [read] = read_states(finished.opened, [request], [before], ReadSpec(kappa=0.1), batch_size=1)
    np.testing.assert_allclose(stored["h_pre"][second["row"]], read.vectors["h_close"], atol=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_metrics_are_those_of_claims(finished, method):
    found, by_hand = metrics(finished, method), list(claims_of(finished))
    own, forced = (confidences(finished, method, of) for of in ("original", "donor_fixed_prefix"))
    labels = {claim: supported for claim, _, supported, _ in by_hand if supported is not None}
    assert own.keys() == labels.keys()
    right, wrong = ([own[c] for c in labels if labels[c] is yes] for yes in (True, False))
    auroc = np.mean([(a > b) + 0.5 * (a == b) for a in right for b in wrong])
    assert found["auroc"]["estimate"] == pytest.approx(auroc, abs=1e-12)
    assert found["accuracy"]["estimate"] == pytest.approx(len(right) / len(labels), abs=1e-12)
    for name, on_donor in (("fixed_prefix_ccg_auc", False), ("supported_on_both_ccg_auc", True)):
        pairs = [claim for claim, _, here, there in by_hand if here is True and there is on_donor]
        assert found[name]["n"] == len(pairs) > 0
        wins = [(own[c] > forced[c]) + 0.5 * (own[c] == forced[c]) for c in pairs]
        assert found[name]["estimate"] == pytest.approx(np.mean(wins), abs=1e-12)
    assert found["natural_ccg_auc"]["estimate"] is None
    assert "forced on the donor's image" in found["natural_ccg_auc"]["reason"]
    assert found["strict_same_answer_ccg_auc"]["estimate"] is None
    counts = {name: found[name]["estimate"] for name in ("reports", "reports_without_claim", "claims")}
    with_claims = {claim[0].rpartition("#")[0] for claim in by_hand}
    assert counts == {"reports": 16, "reports_without_claim": 16 - len(with_claims), "claims": len(by_hand)}
    assert found["claims_without_label"]["estimate"] == len(by_hand) - len(labels) > 0
    # With all claims: the mean share of unsupported claims per report, and the share of reports with any.
    reports = {claim.rpartition("#")[0]: [] for claim in labels}
    for claim, yes in labels.items():
        reports[claim.rpartition("#")[0]].append(not yes)
    assert found["reports_share"]["estimate"] == pytest.approx(np.mean([np.mean(of) for of in reports.values()]))
    assert found["reports_any"]["estimate"] == pytest.approx(np.mean([any(of) for of in reports.values()]))
    # A handful of validation reports certifies nothing, and that is said.
    for loss in ("share", "any"):
        row = found[f"filter_{loss}_kept_at_risk_10"]
        assert row["estimate"] is None
        assert "too few" in row["reason"]
    if method == "prior":  # the text alone says nothing about the image
        assert found["fixed_prefix_ccg_auc"]["estimate"] == 0.5


def test_methods_are_compared_by_what_a_donor_does_to_claims(finished):
    """With the interval of the literal jackknife: without all claims about an image, and without those of a pair."""
    contrasts = pl.read_parquet(finished.out / "contrasts/contrasts.parquet").filter(contrast="ours")
    [row] = contrasts.filter(metric="fixed_prefix_ccg_auc").to_dicts()
    chosen = [claim for claim in claims_of(finished) if claim[2] is True and claim[3] is False]
    values = []
    for method in ("before", "sequence_likelihood"):
        own, other = (confidences(finished, method, name) for name in ("original", "donor_fixed_prefix"))
        values.append([(own[claim[0]] > other[claim[0]]) + (own[claim[0]] == other[claim[0]]) / 2 for claim in chosen])
    differences = np.subtract(*values)
    assert row["estimate"] == pytest.approx(differences.mean())
    assert row["n"] == len(chosen) > 0
    source = [claim[0].rpartition("#")[0] for claim in chosen]
    images = [{question, finished.donors[question]} for question in source]  # of each question one image
    left_out = [{image} for image in sorted(set().union(*images))], sorted({tuple(sorted(pair)) for pair in images})
    variances = []
    for groups in left_out:
        rest = [[k for k, pair in enumerate(images) if not set(group) <= pair] for group in groups]
        shifts = [differences[of].mean() - differences.mean() for of in rest]
        variances.append(np.sum(np.square(shifts)) * (len(shifts) - 1) / len(shifts))
    variance = max(variances[0] - variances[1], variances[1] / 2)
    sides = (Counter(source), Counter(finished.donors[question] for question in source))
    n = min(len(source) ** 2 / sum(count**2 for count in side.values()) for side in sides)
    expected = difference_interval(differences.mean(), Variance(value=variance, df=n - 1, n=n))
    assert (row["low"], row["high"]) == pytest.approx(expected)
    assert row["p"] is not None


def test_without_a_label_there_is_nothing_to_judge(finished):
    claims = pl.read_parquet(finished.out / "claims/tiny/base/0/reports/test/manifest.parquet")
    predictions = finished.out / "predictions/tiny/base/0/prior"
    with pytest.raises(ArtifactError, match="no claim of its reports has a label"):
        read_joined("reports", "test", claims.clear(), predictions, {})


def test_a_report_is_read_once_for_all_of_its_claims(finished):
    rows = pl.read_parquet(finished.out / "metrics/metrics.parquet").filter(subset="all", method="before")
    found = dict(rows.filter(split="test").select("metric", "estimate").iter_rows())
    n = sum(claim[2] is not None for claim in claims_of(finished))
    assert found["cost_replay_passes"] == pytest.approx(16 / n)
    assert found["cost_completions"] == pytest.approx(16 / n)


def test_browse_has_the_claims_of_each_report_on_both_images(finished):
    content = collect(finished.out, split="test")
    [run], by_hand = content["runs"], {claim[0]: claim for claim in claims_of(finished)}
    for side, condition, label in (("original", "original", 2), ("donor", "donor_fixed_prefix", 3)):
        reports = [report for report in run["actors"]["base"][side] if report is not None]
        claims = {name: (text[start:end], of) for _, _, text, rows in reports for start, end, of, name in rows}
        assert claims == {name: (claim[1], claim[label]) for name, claim in by_hand.items()}
        scored = run["methods"]["before"]["claims"][side]
        assert scored == {name: round(value, 4) for name, value in confidences(finished, "before", condition).items()}


@pytest.mark.parametrize("method", METHODS)
def test_a_scored_report_has_the_confidences_of_the_study(finished, monkeypatch, method):
    """Whatever the batch: here, all reports of the test split."""
    folder = finished.out.parent / f"bundle of {method}"
    export(finished.out, ("tiny", "base", 0), folder, method=method)
    scorer = Scorer.load(folder, finished.out / "actors/tiny/base/0")
    generated = pl.read_parquet(finished.out / "generations/tiny/base/0/reports/test/original/generations.parquet")
    of_completion = ("text", "token_ids", "token_log_probs", "finish_reason")
    rows = generated.select(of_completion).iter_rows(named=True)
    completions = [[Completion(**row, prompt_token_ids=())] for row in rows]
    monkeypatch.setattr(scorer._loaded.actor._engine, "answer", lambda requests, decoding: completions)
    questions = generated["sample_id"].to_list()
    results = scorer.together([Question(image=image(int(q[-2:])), question="Report?") for q in questions])
    scored = {f"{q}#{k}": c for q, r in zip(questions, results, strict=True) for k, c in enumerate(r.claims)}
    assert {name: claim.text for name, claim in scored.items()} == {c[0]: c[1] for c in claims_of(finished)}
    stored = confidences(finished, method, "original")
    assert {name: scored[name].confidence for name in stored} == pytest.approx(stored, abs=1e-6)
    for result in results:
        assert all(result.completion[c.start : c.end] == c.text for c in result.claims)
        assert (result.confidence, result.decision.keep) == (None, None)
        threshold = result.decision.threshold
        kept = [None if threshold is None else c.confidence >= threshold for c in result.claims]
        assert [c.keep for c in result.claims] == kept


def test_served_claims_are_those_that_are_scored(finished):
    """Of what the untrained actor says by itself, which has no answer block."""
    reader, actor = finished.out / "readers/tiny/base/0/before", finished.out / "actors/tiny/base/0"
    asked = [Question(image=image(k), question="What is seen?") for k in (2, 4, 5)]
    scored = Scorer.load(reader, actor).together(asked)
    service = open_service(ScorerChoice(reader=reader, checkpoint=actor), batch_size=4, engine="transformers")
    try:
        with serving(service) as server:
            served = [server.ask(q.image, q.question).choices[0].dualread for q in asked]
            *_, last = server.ask(asked[-1].image, asked[-1].question, stream=True)
    finally:
        service.close()
    assert last.choices[0].dualread == served[-1]
    assert sum(len(result.claims) for result in scored) > 0
    for judged, result in zip(served, scored, strict=True):
        assert (judged["confidence"], judged["psr"], judged["abstain"]) == (None, None, None)
        claims = [vars(claim) for claim in result.claims]
        plain = [{k: v for k, v in claim.items() if k not in ("methods", "confidence")} for claim in claims]
        assert [{k: claim[k] for k in plain[0]} for claim in judged["claims"]] == plain
        of_served = [claim["confidence"] for claim in judged["claims"]]
        assert of_served == pytest.approx([claim["confidence"] for claim in claims], abs=1e-6)


def test_a_reader_of_claims_that_cannot_be_used_is_refused(finished, tmp_path):
    fitted = load_reader(finished.out / "readers/tiny/base/0/before/reader.safetensors")
    actor, number = finished.out / "actors/tiny/base/0", count()

    def problem(abstain_before=None, **changes):
        folder = tmp_path / str(next(number))
        folder.mkdir()
        scoring = {**fitted.provenance["scoring"], **changes}
        changed = replace(fitted, provenance={**fitted.provenance, "scoring": scoring})
        save_reader(folder / "reader.safetensors", changed)
        choice = ScorerChoice(reader=folder, checkpoint=actor)
        how = {"batch_size": 1, "engine": "transformers", "abstain_before": abstain_before}
        return golden.message_of(lambda: open_service(choice, **how), tmp_path, finished.out)

    asks = {"name": "samples", "image": "original", "prompt": fitted.provenance["scoring"]["prompt"]}
    asks["decoding"] = fitted.provenance["scoring"]["decoding"]
    cases = {
        "claims of a table": problem(spans={"entities": {"path": "/etc/passwd"}}),
        "an unknown plugin": problem(spans="words"),
        "an unknown setting": problem(spans={"sentences": {"language": "en"}}),
        "a view that asks": problem(views=[asks]),
        "no claims": problem(spans=None),
        "PSR before the report": problem(abstain_before="0.4"),
    }
    golden.check(Path(__file__).with_name("claims_readers.txt"), cases)


def test_what_cannot_be_of_claims_is_refused():
    views = {"label": "x", "group": "y", "actor": "base", "views": ["p_true"], "reader": "p_true"}
    other = {**study().as_mapping()["datasets"]["reports"], "id": False, "splits": ["test"], "roles": {"test": "ood"}}
    cases = {
        "a method that asks": {"methods": {"p_true": views}},
        "a data set of answers": {"datasets": {"other": {k: v for k, v in other.items() if k != "claims"}}},
        "states of the generation": {"replay": {"from": "generation"}},
        "reports under a condition": {"conditions": {"dark": {"image": "black", "datasets": ["reports"]}}},
        "an unknown plugin": {"datasets": {"reports": {"claims": {"spans": "words"}}}},
        "an unknown setting": {"datasets": {"reports": {"claims": {"labels": {"table": {"paths": "x"}}}}}},
        "no labels": {"datasets": {"reports": {"claims": {"labels": None}}}},
    }

    def problem(changes):
        with pytest.raises(ConfigError) as raised:
            study(**changes)
        return str(raised.value)

    golden.check(Path(__file__).with_name("claims.txt"), {name: problem(changes) for name, changes in cases.items()})
