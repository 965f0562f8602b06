"""The known inconsistencies among the paper's own numbers are found by computing them."""

import pytest

from dualread.reporting.comparison.twice import IN_WORDS, contrasts, printed_twice, sums


def test_quantities_of_several_tables_with_different_numbers():
    n, found = printed_twice()
    means = {
        (twice.quantity.backbone, twice.quantity.dataset, twice.quantity.metric): {
            table: printed.mean for table, printed in twice.printed.items()
        }
        for twice in found
    }
    assert means == {
        ("qwen3-vl-2b", "slake", "brier"): {"cascade": 0.081, "sc_tradeoff": 0.083, "ood_acc": 0.083},
        ("medgemma-1.5-4b", "slake", "brier"): {"cascade": 0.076, "sc_tradeoff": 0.082, "ood_acc": 0.082},
        ("qwen3-vl-2b", "vqa_rad", "auroc"): {"sc_tradeoff": 0.728, "ood_acc": 0.731},
        ("qwen3-vl-2b", "vqa_rad", "brier"): {"sc_tradeoff": 0.234, "ood_acc": 0.233},
        ("medgemma-1.5-4b", "vqa_rad", "auroc"): {"sc_tradeoff": 0.756, "ood_acc": 0.754},
        ("medgemma-1.5-4b", "vqa_rad", "brier"): {"sc_tradeoff": 0.217, "ood_acc": 0.219},
    }
    assert {twice.quantity.method for twice in found} == {"dualread"}
    assert n == 82


def test_differences_in_table_paired_compared_with_differences_of_cells():
    found = {(c.place.backbone, c.place.dataset, c.place.metric): c for c in contrasts()}
    assert len(found) == 8  # the paper prints no cells on validation
    # Qwen on VQA-RAD: .731 or .728 minus .709; Brier .312 minus .233 or .234
    qwen = found["qwen3-vl-2b", "ood_unspecified", "delta_auroc"]
    assert qwen.of_cells["vqa_rad"] == pytest.approx([0.019, 0.022])
    assert qwen.of_cells["ood6"] == pytest.approx([0.053])
    brier = found["qwen3-vl-2b", "ood_unspecified", "delta_brier"]
    assert brier.of_cells["vqa_rad"] == pytest.approx([0.078, 0.079])
    assert set(qwen.fits) & set(brier.fits) == {"vqa_rad"}
    # MedGemma: no set fits both OOD numbers, and the cells in distribution say .176 and .090 (or .096)
    medgemma = [found["medgemma-1.5-4b", "ood_unspecified", metric] for metric in ("delta_auroc", "delta_brier")]
    assert not set(medgemma[0].fits) & set(medgemma[1].fits)
    auroc, brier = (found["medgemma-1.5-4b", "slake", metric] for metric in ("delta_auroc", "delta_brier"))
    assert (auroc.printed.mean, auroc.of_cells["slake"]) == (0.205, pytest.approx([0.176]))
    assert (brier.printed.mean, brier.of_cells["slake"]) == (0.11, pytest.approx([0.09, 0.096]))
    assert "slake" not in (*auroc.fits, *brier.fits)


def test_means_and_differences_that_hold():
    assert [(s.n, list(s.broken)) for s in sums()] == [(88, []), (44, []), (2, []), (2, []), (9, [])]
    # A mean of six numbers and their printed mean, each rounded by .0005 at most; they are not equal all the same.
    assert 0 < sums()[0].largest <= 0.001


def test_a_broken_mean_is_found(monkeypatch):
    from dualread.reporting.comparison import twice
    from dualread.reporting.tables.published import published_cells

    def shifted():
        cells = published_cells()
        place = next(p for p in cells if (p.table, p.dataset, p.method) == ("calib", "rexvqa", "dualread"))
        return {**cells, place: cells[place]._replace(mean=cells[place].mean + 0.06)}

    monkeypatch.setattr(twice, "published_cells", shifted)
    broken = twice.sums()[0].broken
    assert len(broken) == 1  # .06/6 = .01 away
    assert broken[0].startswith("qwen3-vl-2b dualread accuracy: ")


@pytest.mark.parametrize("what", ["BICR", "SC@K", "PSR", "Brier", "OOD", "interval"])
def test_contradictions_in_the_text_of_the_paper_are_listed(what):
    assert any(what in sentence for sentence in IN_WORDS)
