"""The whole smoke study, run from nothing on the cluster, gives the bytes of a local run."""

from tests.workflow.checkout import Checkout

SMOKE = "workflow/studies/smoke.yaml"


def test_all_artifacts_of_the_smoke_study_equal_those_of_a_local_run(submit, tmp_path_factory):
    through_slurm, local = (Checkout.create(tmp_path_factory.mktemp(name)) for name in ("through_slurm", "local"))
    head = submit(through_slurm, study=SMOKE)
    assert head.wait() == 0, head.text
    run = local.snakemake(study=SMOKE)
    assert run.returncode == 0, run.text
    patterns = ("tables/*.tex", "tables/*.csv", "figures/*", "results/smoke/**/MANIFEST.json")
    found, expected = (
        {str(p.relative_to(c.folder)): p.read_bytes() for pattern in patterns for p in c.folder.glob(pattern)}
        for c in (through_slurm, local)
    )
    assert len(found) > 500
    assert [name for name in {**found, **expected} if found.get(name) != expected.get(name)] == []
