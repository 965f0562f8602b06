from dualread.declared.tables import LabeledDataset
from dualread.reporting.tables import calib
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body
from tests.specs import changed

METRICS = ("accuracy", "auroc", "ece15", "brier")

# What the paper prints in bold, read off its Table calib: the best AUROC, ECE and Brier score, or the two that tie.
PAPER_BEST = {
    ("qwen3-vl-2b", "pmc_vqa"): ("p_true", "dualread", "dualread"),
    ("qwen3-vl-2b", "omnimedvqa"): ("p_true", "saplma", "saplma"),
    ("qwen3-vl-2b", "rexvqa"): ("base", "dualread", "dualread"),
    ("qwen3-vl-2b", "vqa_med_2019"): ("base", "saplma", "saplma"),
    ("qwen3-vl-2b", "ood6"): ("saplma", "saplma", "saplma"),
    ("medgemma-1.5-4b", "pmc_vqa"): ("base", "bicr", "vl_calibration bicr"),
    ("medgemma-1.5-4b", "omnimedvqa"): ("p_true", "prompt_ensemble", "prompt_ensemble"),
    ("medgemma-1.5-4b", "rexvqa"): ("p_true", "prompt_ensemble", "prompt_ensemble"),
    ("medgemma-1.5-4b", "vqa_med_2019"): ("saplma", "dualread", "dualread"),
    ("medgemma-1.5-4b", "ood6"): ("saplma", "dualread", "vl_calibration"),
}


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("calib")
    bold = {(key.backbone, key.dataset, key.metric, key.method) for key in cases.read_bold("calib", paper)}
    assert bold == {
        (backbone, place, metric, name)
        for (backbone, place), names in PAPER_BEST.items()
        for metric, best in zip(METRICS[1:], names, strict=True)
        for name in best.split()
    }


def test_the_head_has_the_domains_without_the_in_distribution_one_and_their_mean():
    paper = cases.paper("calib")
    assert r" & PMC-VQA & OmniMedVQA & ReXVQA & VQA-Med 2019 & OOD averaged \\" in paper.tex.splitlines()


def test_a_study_without_ood_data_sets_has_a_mean_that_is_a_dash():
    reason = "the study has no OOD data sets"
    rows = over_seeds("psr", "auroc", [None] * 3, dataset="ood6", reason=reason)
    table = build_table.build(calib, metrics(*rows), layout([method("psr")], TINY))
    assert body(table) == [r"\raisebox{1.1ex}[0pt]{PSR} & \shortstack{---\,/\,---\\[-2pt]---\,/\,---} \\"]
    assert table.cells.filter(metric="auroc")["reason"].to_list() == [f"seeds 17, 29, 43: {reason}"]


def test_an_ece_that_chance_explains_has_a_circle_which_the_caption_explains():
    rows = [
        *(
            row
            for metric in ("accuracy", "auroc", "brier")
            for row in over_seeds("psr", metric, [0.5] * 3, dataset="pmc")
        ),
        *over_seeds("psr", "ece15", [0.1] * 3, dataset="pmc"),
        *over_seeds("psr", "ece15_noise_floor", [0.12] * 3, dataset="pmc"),
    ]
    places = [
        LabeledDataset(name="pmc", label="PMC-VQA", id=False),
        LabeledDataset(name="slake", label="SLAKE-test", id=True),
    ]
    table = build_table.build(calib, metrics(*rows), changed(layout([method("psr")], TINY), datasets=places))
    assert table.cells.filter(metric="ece15", dataset="pmc")["printed"].to_list() == [".100±.000°"]
    assert r"$\mathbf{.100}_{\pm.000}{}^{\circ}$" in table.tex
    assert "<sup>°</sup>" in table.html
    for text in (table.tex, table.html):
        assert text.count("An ECE that calibrated confidences reach by chance") == 1
