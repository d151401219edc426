"""Batches from anywhere: the same training as the same batches from memory, resumed in the middle, refused in words."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep.batches import batch_rows
from tests.deep.problems import LINEAR, linear, start

METHODS = [gf.deep.VIFA, gf.deep.SWAG, gf.deep.SLANG, gf.deep.MAP]
X, Y, _ = linear(80)


class Loader:
    """A loader that gives, epoch after epoch, what a training in memory would look at."""

    def __init__(self, size=10, seed=0, extra=0, sized=True):
        self.size, self.seed, self.extra, self.epoch = size, seed, extra, 0
        if sized:
            self.__class__ = Sized

    def __iter__(self):
        per_epoch = len(Y) // self.size
        rows = batch_rows(self.seed, self.epoch * per_epoch, per_epoch, len(Y), self.size)
        self.epoch += 1
        for each in rows:
            yield [X[each], Y[each]]
        if self.extra:
            yield [X[: self.extra], Y[: self.extra]]


class Sized(Loader):
    def __len__(self):
        return len(Y) // self.size


@pytest.mark.parametrize("method", METHODS)
def test_an_iterable_trains_like_the_same_batches_in_memory(method):
    options = {} if method is gf.deep.SLANG else {"temperature": 1.0}  # no rows of an iterable can be held out
    in_memory = method(LINEAR, start(), batch_size=10, **options)
    fed = method(LINEAR, start())
    wanted, found = in_memory.fit(X, Y, steps=37), fed.fit(Loader(), steps=37)
    np.testing.assert_allclose(found.belief.mean, wanted.belief.mean, rtol=1e-6)
    np.testing.assert_allclose(found.belief.variance(), wanted.belief.variance(), rtol=1e-5)
    np.testing.assert_allclose(fed.losses, in_memory.losses, rtol=1e-5)


def test_a_short_last_batch_sits_out():
    plain, longer = (gf.deep.VIFA(LINEAR, start()).fit(Loader(extra=extra), steps=37) for extra in (0, 7))
    np.testing.assert_array_equal(plain.belief.mean, longer.belief.mean)


@pytest.mark.parametrize("method", [gf.deep.VIFA, gf.deep.SWAG])
def test_a_training_goes_on_in_the_middle_of_an_iterable(method, tmp_path):
    unbroken = method(LINEAR, start()).fit(Fixed(), steps=60)
    half = method(LINEAR, start())
    half.fit(Fixed(), steps=60, stop=51)
    half.save(tmp_path / "half.gf")
    rest = method(LINEAR, start()).restore(tmp_path / "half.gf")
    found = rest.fit(Fixed(), steps=60, resume=True)
    np.testing.assert_array_equal(found.belief.mean, unbroken.belief.mean)


class Fixed(Sized):
    """The same order every time, as a loader without shuffling has it."""

    def __init__(self):
        self.size, self.seed, self.extra, self.epoch = 10, 0, 0, 0

    def __iter__(self):
        self.epoch = 0
        return super().__iter__()


def test_an_iterator_goes_on_where_it_stands():
    batches = iter(Fixed())
    model = gf.deep.VIFA(LINEAR, start())
    model.fit(batches, n_rows=80, steps=8, stop=3)
    found = model.fit(batches, n_rows=80, steps=8, resume=True)
    wanted = gf.deep.VIFA(LINEAR, start()).fit(iter(Fixed()), n_rows=80)  # one epoch is all there is
    np.testing.assert_array_equal(found.belief.mean, wanted.belief.mean)


def changed(at, how):
    def batches():
        for number, (x, y) in enumerate(Fixed()):
            yield how(x, y) if number == at else (x, y)

    return batches()


NOT_A_NUMBER = X[:10].copy()
NOT_A_NUMBER[4, 1] = np.nan
BAD = {
    "ends": (iter(list(Fixed())[:5]), r"it ended after 5 full batches of 10 rows, and 8 are needed"),
    "wider": (changed(3, lambda x, y: (np.hstack([x, x]), y)), r"batch 3 is float32\[10, 6\], float32\[10\]"),
    "type": (changed(2, lambda x, y: (x.astype(int), y)), r"batch 2 is int64\[10, 3\]"),
    "short twice": (
        changed(3, lambda x, y: (x[:4], y[:4])),
        r"batch 3 is float32\[4, 3\], float32\[4\], and .* but for a last one",
    ),
    "nan": (changed(6, lambda x, y: (NOT_A_NUMBER, y)), r"row 64 of the array \[0\] has NaN or infinity"),
    "rows": (changed(1, lambda x, y: (x, y[:3])), r"the same first axis"),
    "empty": (iter(()), r"without any batch"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_iterable_is_refused_and_nothing_has_changed(name):
    source, words = BAD[name]
    model = gf.deep.SWAG(LINEAR, start())
    model.fit(X, Y, steps=20)
    before = model.posterior.belief.mean.copy()
    with pytest.raises(ValueError, match=words):
        model.fit(source, n_rows=80, steps=8)
    np.testing.assert_array_equal(model.posterior.belief.mean, before)
    assert model.steps == 20


def test_an_iterator_that_ends_while_going_on_takes_back_what_it_taught():
    model = gf.deep.SWAG(LINEAR, start(), burn_in=0, every=1)
    model.fit(Fixed(), steps=300, stop=150)
    before, collected = model.posterior.belief.mean.copy(), model.collected
    with pytest.raises(ValueError, match="it ended after 140 full batches"):
        model.fit(iter([(X[:10], Y[:10])] * 140), n_rows=80, steps=300, resume=True)
    np.testing.assert_array_equal(model.posterior.belief.mean, before)
    assert (model.steps, model.collected) == (150, collected)
    model.fit(Fixed(), steps=300, resume=True)
    unbroken = gf.deep.SWAG(LINEAR, start(), burn_in=0, every=1).fit(Fixed(), steps=300)
    np.testing.assert_array_equal(model.posterior.belief.mean, unbroken.belief.mean)


def test_how_many_rows_there_are_must_be_known():
    model = gf.deep.VIFA(LINEAR, start())
    with pytest.raises(ValueError, match="n_rows=None: an iterable without a length"):
        model.fit(iter(Fixed()))
    with pytest.raises(ValueError, match="n_rows=80: an iterable of batches is needed"):
        model.fit(X, Y, n_rows=80)
    with pytest.raises(ValueError, match=r"n_rows=4"):
        model.fit(Fixed(), n_rows=4)
