"""`make test-families`: every family of tests/families.py through a whole study, half a minute each."""

import pytest

from tests import families
from tests.workflow.test_families import walk


@pytest.mark.parametrize("name", families.FAMILIES)
def test_from_a_folder_to_a_score(name, tmp_path, capsys):
    walk(name, tmp_path, capsys)
