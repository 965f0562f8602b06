import numpy as np
import pytest

from dualread.readers.linear import affine


@pytest.mark.parametrize("width", [1, 7, 2048, 8192, 8193, 4 * 2560])  # P-Visual reads 4 D columns: 10,240 of MedGemma
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_row_has_the_same_value_alone_and_at_any_place_among_others(width, outputs):
    rng = np.random.default_rng(width)
    x, weight, bias = rng.normal(size=(9, width)), rng.normal(size=(outputs, width)), rng.normal(size=outputs)
    whole = affine(x, weight, bias)
    np.testing.assert_allclose(whole, x @ weight.T + bias, atol=1e-10)
    for rows in ([0], [8], [4, 4], [3] * 17, [8, 1, 5]):
        assert (affine(x[rows], weight, bias) == whole[rows]).all()
