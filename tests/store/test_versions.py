import importlib.metadata

import pytest

from dualread.store import key as module
from dualread.store.key import public_versions, replaced


@pytest.fixture
def installed(monkeypatch):
    """Pretend that exactly five distributions are installed."""
    versions = {"torch": "2.13.0+cpu", "pillow": "13.0.0", "scikit-learn": "1.9.1", "Odd_Name": "3.0", "numpy": "2.4"}

    def version(name):
        for known, found in versions.items():
            if known.lower().replace("_", "-") == name.lower().replace("_", "-"):
                return found
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module.importlib.metadata, "version", version)
    monkeypatch.setattr(module.importlib.metadata, "packages_distributions", lambda: {"odd": ["Odd_Name"]})
    monkeypatch.setattr(module, "find_spec", lambda package: "found" if package == "odd" else None)
    for function in (module._versions, module._providers):
        function.cache_clear()
    yield versions
    for function in (module._versions, module._providers):
        function.cache_clear()


def test_versions_are_public_and_named_by_distribution(installed):
    found = public_versions({"torch", "PIL", "sklearn", "odd"})
    assert found == {"torch": "2.13.0", "pillow": "13.0.0", "scikit-learn": "1.9.1", "odd-name": "3.0"}


def test_all_distributions_are_not_searched_for_a_package_that_is_not_there(installed):
    public_versions(["vllm"])
    assert module._providers.cache_info().misses == 0


def test_a_package_that_was_upgraded_or_removed_is_named_with_both_versions(installed):
    versions = public_versions({"torch", "PIL", "odd", "vllm"})
    assert replaced(versions) == []
    installed["pillow"] = "14.0.0"
    del installed["Odd_Name"]
    installed["vllm"] = "0.32"
    assert sorted(replaced(versions)) == [
        "odd-name (3.0, now not installed)",
        "pillow (13.0.0, now 14.0.0)",
        "vllm (not installed, now 0.32)",
    ]
