from tests.apps.ask.conftest import ask, service, study

__all__ = ["ask", "service", "study"]
