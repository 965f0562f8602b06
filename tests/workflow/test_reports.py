"""A small study of reports, from nothing: every cell against the second computation, from the completions on."""

import pytest
import yaml

from tests.workflow.checkout import Checkout
from tests.workflow.recount import claims
from tests.workflow.recount.judge import judge

pytestmark = pytest.mark.long

# The actor learns the sentences, and next to nothing about lesions.
SMALL = {
    "phantoms": {
        "reports": {"images": {"train": 60, "validation": 60, "test": 60}},
        "removed": {"images": {"test": 40}},
    },
    "backbones": {"qwen3-vl-tiny": {"source": {"pretrain": {"training": {"steps": 150}}}}},
    "metrics": {"bootstrap": {"replicates": 200}, "target_risk_percent": [10, 50]},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    checkout = Checkout.create(tmp_path_factory.mktemp("reports"))
    (checkout.folder / "small.yaml").write_text(yaml.safe_dump(SMALL))
    run = checkout.snakemake(study="workflow/studies/reports.yaml small.yaml")
    assert run.returncode == 0, run.text
    return checkout.folder / "results/reports"


def test_every_cell_agrees(results):
    assert judge(results) == []
    printed = (results / "tables/claims/claims.csv").read_text().splitlines()
    filters = [line for line in printed if ",filter_" in line]
    assert 0 < sum(",---," in line for line in filters) < len(filters)  # some are certified


def test_a_claim_that_is_lost_is_found(results, monkeypatch):
    """Without the last claim of each report, the second computation has other cells."""
    whole = claims.claims
    monkeypatch.setattr(claims, "claims", lambda completion: whole(completion)[:-1])
    with pytest.raises(AssertionError, match="rows without a partner"):
        judge(results)


@pytest.mark.parametrize(
    ("completion", "found"),
    [
        ("<answer> One. Two!\n- three </answer><confidence>80</confidence>", ["One.", "Two!", "three"]),
        ("<answer>Seen by Dr. Who, approx. 3.5 mm (small.) No. 3 is old.</answer>", 2),
        ("No block: E. coli. No.", ["No block: E. coli.", "No."]),
        ("<answer> </answer> Behind it.", []),
    ],
)
def test_sentences_by_hand(completion, found):
    assert (claims.claims(completion) if isinstance(found, list) else len(claims.claims(completion))) == found


def test_labels_by_hand():
    reference = ["Axial CT image. The head is shown. Two lesions in the upper left quadrant. Small, round and white."]
    labels = {
        "CT in axial plane.": True,
        "axial mri image": False,
        "There is evidence of two lesions.": True,
        "Location in the upper right quadrant.": False,
        "Probably a cyst.": None,
    }
    assert {claim: claims.label(claim, reference) for claim in labels} == labels
