"""What one does here, by name: ``nox`` for the quick checks, ``nox -s tests`` and so on (``nox -l`` lists them)."""

import nox

nox.options.sessions = ["lint"]
nox.options.reuse_existing_virtualenvs = True

QUIET = {"GAUSSFOLD_QUIET": "1", "OPENBLAS_NUM_THREADS": "1"}


# Every session says what it installs and what it runs, in full: one reads one of them at a time.


@nox.session
def tests(session: nox.Session) -> None:
    """The tests, on two cores; arguments go to pytest (``nox -s tests -- tests/gp -k markov``)."""
    session.install("-e", ".[test]")
    session.run("pytest", "-q", "-n", "2", *session.posargs, env=QUIET)


@nox.session
def coverage(session: nox.Session) -> None:
    """The tests with lines and branches counted as the gate counts them, and a page per file in htmlcov/."""
    session.install("-e", ".[test]")
    session.run("pytest", "-q", "-n", "2", "--cov", "--cov-report=html", *session.posargs, env=QUIET)
    session.run("python", "-m", "tools.covered")


@nox.session
def lint(session: nox.Session) -> None:
    """All linters of the gate; ``nox -s lint -- --fix`` mends what can be mended."""
    session.install("-e", ".[lint]")
    session.run("python", "-m", "tools.lint", *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Types alone."""
    session.install("-e", ".[lint]")
    session.run("python", "-m", "tools.lint", "types")


@nox.session
def imports(session: nox.Session) -> None:
    """Who may import whom, alone."""
    session.install("-e", ".[lint]")
    session.run("python", "-m", "tools.lint", "imports")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, guides run and warnings as errors, into output/site (``nox -s docs -- --quick`` runs no guide)."""
    session.install("-e", ".[docs]")
    session.run("python", "-m", "tools.site", *session.posargs)


@nox.session(venv_backend="none")
def house(session: nox.Session) -> None:
    """The code in numbers, and whether one of them is above its limit."""
    session.run("python3", "-m", "tools.house", "--limits", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Speed beside peers (``nox -s bench -- dense``); without a name, what there is."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def experiments(session: nox.Session) -> None:
    """The papers' figures (``nox -s experiments -- NAME``); without a name, what there is."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "experiments", *(session.posargs or ["--list"]))
