"""The limits of a study hold, however the files of a checkpoint name their own."""

import json

import pytest
from PIL import Image

from dualread.models.backbones.processor import load_processor, takes_limits


@pytest.mark.parametrize("own", [{"size": {"shortest_edge": 4096, "longest_edge": 8192}}, {"min_pixels": 4096}, {}])
def test_the_limits_of_the_settings_win_over_those_of_the_file(own, folder):
    file = folder / "preprocessor_config.json"
    known = json.loads((folder / "processor_config.json").read_text())
    images = {name: value for name, value in known.pop("image_processor").items() if name != "size"}
    (folder / "processor_config.json").write_text(json.dumps(known))
    file.write_text(json.dumps({**images, **own, **({"max_pixels": 8192} if "min_pixels" in own else {})}))
    processor = load_processor(folder, {"min_pixels": 1024, "max_pixels": 2048})
    if not takes_limits(processor.image_processor):
        pytest.skip("resizes every image to one size")
    rows = processor.image_processor(images=[Image.new("RGB", (500, 500)), Image.new("RGB", (8, 8))])["image_grid_thw"]
    assert [int(one[1] * one[2]) * images["patch_size"] ** 2 for one in rows] == [1024, 1024]
