"""Shell completion, as a shell asks for it."""

import pytest

from tests.cli.helpers import process


@pytest.fixture
def asked(monkeypatch):
    from tests.cli import helpers

    def ask(*args, **more):
        monkeypatch.setattr(helpers, "ENVIRONMENT", {**helpers.ENVIRONMENT, **more})
        monkeypatch.setattr(
            helpers,
            "COMMAND",
            [helpers.COMMAND[0], "-c", "import sys; sys.argv[0] = 'gaussfold'; from gaussfold.cli import main; main()"],
        )
        code, out, err = process(*args)
        assert code == 0, err
        return out.decode()

    return ask


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("gaussfold tr", ["train"]),
        ("gaussfold train --pri", ["--prior-std"]),
        ("gaussfold train --likelihood p", ["probit", "poisson"]),
        ("gaussfold convert --to ", ["vw", "svmlight", "csv", "tsv", "parquet", "arrow"]),
    ],
)
def test_words_are_completed(asked, words, found):
    count = len(words.split(" ")) - 1
    out = asked(_GAUSSFOLD_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(count))
    assert out.split() == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_and_installed(asked, tmp_path, shell):
    more = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = asked("--show-completion", shell, **more)
    assert "_GAUSSFOLD_COMPLETE" in shown
    asked("--install-completion", shell, **more)
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_GAUSSFOLD_COMPLETE" in text for text in written)
