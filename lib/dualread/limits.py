"""What a file of somebody else may name, and how much such files and requests may cost; docs/trust.md says it for each.

A name in a downloaded file is looked up among our own plugins. It leads to the import of another package only if the
user has named that package: on the command line (`--plugins`), as an argument `plugins`, or in a study.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from dualread import plugins
from dualread.errors import DualReadError

# --- A reader or bundle

JSON_BYTES = 10_000_000  # of bundle.json and of thresholds.json; those of a study have some thousand
HEADER_BYTES = 50_000_000  # of a reader's header, which may hold the questions of the training data
STORED_ANSWERS = 100  # of a bundle, by which an engine is checked
STORED_CHARACTERS = 1000  # of the question of each
STORED_TOKENS = 2**17
TENSOR_BYTES = 200_000_000  # of each file of states in it; 1,000 states of 8,192 numbers have 33 million

# --- A checkpoint

CONFIG_LAYERS = 256  # of each part; transformers makes as many objects
CONFIG_SIZE = 10**7  # of a layer, or a number of its parts
CONFIG_NUMBER = 10**12  # any other
TEMPLATE_SECONDS = 10.0  # of CPU time for a chat template, so that other work on the machine does not count
TEMPLATE_BYTES = 10**9  # of memory for it, beyond what its process has

# --- A study

YAML_BYTES = 10**7
YAML_ENTRIES = 10**6  # each alias written out: ten short lines can stand for a thousand million

# --- A table, a log, an archive

TABLE_ROWS = 20_000_000
TABLE_COLUMNS = 5_000
LINE_CHARACTERS = 64_000_000
CELL_CHARACTERS = 16_000_000
COLUMN_BYTES = 4_000_000_000  # of texts in Parquet, in which equal ones take no room
LOG_BYTES = 2_000_000_000
UNPACKED_BYTES = 4_000_000_000  # of a .gz, of which nobody sees on disk how large it is
ALWAYS_UNPACKED_BYTES = 64_000_000
EXPANSION = 200  # times the packed size: tables and logs have 3 to 20, images hardly more than 1
NAME_BYTES = 255  # of a file or a folder, on any common file system

# --- A picture

IMAGE_PIXELS = 89_478_485
IMAGE_BYTES = 1_000_000_000
IMAGE_FRAMES = 1000  # Pillow has to read a file from its first frame to the one that is wanted
JPEG_SCANS = 100  # each decodes the whole picture again, and can be a few bytes
DICOM_ITEMS = 200_000  # each takes 100 microseconds and 1.4 kB; thousands of frames have some ten each
GDCM_BYTES = 8_000_000_000  # of memory that its process may ask for
GDCM_SECONDS = 60  # for one image

# --- A reply of a service

REPLY_BYTES = 32 * 2**20  # 20 answers of 1,024 tokens with log-probabilities have 5
RESPONSE_BYTES = 2**28  # of a line in a file of replies; eight completions with all log-probabilities have a hundredth


class UntrustedNameError(DualReadError):
    """A file names a module of a package that the user has not named, so that nothing of it is imported."""


def check_plugin(family: str, name: str, packages: Iterable[str], where: str) -> None:
    """Check that a file may name this plugin; nothing is imported or looked for.

    Args:
        family: The plugin family, or "prompts", which are texts.
        name: The plugin, as the file names it. That a name without a package is one of ours is checked where it is
            loaded.
        packages: The packages, or single modules of them, that the user has named.
        where: File and field, for the message.

    Raises:
        UntrustedNameError: The name is that of a module of another package.
    """
    known, package = plugins.known(family) if family in plugins.FAMILIES else (), name.partition(".")[0]
    ours = {f"dualread.{plugins.package_of(family)}.{plugin}" for plugin in known}
    if not plugins.is_foreign(name) or name in ours or {name, package} & set(packages):
        return
    such_as = f", such as {known[0]!r}" if known else ""
    raise UntrustedNameError(
        f"{where}: {name!r:.200} is in another package, and no file can have something of it imported or read."
        f" Expected one of our {family}{such_as}. If you know that package and trust its code, name it yourself:"
        f" --plugins {package:.200}, in Python plugins=[{package!r:.200}]."
    )


def leaves_folder(name: str) -> bool:
    """Return whether a path of a file is empty, absolute, or contains `..`."""
    path = PurePosixPath(name.replace("\\", "/"))
    return not name.strip() or path.is_absolute() or ".." in path.parts


def unpacked_bytes(n_packed: int) -> int:
    """Return to how many bytes so many packed ones may unpack."""
    return max(ALWAYS_UNPACKED_BYTES, EXPANSION * n_packed)


# --- What a client may send to a server, and how long it may take

REQUEST_VALUES = 50_000  # of the JSON of a request; reading them takes less than half a second
REQUEST_CHARACTERS = 100_000  # of all its texts: far more than fits into a prompt
MESSAGES = 100  # of a request
MESSAGE_PARTS = 1000
URL_ESCAPES = 1_000_000  # of a data URL
CHOICES = 128  # of a request, as in OpenAI's API
TOP_LOG_PROBS = 20  # for each token, as there
STOP_TEXTS = 16
STOP_CHARACTERS = 1000  # of each
SENT_OPTIONS = 100  # that are read; a question has at most ten
ID_CHARACTERS = 200  # of the name of a question
COMPLETION_TOKENS = 1000  # vLLM is opened for a few more, and transformers reserves memory for all of them
REQUESTS_READ = 2  # that are parsed and whose images are decoded at once; one can take half a gigabyte
BODIES = 8  # of all requests that are being sent or decoded: so many times the largest one
SECONDS_FOR_HEAD = 5  # of a request
SECONDS_FOR_BODY = 60
SECONDS_TO_TAKE = 60  # what was sent


@dataclass(frozen=True, kw_only=True)
class ClientLimits:
    """How much clients may send to a server; its options change it.

    Attributes:
        megabytes: Of one request, with its images in base64.
        images: In one request.
        megapixels: Of all images of one request.
        requests: That are answered or wait at once.
    """

    megabytes: int = 32
    images: int = 8
    megapixels: int = 50
    requests: int = 256
