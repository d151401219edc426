import pytest

from tests.cli.helpers import run


@pytest.fixture
def cli(capsys, monkeypatch):
    """Run a command in this process: exit code, standard output, standard error."""
    return lambda *args, **options: run(capsys, monkeypatch, *args, **options)
