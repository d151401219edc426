"""Where the papers' reference numbers live, when they are there."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
ORACLES = SHARED / "oracles"
DATA = SHARED / "data"
needs_oracles = pytest.mark.skipif(not ORACLES.is_dir(), reason="../shared/oracles is absent")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent")
