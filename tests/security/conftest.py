from tests.commands.ask.conftest import ask, service, study

__all__ = ["ask", "service", "study"]
