"""DICOM as it is to be shown; expected levels are computed by hand from the standard's formulas."""

import io
import math

import numpy as np
import pytest
from PIL import Image
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.uid import ExplicitVRBigEndian

from dualread.data import dicom as rendering
from dualread.data import dicom_files
from dualread.data.given_images import read, stored
from dualread.data.images import open_image, pixel_sha256
from dualread.errors import DataError
from tests.data.dicoms import PATIENT, compressed, dataset, dicom, item, saved

# Gray levels 20, 90, 140, 200 of 255, in 12 bits: level * 4095 // 255.
SHOWN = [20, 90, 140, 200]
INVERSE = [255 - level for level in SHOWN]
TWELVE = np.array([[321, 1445, 2248, 3211]])
WHOLE = {"WindowCenter": 2048, "WindowWidth": 4096}  # 0 is black, 4095 white
# Hounsfield units -1024 + v: window 40/400 is black at and below 39.5 - 199.5 = -160, white above 239.
# 40 -> ((40 - 39.5) / 399 + .5) * 255 = 127.8
UNITS = np.array([[0, 864, 1064, 1263, 3000]])
SEVERAL = {"RescaleIntercept": -1024, "WindowCenter": [40, -600], "WindowWidth": [400, 1500]}
PADDED = {"WindowCenter": 2048, "WindowWidth": 4096, "PixelPaddingValue": 2000}


def lut(first, values):
    return item(LUTDescriptor=[len(values), first, 8], LUTData=np.array(values, "<u2").tobytes())


def of_window(value, function):
    """A value that is stored twice as large."""
    window = {"WindowCenter": 100, "WindowWidth": 100, "VOILUTFunction": function}
    return dicom([[2 * value]], RescaleSlope=0.5, RescaleIntercept=0, **window)


def with_pixels(values, **says):
    made = dataset(TWELVE, **WHOLE, **says)
    made.PixelData = values.tobytes()
    return saved(made)


SHARED = item(PixelValueTransformationSequence=item(RescaleSlope=1, RescaleIntercept=100))
OF_FRAMES = [item(FrameVOILUTSequence=item(WindowCenter=c, WindowWidth=1))[0] for c in (100, 4000)]
FRAMES = dicom(
    np.stack([TWELVE, TWELVE]), PerFrameFunctionalGroupsSequence=OF_FRAMES, SharedFunctionalGroupsSequence=SHARED
)
LEVELS = {
    "a window over all bits": (dicom(TWELVE, **WHOLE), SHOWN),
    "white is 0": (dicom(4095 - TWELVE, photometric="MONOCHROME1", **WHOLE), SHOWN),
    "a presentation that inverts": (dicom(TWELVE, **WHOLE, PresentationLUTShape="INVERSE"), INVERSE),
    "8 bits": (dicom([SHOWN], bits=8), SHOWN),
    "the first of several windows, after the rescale": (dicom(UNITS, RescaleSlope=1, **SEVERAL), [0, 0, 128, 255, 255]),
    "a slope of 2": (dicom(UNITS[:, :3] // 2, RescaleSlope=2, **SEVERAL), [0, 0, 128]),
    "LINEAR": (of_window(99.5, "LINEAR"), [128]),  # half of 255
    "LINEAR_EXACT": (of_window(125, "LINEAR_EXACT"), [191]),  # ((125 - 100) / 100 + .5) * 255 = 191.25
    "SIGMOID": (of_window(125, "SIGMOID"), [math.floor(255 / (1 + math.exp(-1)) + 0.5)]),  # -4 * (125 - 100) / 100 = -1
    "SIGMOID at its center": (of_window(100, "SIGMOID"), [128]),
    "a window of width 1 is a threshold": (dicom([[99, 100]], WindowCenter=100, WindowWidth=1), [0, 255]),
    "a VOI LUT comes before a window": (
        *(dicom([[0, 1, 2, 3]], VOILUTSequence=lut(0, [255, 10, 20, 30]), WindowCenter=2, WindowWidth=4),),
        [255, 10, 20, 30],
    ),
    **{
        f"a VOI LUT of 8 bits with 4096 entries from {first}": (
            dicom(
                np.array([[0, 15, 16, 4095]]) + first,
                signed=first < 0,
                VOILUTSequence=lut(first, np.arange(4096) // 16),
            ),
            [0, 0, 1, 255],
        )
        for first in (0, -2048)
    },
    "values beyond a VOI LUT take its ends": (
        *(dicom([[0, 4095]], VOILUTSequence=lut(8, [9, 10, 20, 30]), RescaleSlope=40, RescaleIntercept=0),),
        [9, 30],
    ),
    "no window": (dicom(TWELVE), SHOWN),
    "no window, signed": (dicom(TWELVE - 2048, signed=True), SHOWN),
    "no window, a negative slope": (dicom(TWELVE, RescaleSlope=-1, RescaleIntercept=0), INVERSE),
    "16 bits that are used": (dicom(TWELVE * 16, bits=16), SHOWN),
    "bits above those that are stored": (with_pixels(TWELVE.astype("u2") | 0x8000), SHOWN),
    "big endian": (with_pixels(TWELVE.astype(">u2"), syntax=ExplicitVRBigEndian), SHOWN),
    "signed": (dicom(TWELVE - 2048, signed=True, WindowCenter=0, WindowWidth=4096), SHOWN),
    "padding is black": (dicom([[0, 3211, 2000]], **PADDED), [0, 200, 0]),
    "padding of a negative": (dicom([[2000, 4095 - 3211]], photometric="MONOCHROME1", **PADDED), [0, 200]),
    # 1999 * 255 / 4095 = 124.5 and 2011 * 255 / 4095 = 125.2
    "a range of padding": (dicom([[1999, 2000, 2010, 2011]], PixelPaddingRangeLimit=2010, **PADDED), [124, 0, 0, 125]),
    "padding of CT": (dicom([[-2000, 0, 4095 - 2048]], signed=True, PixelPaddingValue=-2000), [0, 128, 255]),
}
NOTES = {
    "the first of several windows, after the rescale": "DICOM shown by its first window (center 40, width 400)",
    "a VOI LUT comes before a window": "DICOM shown by its first VOI LUT",
    "no window": "DICOM without a window, shown by its bits (12)",
}


def _levels(content, **options):
    return np.asarray(read(content, **options).image)[..., 0].ravel().tolist()


@pytest.mark.parametrize("name", LEVELS)
def test_levels(name):
    content, expected = LEVELS[name]
    assert _levels(content) == expected
    if name in NOTES:
        assert read(content).notes == (NOTES[name],)


@pytest.mark.parametrize("seed", range(20))
def test_the_whole_way_agrees_with_pydicom_s_own(seed):
    rng = np.random.default_rng(seed)
    bits, signed = int(rng.integers(10, 17)), bool(rng.integers(2))
    low = -(2 ** (bits - 1)) if signed else 0
    values = rng.integers(low, low + 2**bits, (8, 9))
    says = {"RescaleSlope": float(rng.choice([0.5, 1, 2.25])), "RescaleIntercept": float(rng.integers(-2000, 100))}
    says |= {"WindowCenter": float(rng.integers(-500, 3000)), "WindowWidth": float(rng.integers(2, 4000))}
    made = dataset(values, bits=bits, signed=signed, **says)
    shown = apply_voi_lut(apply_modality_lut(values, made), made)
    # pydicom's output is in the range of the rescaled stored values, here from 0 to 1.
    ends = apply_modality_lut(np.array([low, low + 2**bits - 1]), made)
    expected = (shown - ends[0]) / (ends[1] - ends[0]) * 255
    found = np.asarray(read(dicom(values, bits=bits, signed=signed, **says)).image, dtype=float)[..., 0]
    assert np.abs(found - expected).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("low", [0, -2048])
def test_16_bits_that_are_dark_need_a_window_or_a_word_and_a_few_bright_pixels_do_not_hide_it(low):
    content = dicom(TWELVE + low, bits=16, signed=low < 0)
    with pytest.raises(DataError, match="small part"):
        read(content)
    assert _levels(content, bits=12) == SHOWN
    values = np.tile(TWELVE + low, (100, 1))
    values[0, 0] = 30_000
    with pytest.raises(DataError, match="small part"):
        read(dicom(values, bits=16, signed=low < 0))
    assert read(dicom(values, bits=16, signed=low < 0, PixelPaddingValue=30_000), bits=12).image.size == (4, 100)
    values[:2] = 30_000  # one in fifty is a part of the picture
    assert read(dicom(values, bits=16, signed=low < 0)).image.size == (4, 100)


def test_a_frame_is_named_or_the_file_is_refused(tmp_path):
    content = dicom(np.stack([TWELVE * 0, TWELVE, TWELVE * 0]), **WHOLE)
    path = tmp_path / "IM000001"  # as PACS export them: no suffix
    path.write_bytes(content)
    for given in (path, content):
        with pytest.raises(DataError, match="of 3 frames"):
            read(given)
    assert _levels(tmp_path / "IM000001#2") == SHOWN
    assert _levels(tmp_path / "IM000001#1") == [0] * 4
    assert read(tmp_path / "IM000001#1").doubts == ("the picture has a single color (0, 0, 0)",)


def test_enhanced_files_say_it_per_frame_or_for_all():
    shown = [np.asarray(rendering.render(FRAMES, "x", frame=k).image)[..., 0].ravel().tolist() for k in (1, 2)]
    assert shown == [[255] * 4, [0] * 4]  # 3211 + 100 < 4000


def test_colors_and_palettes():
    colors = np.array([[[10, 20, 30], [200, 100, 0]]])
    assert np.asarray(read(dicom(colors, bits=8, photometric="RGB")).image).tolist() == colors.tolist()
    luts = {
        f"{name}PaletteColorLookupTable{part}": value
        for name, levels in (("Red", [0, 10]), ("Green", [0, 20]), ("Blue", [0, 30]))
        for part, value in (("Descriptor", [2, 0, 8]), ("Data", bytes(levels)))
    }
    palette = dicom([[0, 1]], bits=8, photometric="PALETTE COLOR", **luts)
    assert np.asarray(read(palette).image).tolist() == [[[0, 0, 0], [10, 20, 30]]]
    # Full-range YBR of a gray 100 is (100, 128, 128).
    ybr = dicom(np.array([[[100, 128, 128]]]), bits=8, photometric="YBR_FULL")
    assert np.asarray(read(ybr).image).tolist() == [[[100, 100, 100]]]


@pytest.mark.parametrize(
    "syntax", ["RLELossless", "JPEG2000Lossless", "JPEGLSLossless", "JPEGLosslessProcess14_1", "JPEGLosslessProcess14"]
)
def test_compressed_pixels(tmp_path, syntax):
    assert _levels(compressed(dicom(np.tile(TWELVE, (8, 4)), **WHOLE), syntax, tmp_path)) == SHOWN * 32


def test_a_file_that_ends_the_decoder_is_refused_and_the_next_one_is_read(tmp_path):
    good = compressed(dicom(np.tile(TWELVE, (8, 4)), **WHOLE), "JPEGLosslessProcess14_1", tmp_path)
    for damaged in (good[: len(good) - 40], good.replace(b"\xff\xc3\x00", b"\xff\xc3\xff")):
        with pytest.raises(DataError, match="cannot be decoded"):
            read(damaged)
    dicom_files._processes[0].kill()  # as GDCM does
    with pytest.raises(DataError, match="cannot be decoded"):
        read(good)
    assert _levels(good) == SHOWN * 32


def test_what_is_kept_is_the_picture_and_nothing_about_the_patient():
    content = dicom(TWELVE, **WHOLE)
    assert PATIENT.encode() in content
    found = read(content)
    assert (found.private, found.own) == (True, False)
    png = stored(found)
    assert PATIENT.encode() not in png
    assert pixel_sha256(open_image(png)) == pixel_sha256(found.image)
    assert Image.open(io.BytesIO(png)).info == {}
