import numpy as np
import pytest

from dualread.data.gray import right_aligned, to_8_bits
from dualread.errors import DataError


def _levels(values, stated=None, given=None):
    return to_8_bits(np.array([values], dtype=np.uint16), "x", stated=stated, given=given)[0][0].tolist()


@pytest.mark.parametrize("bits", range(9, 17))
def test_every_level_is_rounded_half_up(bits):
    # The literal rule, value by value: v * 255 / (2^bits - 1), rounded.
    top = 2**bits - 1
    expected = [int(value * 255 / top + 0.5) for value in range(top + 1)]
    assert _levels(list(range(top + 1)), stated=bits) == expected


@pytest.mark.parametrize("top", [300, 1023, 4095, 16383])
def test_a_small_part_of_16_bits_is_refused_with_the_bits_that_would_fit(top):
    likely = {300: 10, 1023: 10, 4095: 12, 16383: 14}[top]
    with pytest.raises(DataError, match=f"x: its 16-bit gray values end at {top}.* {likely} would fit"):
        _levels([1, top])
    assert _levels([1, top], given=16) == [0, int(top * 255 / 65535 + 0.5)]


@pytest.mark.parametrize("values", [[0, 0], [257, 514], [20, 16384], [0, 65535]])
def test_black_8_bits_spread_over_16_and_bright_pictures_are_read(values):
    assert _levels(values) == [int(value / 257 + 0.5) for value in values]


@pytest.mark.parametrize("top", [1023, 4095, 16383])
@pytest.mark.parametrize("bright", [16384, 30000, 65535])
@pytest.mark.parametrize("n", [1, 5])
def test_a_few_bright_pixels_do_not_make_a_dark_picture_bright(top, bright, n):
    """A burned-in mark, a border, a defect: 12 bits in a file of 16 stay black with them."""
    values = [1, top, *[top // 2] * 993, *[bright] * n]  # at most one in 200
    with pytest.raises(DataError, match=rf"end at {top} but for {n} of {995 + n} pixels up to {bright}, "):
        _levels(values)
    assert _levels(values, given=16)[1] == int(top * 255 / 65535 + 0.5)
    assert not right_aligned(np.array([values]), 9)
    assert right_aligned(np.array([values]), 14)
    assert _levels([*values, *[bright] * 5])  # one in a hundred is a part of the picture
    assert _levels([0] * 1000 + [bright])  # black, and a mark
    assert _levels([257 * 3] * 1000 + [65535])  # 8 bits over 16


def test_more_than_the_bits_hold_is_refused():
    with pytest.raises(DataError, match="values up to 4096, but 12 bits the file says"):
        _levels([4096], stated=12)
    with pytest.raises(DataError, match="values up to 4096, but 12 bits was given"):
        _levels([4096], given=12)


def test_a_narrow_range_is_doubted():
    # 16 bits with an offset, as CT: 31744 to 35839 is a sixteenth of the range.
    assert "31744 to 35839" in to_8_bits(np.array([[31744, 35839]]), "x", stated=None, given=None)[1][0]
    assert to_8_bits(np.array([[0, 8192]]), "x", stated=16, given=None)[1] == []
