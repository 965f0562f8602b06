"""Names from studies, bundles and the command line stay names: no module, file or command (held)."""

import pytest

from dualread import plugins
from dualread.errors import ConfigError, DualReadError
from dualread.models import prompts
from dualread.readers.base import load
from dualread.study.config import resolve
from tests.study.embedded import EMBEDDED

NAMES = [
    *("../x", "../../etc/passwd", "/etc/passwd", "os", "apps.store.gc", "a b", "$(touch x)", "x;y", "x\ny"),
    *("__init__", ".."),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_is_one_of_the_library(name):
    for module in (name, f"readers.{name}"):
        with pytest.raises((ConfigError, ValueError)):
            load(module)
    with pytest.raises((DualReadError, ValueError)):
        plugins.load("readers", name)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_one_of_the_library(name):
    with pytest.raises((ValueError, DualReadError)):
        prompts.template(name)


@pytest.mark.parametrize("name", [*NAMES[:3], *NAMES[5:9], "..", "x\x1b[2J", "", "-rf", "x" * 10**5 + "/"])
def test_a_study_has_a_plain_name(name):
    with pytest.raises(ConfigError, match="study"):
        resolve({**EMBEDDED, "study": name})
