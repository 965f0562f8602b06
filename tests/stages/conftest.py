import pytest

from dualread.stages import build_manifest, draw_phantom, pair_donors


@pytest.fixture(scope="session")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospital")

    def make(stage, name, spec, **inputs):
        (folder / name).mkdir(parents=True)
        stage.compute(spec, inputs, folder / name)
        return folder / name

    images = {"train": 3, "validation": 1, "test": 4}
    phantom = {"name": "hospital", "seed": 1, "images": images, "size": 32, "questions_per_image": 4}
    phantom["writer"] = {"module": "data.writers.slake"}
    source = make(draw_phantom, "phantom", phantom)
    spec = {
        "dataset": "slake",
        "split": "test",
        "loader": {"module": "data.datasets.slake"},
        "settings": {},
        "roles": "test",
        "seed": 0,
    }
    manifest = make(build_manifest, "manifest", spec, source=source)
    pairs = make(pair_donors, "pairs", {"match_on": []}, manifest=manifest)
    return {"manifest": manifest, "pairs": pairs}
