"""DICOM files for tests, as bytes; what they say about a patient is made up."""

import io
from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage

PATIENT = "DOE^JANE"


def dicom(values, *, bits=12, signed=False, syntax=ExplicitVRLittleEndian, photometric="MONOCHROME2", **says) -> bytes:
    """A file with the stored values [height, width], [frames, height, width], or [height, width, 3] for RGB.

    Args:
        values: What is stored.
        bits: BitsStored; 8 and fewer are stored in 8 bits.
        signed: Whether values are signed.
        syntax: The transfer syntax.
        photometric: The photometric interpretation.
        says: Other attributes by keyword; None leaves one out.
    """
    return saved(dataset(values, bits=bits, signed=signed, syntax=syntax, photometric=photometric, **says))


def saved(made: Dataset) -> bytes:
    """The file with this data set."""
    file = io.BytesIO()
    made.save_as(file, enforce_file_format=True)
    return file.getvalue()


def compressed(content: bytes, syntax: str, folder: Path) -> bytes:
    """The same file with compressed pixels; `syntax` is a name of GDCM's, `folder` is for its files."""
    import gdcm

    (folder / "plain.dcm").write_bytes(content)
    reader, change, writer = gdcm.ImageReader(), gdcm.ImageChangeTransferSyntax(), gdcm.ImageWriter()
    reader.SetFileName(str(folder / "plain.dcm"))
    assert reader.Read()
    change.SetTransferSyntax(gdcm.TransferSyntax(getattr(gdcm.TransferSyntax, syntax)))
    change.SetInput(reader.GetImage())
    assert change.Change()
    writer.SetFileName(str(folder / "compressed.dcm"))
    writer.SetFile(reader.GetFile())
    writer.SetImage(change.GetOutput())
    assert writer.Write()
    return (folder / "compressed.dcm").read_bytes()


def dataset(
    values, *, bits=12, signed=False, syntax=ExplicitVRLittleEndian, photometric="MONOCHROME2", **says
) -> Dataset:
    """The data set of `dicom`."""
    values = np.asarray(values)
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = syntax
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = SecondaryCaptureImageStorage
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = "1.2.3.4"
    made.PatientName, made.PatientID, made.PatientBirthDate = PATIENT, "4711", "19700101"
    colors = values.ndim == 3 and values.shape[2] == 3
    made.Rows, made.Columns = values.shape[:2] if colors else values.shape[-2:]
    made.SamplesPerPixel = 3 if colors else 1
    if colors:
        made.PlanarConfiguration = 0
    elif values.ndim == 3:
        made.NumberOfFrames = len(values)
    made.PhotometricInterpretation = photometric
    made.BitsAllocated, made.BitsStored, made.HighBit = 8 if bits <= 8 else 16, bits, bits - 1
    made.PixelRepresentation = int(signed)
    made.PixelData = values.astype(("i" if signed else "u") + ("1" if bits <= 8 else "2")).tobytes()
    for keyword, value in says.items():
        if value is None:
            delattr(made, keyword)
        else:
            setattr(made, keyword, value)
    return made


def item(**says) -> list[Dataset]:
    """A sequence of one item."""
    made = Dataset()
    for keyword, value in says.items():
        setattr(made, keyword, value)
    return [made]
