"""Five faults on the smoke study, for which it is run twice from nothing."""

from pathlib import Path

from tests.workflow.checkout import Checkout
from tests.workflow.faults import STUDIES, assert_same, killed, run

SMOKE = f"{STUDIES}/smoke.yaml"


def test_a_smoke_study_that_is_killed_five_times_ends_with_the_same_bytes(tmp_path: Path):
    """Killed in training, generation, replay, publication and table writing; except at first, with Snakemake."""
    whole, checkout = (Checkout.create(tmp_path / name) for name in ("whole", "killed"))
    assert run(whole, study=SMOKE).returncode == 0
    training = {"stage": "train_actor", "event": "open", "path": "manifests/slake/train/images/", "count": 30}
    with_snakemake = [
        {"stage": "generate", "event": "open", "path": "manifests/slake/test/images/", "count": 15},
        {"stage": "replay", "event": "open", "path": "manifests/slake/validation/images/", "count": 10},
        {"stage": "fit_readers", "event": "os.rename", "path": "store/tmp/", "count": 5},
        {"stage": "build_table", "event": "open", "path": "store/tmp/.*/main.csv$"},
    ]
    killed(checkout, study=SMOKE, **training)
    for fault in with_snakemake:
        killed(checkout, study=SMOKE, **fault, victim="group")
    done = run(checkout, study=SMOKE)
    assert done.returncode == 0, done.text
    assert_same(checkout, whole)
    assert list(checkout.folder.glob("results/store/tmp/*")) == []
