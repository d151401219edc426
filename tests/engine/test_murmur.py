import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

from gaussfold.data.strings import collision_rate, murmur_all, murmur_of
from gaussfold.engine.text.byte_scan import PADDING
from gaussfold.engine.text.murmur import combine, murmur, murmur_short
from tests.reference.parsers import mix


def padded(raw, before=3):
    return np.frombuffer(bytearray(b"x" * before + raw) + bytearray(b"\xaa" * PADDING), np.uint8)


def test_thousands_of_random_strings_hash_as_in_scikit_learn():
    rng = np.random.default_rng(7)
    for _ in range(5000):
        raw = rng.bytes(int(rng.integers(0, 40)))
        seed = int(rng.integers(0, 2**32))
        found = int(murmur(padded(raw), 3, 3 + len(raw), np.uint32(seed)))
        assert found == murmurhash3_32(raw, seed=seed, positive=True)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30), st.integers(0, 2**32 - 1))
def test_text_hashes_as_its_utf8_bytes(text, seed):
    assert murmur_of(text, seed) == murmurhash3_32(text.encode(), seed=seed, positive=True)
    assert murmur_all(["a", text, ""], seed)[1] == murmur_of(text, seed)


def test_a_short_token_hashes_alike_from_its_word():
    rng = np.random.default_rng(8)
    for length in range(8):
        for _ in range(200):
            raw = rng.bytes(length)
            buffer = padded(raw)
            seed = np.uint32(rng.integers(0, 2**32))
            word = np.uint64(int.from_bytes(bytes(buffer[3:11]), "little"))
            assert murmur_short(word, length, seed) == murmur(buffer, 3, 3 + length, seed)


def test_a_pair_hashes_as_the_textbook_says():
    rng = np.random.default_rng(9)
    for first, second in rng.integers(0, 2**32, (500, 2)):
        assert int(combine(np.uint32(first), np.uint32(second))) == mix(int(first), int(second))


def test_the_collision_rate_is_that_of_throwing_balls_into_slots():
    rng = np.random.default_rng(10)
    bits, n = 12, 3000
    slots = rng.integers(0, 2**bits, n)
    counts = np.bincount(slots, minlength=2**bits)
    sharing = (counts[slots] > 1).mean()
    assert abs(collision_rate(int((counts > 0).sum()), bits) - sharing) < 0.03
