import pytest

from dualread.errors import DataError, refuse


def test_refuse_lists_the_first_ten_problems_and_counts_the_rest():
    refuse([])
    with pytest.raises(DataError) as error:
        refuse(f"row {i}" for i in range(12))
    assert str(error.value).splitlines() == [*(f"row {i}" for i in range(10)), "... and 2 more"]
