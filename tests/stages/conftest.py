import pytest

from dualread.schema.data import PairDonorsSpec
from dualread.stages import build_manifest, draw_phantom, pair_donors
from tests import specs


@pytest.fixture(scope="session")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospital")

    def make(stage, name, spec, **inputs):
        (folder / name).mkdir(parents=True)
        stage.compute(spec, inputs, folder / name)
        return folder / name

    images = {"train": 3, "validation": 1, "test": 4}
    source = make(draw_phantom, "phantom", specs.phantom(seed=1, images=images, questions_per_image=4))
    manifest = make(build_manifest, "manifest", specs.manifest(), source=source)
    pairs = make(pair_donors, "pairs", PairDonorsSpec(dataset="slake", split="test", match_on=[]), manifest=manifest)
    return {"manifest": manifest, "pairs": pairs}
