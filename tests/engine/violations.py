"""Loops that leave their memory, each by one element: what the sanitising mode is to find (``test_pointers.py``)."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.lane_memory import gather4, load4, pick8, store
from gaussfold.engine.simd.lanes import lanes8, total
from gaussfold.engine.simd.pointers import offset, pointer
from gaussfold.engine.text.byte_scan import load64


@compiled
def own_array(n):
    a = np.ones(n)
    p = pointer(a)
    summed = 0.0
    for i in range(n):
        summed += p[i]
    return summed


@compiled
def element(a, i):
    return pointer(a)[i]


@compiled
def behind(a, i):
    return offset(pointer(a), i)[0]


@compiled
def write(a, i):
    pointer(a)[i] = 1.0
    return 0.0


@compiled
def lanes(a, i):
    return total(load4(a, i))


@compiled
def store8(a, i):
    store(pointer(a), i, lanes8(1.0))
    return 0.0


@compiled
def picked(a, i):
    return total(pick8(pointer(a), pointer(i), 0))


@compiled
def cells(a, i):
    return total(gather4(pointer(a), i, 0)[0])


@compiled
def take_word(a, i):
    return load64(a, i)


@compiled
def index(a, i):
    return a[i]


def tried(function, *args):
    try:
        function(*args)
    except Exception as error:
        return f"{type(error).__name__} {error}"
    return "fine"


if __name__ == "__main__":
    ten = np.arange(10.0)
    bytes_ = np.zeros(10, np.uint8)
    print(tried(own_array, 10))
    for function, inside, outside in (
        (element, 9, 10),
        (element, 0, -1),
        (behind, 9, 10),
        (behind, 0, -1),
        (write, 9, 10),
        (lanes, 6, 7),
        (lanes, 0, -1),
        (store8, 2, 3),
        (index, 9, 10),
    ):
        print(tried(function, ten, inside), "|", tried(function, ten, outside))
    print(tried(take_word, bytes_, 2), "|", tried(take_word, bytes_, 3))
    print(tried(picked, ten, np.full(8, 9)), "|", tried(picked, ten, np.r_[np.zeros(7, int), 10]))
    print(tried(cells, ten, np.array([0, 1, 2, 4])), "|", tried(cells, ten, np.array([0, 1, 2, 5])))
