"""What every loader has to fulfil."""

import pytest

from dualread import plugins
from dualread.data.datasets.base import load
from dualread.errors import ConfigError

LOADERS = plugins.known("datasets")


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_says_which_files_of_the_hub_it_needs_and_their_terms(name):
    files = plugins.declared("datasets", name, "HUB_FILES")
    assert files
    assert set(files) <= {"train", "validation", "test"}
    assert all(isinstance(pattern, str) for patterns in files.values() for pattern in patterns)
    assert len(plugins.declared("datasets", name, "TERMS")) > 20


@pytest.mark.parametrize("name", LOADERS)
def test_an_unknown_split_or_setting_is_refused_with_the_known_ones(tmp_path, name):
    splits = plugins.declared("datasets", name, "HUB_FILES")
    with pytest.raises(ConfigError, match=rf"^{name}: no split named 'dev'\. Known: {', '.join(splits)}\."):
        load(plugins.load("datasets", name), tmp_path, "dev", {})
    with pytest.raises(ConfigError, match=rf"^{name}: settings\.nosuch: 1: extra inputs are not permitted"):
        load(plugins.load("datasets", name), tmp_path, next(iter(splits)), {"nosuch": 1})
