import pytest

from tests.workflow.checkout import Checkout


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The finished smoke study, computed once; tests that edit it undo their edits."""
    checkout = Checkout.create(tmp_path_factory.mktemp("smoke"))
    run = checkout.snakemake()
    assert run.returncode == 0, run.text
    return checkout
