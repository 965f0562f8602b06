from tests.tiny import one_architecture as pytest_generate_tests  # noqa: F401
