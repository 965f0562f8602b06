"""CT through three windows, from DICOM; expected levels are computed by hand."""

import io

import numpy as np
import pytest
from PIL import Image

from dualread.data.given_images import read, stored
from dualread.data.gray import through_windows
from dualread.data.images import open_image
from dualread.data.questions.pictures import Pictures
from dualread.errors import ConfigError
from dualread.schema.data import Dataset
from tests.data.dicoms import dicom, item

MEDGEMMA = ((-1024, 1024), (-135, 215), (0, 80))
CT = {"Modality": "CT", "RescaleSlope": 1, "RescaleIntercept": -1024}

# Hounsfield units, and red, green, blue: 255 * (hu + 1024) / 2048, 255 * (hu + 135) / 350 and 255 * hu / 80, cut off.
LEVELS = {
    -1024: (0, 0, 0),  # air
    -135: (111, 0, 0),  # 255 * 889 / 2048 = 110.69
    -30: (124, 76, 0),  # 255 * 994 / 2048 = 123.76; 255 * 105 / 350 = 76.5, half to even
    -100: (115, 26, 0),  # 255 * 924 / 2048 = 115.05; 255 * 35 / 350 = 25.5, half to even
    0: (128, 98, 0),  # water: 127.5, half to even; 255 * 135 / 350 = 98.36
    40: (132, 128, 128),  # 255 * 1064 / 2048 = 132.48; 255 * 175 / 350 = 255 * 40 / 80 = 127.5, half to even
    80: (137, 157, 255),  # 255 * 1104 / 2048 = 137.46; 255 * 215 / 350 = 156.64
    215: (154, 255, 255),  # 255 * 1239 / 2048 = 154.27
    1024: (255, 255, 255),
    3000: (255, 255, 255),
}


def _colors(content, **options):
    return np.asarray(read(content, ct_windows=MEDGEMMA, **options).image)[0].tolist()


def test_every_value_of_12_bits_is_as_in_the_notebook():
    """The steps that Google's notebook takes, one after another, in the types that numpy gives them there."""
    values = np.arange(-1024, 3072).astype(np.float64)
    for channel, (low, high) in enumerate(MEDGEMMA):
        expected = np.clip(values, low, high).astype(np.float32)
        expected -= low
        expected /= high - low
        expected *= 255.0
        found = through_windows(values, MEDGEMMA)[:, channel]
        assert found.tolist() == np.round(expected, 0).astype(np.uint8).tolist()


def test_stored_values_are_rescaled_first():
    units = np.array([list(LEVELS)])
    assert _colors(dicom(units + 1024, WindowCenter=40, WindowWidth=400, **CT)) == [list(LEVELS[u]) for u in LEVELS]
    # A slope of 2: what is stored is half of (units + 1024).
    even = [unit for unit in LEVELS if unit % 2 == 0]
    doubled = dicom((np.array([even]) + 1024) // 2, **CT | {"RescaleSlope": 2})
    assert _colors(doubled) == [list(LEVELS[unit]) for unit in even]
    signed = dicom(units, bits=16, signed=True, **CT | {"RescaleIntercept": 0, "RescaleType": "HU"})
    assert _colors(signed) == [list(LEVELS[unit]) for unit in LEVELS]


def test_low_values_of_monochrome1_stay_dark_and_padding_is_black():
    values = np.array([[0, 1064, 4000, 2000]])  # -1024 HU, 40 HU, 2976 HU, padding
    content = dicom(values, photometric="MONOCHROME1", PixelPaddingValue=2000, **CT)
    assert _colors(content) == [[0, 0, 0], list(LEVELS[40]), [255, 255, 255], [0, 0, 0]]


def test_a_frame_of_an_enhanced_file_has_its_own_rescale(tmp_path):
    own = [item(PixelValueTransformationSequence=item(RescaleSlope=1, RescaleIntercept=b))[0] for b in (-1024, -1000)]
    content = dicom(np.full((2, 1, 1), 1040), Modality="CT", PerFrameFunctionalGroupsSequence=own)
    (tmp_path / "x.dcm").write_bytes(content)
    shown = [read(tmp_path / f"x.dcm#{n}", ct_windows=MEDGEMMA) for n in (1, 2)]
    # 16 and 40 HU: 255 * 1040 / 2048 = 129.49, 255 * 151 / 350 = 110.01, 255 * 16 / 80 = 51
    assert [np.asarray(found.image)[0, 0].tolist() for found in shown] == [[129, 110, 51], list(LEVELS[40])]


def test_what_is_kept_is_the_colored_picture():
    found = read(dicom([[1064]], **CT), ct_windows=MEDGEMMA)
    assert found.notes == ("CT shown through three windows of Hounsfield units (-1024 to 1024, -135 to 215, 0 to 80)",)
    assert open_image(stored(found)).getpixel((0, 0)) == LEVELS[40]


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"Modality": "MR"}, "DICOM of another modality (MR)"),
        ({}, "DICOM of another modality (none)"),
        ({"Modality": "CT"}, "CT whose values are no Hounsfield units"),
        ({"Modality": "CT", "RescaleSlope": 1}, "CT whose values are no Hounsfield units"),
        (CT | {"RescaleType": "US"}, "CT whose values are no Hounsfield units"),
        (CT | {"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]}, "CT localizer"),
    ],
)
def test_what_has_no_hounsfield_units_is_left_alone_and_says_so(says, why):
    content = dicom([[0, 1445, 4095]], WindowCenter=1000, WindowWidth=500, **says)
    plain, found = read(content), read(content, ct_windows=MEDGEMMA)
    assert found.image.tobytes() == plain.image.tobytes()
    assert found.notes == (*plain.notes, f"ct_windows does not apply: {why}")


def test_ct_in_color_and_pictures_that_are_no_dicom_are_left_alone(tmp_path):
    color = dicom(np.array([[[10, 20, 30]]]), bits=8, photometric="RGB", **CT)
    assert _colors(color) == [[10, 20, 30]]
    assert read(color, ct_windows=MEDGEMMA).notes[-1] == "ct_windows does not apply: CT in color"
    picture, file = Image.new("RGB", (2, 2), (10, 20, 30)), io.BytesIO()
    picture.save(file, "PNG")
    (tmp_path / "a.png").write_bytes(file.getvalue())
    for given in (picture, file.getvalue(), tmp_path / "a.png", np.asarray(picture)):
        assert read(given, ct_windows=MEDGEMMA).notes == ("ct_windows does not apply: no DICOM",)
        assert read(given).notes == ()


def test_the_images_of_a_data_set_are_read_through_its_windows(tmp_path):
    (tmp_path / "ct.dcm").write_bytes(dicom([[1064]], **CT))
    plain, pictures = Pictures(), Pictures(ct_windows=MEDGEMMA)
    for either in (plain, pictures):
        either.files[tmp_path / "ct.dcm"] = either._read(tmp_path / "ct.dcm")
    shown = open_image(pictures.copy(tmp_path / "ct.dcm"))
    assert shown.getpixel((0, 0)) == LEVELS[40]
    assert pictures.files[tmp_path / "ct.dcm"].notes == ("CT shown through three windows of Hounsfield units",)
    assert plain.files[tmp_path / "ct.dcm"].pixel_sha256 != pictures.files[tmp_path / "ct.dcm"].pixel_sha256


def _dataset(windows):
    source = {"label": "CT", "loader": "table", "source": {"folder": "x"}, "splits": ["test"], "prompt": "shared"}
    return Dataset.from_spec({**source, "roles": {"test": "ood"}, "seed": 0, "ct_windows": windows}, "datasets.ct")


def test_the_setting_is_three_windows_that_rise():
    assert _dataset([[-1024, 1024], [-135, 215], [0, 80]]).ct_windows == MEDGEMMA
    assert _dataset(None).ct_windows is None
    for wrong, why in (
        ([[0, 80]] * 2, "ct_windows"),
        ([[0, 80]] * 4, "ct_windows"),
        ([[80, 0]] * 3, r"the window is \[80.*Expected its low end before its high end"),
        ([[1, 1]] * 3, "low end before its high end"),
        ([["0", 80]] * 3, "ct_windows"),
        ("medgemma", "ct_windows"),
    ):
        with pytest.raises(ConfigError, match=why):
            _dataset(wrong)
