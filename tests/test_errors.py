import pytest

from dualread.errors import did_you_mean, in_a_line


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("sapmla", ["psr", "saplma", "per"], "'saplma'"),
        ("RLVR", ["rlcr", "rlvr"], "'rlvr'"),
        ("vllm", ["transformers_engine", "vllm_engine"], "'vllm_engine'"),
        (16, [17, 29, 43], "17"),
        (None, ["none", "some"], "'none'"),
    ],
)
def test_the_nearest_name_is_suggested(name, known, nearest):
    assert did_you_mean(name, known) == f" Did you mean {nearest}?"


@pytest.mark.parametrize(("name", "known"), [("x", ["psr", "per"]), ("b", ["a;b"]), (5, [17, 29]), ("psr", [])])
def test_nothing_is_suggested_if_nothing_is_similar(name, known):
    assert did_you_mean(name, known) == ""


def test_the_first_line_of_another_packages_error_is_its_first_line_of_text():
    assert in_a_line(ImportError("\nIt requires timm.\nInstall it.")) == "ImportError: It requires timm."
    assert in_a_line(KeyError()) == "KeyError: no reason given"
