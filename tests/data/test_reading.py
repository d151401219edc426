import pytest

from gaussfold.data.reading import Reading


def test_how_names_are_hashed_is_kept_and_older_models_hashed_everything():
    assert Reading.from_json(Reading(hash="all").to_json()).hash == "all"
    assert Reading.from_json(Reading().to_json()).hash == "strings"
    old = Reading().to_json()
    del old["hash"]
    assert Reading.from_json(old).hash == "all"
    with pytest.raises(ValueError, match="hash='some': allowed are 'strings', 'all'"):
        Reading(hash="some")
