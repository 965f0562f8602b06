"""`make test-families`: every family that has a fixture through a whole study, a minute each, and more for Qwen3.5."""

import pytest

from tests import families
from tests.more_families import MORE, UNTRAINED
from tests.workflow.test_families import walk


@pytest.mark.parametrize("name", [*families.FAMILIES, *(name for name in MORE if name not in UNTRAINED)])
def test_from_a_folder_to_a_score(name, tmp_path, capsys):
    walk(name, tmp_path, capsys)
