"""Model files: round trips, refusals, and what a crash leaves behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as to_bytes

import gaussfold
from gaussfold import store
from gaussfold.store import StoreError, decode_labels, decode_rng, encode_labels, encode_rng, layout, models

ROOT = Path(__file__).resolve().parents[1]


class ToyBelief:
    """Arrays are everything."""

    def __init__(self, **arrays):
        self.arrays = arrays

    def state(self):
        return self.arrays

    @classmethod
    def from_state(cls, arrays):
        return cls(**arrays)


class ToyModel:
    """Parameters and arrays."""

    def __init__(self, prior_std, labels=None, rng=None, mean=None):
        self.prior_std, self.labels, self.rng, self.mean = prior_std, labels, rng, mean

    def state(self):
        return {} if self.mean is None else {"mean": self.mean}

    def store_header(self):
        labels = None if self.labels is None else encode_labels(self.labels)
        return {"prior_std": self.prior_std, "classes": labels, "rng": encode_rng(self.rng)}

    @classmethod
    def from_store(cls, header, arrays):
        labels = None if header["classes"] is None else decode_labels(header["classes"])
        return cls(header["prior_std"], labels, decode_rng(header["rng"]), arrays.get("mean"))


class Stranger:
    def state(self):
        return {}


@pytest.fixture(autouse=True)
def _toys(monkeypatch):
    for toy in (ToyBelief, ToyModel):
        monkeypatch.setitem(store.KINDS, toy.__name__, __name__)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def belief(seed=0):
    rng = np.random.default_rng(seed)
    return ToyBelief(mean=rng.normal(size=3), factor=rng.normal(size=(3, 3)), count=np.array(7))


def same(a, b):
    assert a.arrays.keys() == b.arrays.keys()
    for name, value in a.arrays.items():
        other = b.arrays[name]
        assert value.dtype == other.dtype
        assert value.shape == other.shape
        assert value.tobytes() == other.tobytes()
    return True


# --- round trips ---------------------------------------------------------------------------------


def test_arrays_come_back_bit_for_bit(path):
    odd = ToyBelief(
        special=np.array([np.nan, -0.0, np.inf, 5e-324, 1 / 3]),
        scalar=np.array(0.7),
        empty=np.zeros((0, 5)),
        flags=np.array([True, False]),
        counts=np.array([2**62 + 1, -3]),
        single=np.array([0.1], dtype=np.float32),
        fortran=np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        strided=np.arange(12.0).reshape(3, 4)[:, ::2],
        swapped=np.array([1.5, -2.0], dtype=">f8"),
    )
    store.save(odd, path)
    back = store.load(path)
    odd.arrays["swapped"] = odd.arrays["swapped"].astype(float)  # values matter, byte order is the machine's
    assert same(odd, back)


def test_memory_order_and_ownership_survive(path):
    factor = np.asfortranarray(np.random.default_rng(1).normal(size=(4, 3)))
    store.save(ToyBelief(factor=factor, mean=np.ones(3)), path)
    back = store.load(path).arrays
    assert back["factor"].flags.f_contiguous
    assert not back["factor"].flags.c_contiguous
    for array in back.values():
        assert array.flags.writeable
        array += 1.0  # not a view of the file
    assert same(store.load(path), ToyBelief(factor=factor, mean=np.ones(3)))


def test_a_model_with_parameters(path):
    rng = np.random.default_rng(5)
    rng.normal(size=11)
    model = ToyModel(0.7, np.array(["no", "yes, ü"]), rng, np.array([0.25, -1.5]))
    store.save(model, path)
    back = store.load(path)
    assert back.prior_std == 0.7
    assert back.labels.tolist() == ["no", "yes, ü"]
    np.testing.assert_array_equal(back.mean, model.mean)
    np.testing.assert_array_equal(back.rng.normal(size=5), rng.normal(size=5))


def test_a_model_without_arrays(path):
    store.save(ToyModel(2.5), path)
    assert store.load(path).prior_std == 2.5
    assert store.load(path).mean is None


def test_saving_changes_nothing(path):
    model = belief()
    before = {name: value.tobytes() for name, value in model.arrays.items()}
    store.save(model, path)
    first = path.read_bytes()
    store.save(model, path)
    assert path.read_bytes() == first  # deterministic: the same model is the same file
    assert {name: value.tobytes() for name, value in model.arrays.items()} == before


@pytest.mark.parametrize("kind", [str, Path])
def test_replacing_keeps_permissions_and_follows_links(tmp_path, kind):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    store.save(belief(), kind(link))
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert same(store.load(kind(real)), belief())


def test_a_new_file_obeys_the_umask(path):
    old = os.umask(0o027)
    try:
        store.save(belief(), path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_long_file_name(tmp_path):
    path = tmp_path / ("m" * 255)
    store.save(belief(), path)
    assert same(store.load(path), belief())


def test_the_file_is_plain_safetensors(path):
    from safetensors.numpy import load_file

    model = belief()
    store.save(model, path)
    np.testing.assert_array_equal(load_file(path)["factor"], model.arrays["factor"])


@pytest.mark.parametrize("kind", ["DenseGaussian", "StreamingClassifier", "StreamingRegressor"])
def test_a_loaded_model_continues_the_stream_bit_for_bit(path, kind):
    import gaussfold as gf

    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(90, 4)), rng.integers(0, 2, 90).astype(float)
    if kind == "DenseGaussian":
        models = [gf.DenseGaussian.isotropic(4, std=0.7, mean=0.2) for _ in range(2)]
        learn, state = (lambda m, r: gf.fold(m, gf.likelihoods.Bernoulli(), X[r], y[r])), lambda m: m.state()
    else:
        models = [getattr(gf, kind)(prior_std=0.7, forgetting=0.97) for _ in range(2)]
        learn, state = (lambda m, r: m.partial_fit(X[r], y[r])), lambda m: m.posterior_.state()
    straight, stopped = models
    first, second = slice(0, 37), slice(37, 90)
    learn(straight, first)
    learn(stopped, first)
    store.save(stopped, path)
    resumed = store.load(path)
    assert type(resumed) is type(straight)
    for model in (straight, stopped, resumed):  # saving changed nothing either
        learn(model, second)
    for name, value in state(straight).items():
        assert state(resumed)[name].tobytes() == value.tobytes()
        assert state(stopped)[name].tobytes() == value.tobytes()


def test_every_kind_can_be_imported_and_has_the_methods():
    import importlib

    for kind, module in store.KINDS.items():
        cls = getattr(importlib.import_module(module), kind)
        assert callable(cls.state)
        assert hasattr(cls, "from_state") != hasattr(cls, "from_store")


# --- versions ------------------------------------------------------------------------------------


def forge(path, arrays, **changes):
    """A file with a valid checksum and a header of our choosing."""
    header = {"format": layout.FORMAT, "kind": "ToyBelief", "version": "0.1.0", "fortran": [], "model": {}}
    header.update(changes)
    header = {k: v for k, v in header.items() if v is not ...}
    header.setdefault("sha256", layout.digest(header, arrays))
    path.write_bytes(to_bytes(arrays, metadata={"gaussfold": json.dumps(header)}))


def test_old_versions_are_migrated_step_by_step(path, monkeypatch):
    old = {"mu": np.array([1.0, 2.0]), "variance": np.array([4.0, 9.0])}
    forge(path, old, format=1, model={"sigma": 0.7}, kind="ToyBelief")

    def one_to_two(kind, header, arrays):
        assert (kind, header) == ("ToyBelief", {"sigma": 0.7})
        return header, {"mean": arrays["mu"], "variance": arrays["variance"]}

    def two_to_three(kind, header, arrays):
        return header, {"mean": arrays["mean"], "std": np.sqrt(arrays["variance"])}

    monkeypatch.setattr(layout, "FORMAT", 3)
    monkeypatch.setattr(layout, "MIGRATIONS", {1: one_to_two, 2: two_to_three})
    assert same(store.load(path), ToyBelief(mean=np.array([1.0, 2.0]), std=np.array([2.0, 3.0])))
    monkeypatch.setattr(layout, "MIGRATIONS", {2: two_to_three})
    with pytest.raises(StoreError, match="damaged"):
        store.load(path)


def test_a_later_format_says_upgrade(path):
    forge(path, {}, format=99, version="7.1")
    with pytest.raises(StoreError, match=r"format 99, written by gaussfold 7\.1.*reads formats 1 to 2; upgrade"):
        store.load(path)


def test_an_unknown_kind_is_named(path):
    forge(path, {}, kind="os.system")
    with pytest.raises(StoreError, match=r"it holds a 'os\.system'; this gaussfold knows .*ToyModel"):
        store.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "1"}, {"format": True}, {"format": 0}, {"format": ...}, {"kind": ...}, {"model": ...},
        {"sha256": "00"}, {"sha256": None},
        {"fortran": ["absent"]}, {"fortran": 3}, {"kind": ["x"]}, {"kind": "ToyModel", "model": {"no": 1}},
    ],
)  # fmt: skip
def test_a_forged_header_is_refused(path, changes):
    forge(path, {}, **changes)
    with pytest.raises(StoreError, match=r"model\.safetensors"):
        store.load(path)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\x00", "[" * 100_000])
def test_a_header_that_is_no_json_object_is_refused(path, text):
    path.write_bytes(to_bytes({}, metadata={"gaussfold": text}))
    with pytest.raises(StoreError, match="header is damaged"):
        store.load(path)


# --- refusals ------------------------------------------------------------------------------------


def test_every_truncation_is_refused(path):
    store.save(belief(), path)
    blob = path.read_bytes()
    assert len(blob) < 2000  # small enough to cut at every byte: length word, header, padding, each array
    for length in range(len(blob)):
        path.write_bytes(blob[:length])
        with pytest.raises(StoreError, match=r"truncated|header|damaged"):
            store.load(path)
    for extra in (b"\x00", b" ", blob):
        path.write_bytes(blob + extra)
        with pytest.raises(StoreError):
            store.load(path)


@given(data=st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_flipped_bytes_are_refused_or_harmless(tmp_path, data):
    path = tmp_path / "flip"
    blob = bytearray(b"".join(models.serialise(belief())))
    for place in data.draw(st.lists(st.integers(0, len(blob) - 1), min_size=1, max_size=3, unique=True)):
        blob[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(blob)
    try:
        back = store.load(path)
    except StoreError:
        return
    assert same(back, belief())  # for instance a space of the padding that became a tab


def test_every_single_bit_of_the_arrays_is_guarded(path):
    store.save(belief(), path)
    blob = path.read_bytes()
    start = 8 + int.from_bytes(blob[:8], "little")
    for bit in range(8 * start, 8 * len(blob), 7):
        flipped = bytearray(blob)
        flipped[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(flipped)
        with pytest.raises(StoreError, match="checksum"):
            store.load(path)


def test_swapped_arrays_are_refused(path):
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    forge(path, {"mean": a, "std": b})
    honest = path.read_bytes()
    path.write_bytes(honest.replace(a.tobytes() + b.tobytes(), b.tobytes() + a.tobytes()))
    assert path.read_bytes() != honest
    with pytest.raises(StoreError, match="checksum"):
        store.load(path)


def test_foreign_files_are_refused(path):
    path.write_bytes(to_bytes({"w": np.ones(3)}))
    with pytest.raises(StoreError, match="without 'gaussfold'"):
        store.load(path)
    path.write_bytes(b"\x80\x04K\x01.")  # a pickle
    with pytest.raises(StoreError, match="no safetensors file"):
        store.load(path)


def test_missing_files_and_directories(tmp_path):
    with pytest.raises(StoreError, match="absent' does not exist; give the path"):
        store.load(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        store.load(tmp_path / "absent")
    with pytest.raises(StoreError, match="is a directory"):
        store.load(tmp_path)
    with pytest.raises(StoreError, match="is a directory; give the name"):
        store.save(belief(), tmp_path)
    with pytest.raises(StoreError, match="create it first"):
        store.save(belief(), tmp_path / "no" / "where")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a regular file"):
        store.save(belief(), tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a regular file"):
        store.load(tmp_path / "pipe")
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_what_cannot_be_stored(path):
    class ToyModel:  # the right name is not enough
        def state(self):
            return {}

    for model in (Stranger(), ToyModel(), {"a": 1}, None):
        with pytest.raises(StoreError, match=r"cannot be stored; allowed are .*DenseGaussian"):
            store.save(model, path)
    with pytest.raises(StoreError, match="array 'z' of ToyBelief has dtype complex128"):
        store.save(ToyBelief(z=np.array([1j])), path)
    with pytest.raises(StoreError, match="cannot be JSON"):
        store.save(globals()["ToyModel"](object()), path)
    assert not path.exists()


def test_a_file_without_permission_is_an_oserror(path, monkeypatch):
    store.save(belief(), path)

    def refuse(self, mode="r"):  # root may read everything, so chmod would not do
        raise PermissionError(errno.EACCES, "permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        store.load(path)
    assert not isinstance(caught.value, ValueError)


# --- crashes -------------------------------------------------------------------------------------


def untouched(path):
    return same(store.load(path), belief()) and [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("fault", [OSError(errno.EIO, "input/output error"), KeyboardInterrupt()])
def test_a_failure_before_the_rename_leaves_the_old_file(path, monkeypatch, step, fault):
    store.save(belief(), path)

    def fail(*args, **kwargs):
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(type(fault)):
            store.save(belief(1), path)
    assert untouched(path)


def test_a_failure_of_the_last_sync_is_reported_with_the_new_file_in_place(path, monkeypatch):
    store.save(belief(1), path)
    real, calls = os.fsync, []

    def second_fails(descriptor):
        calls.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        if len(calls) == 2:
            raise OSError(errno.EIO, "input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(OSError, match="input/output"):
        store.save(belief(), path)
    assert calls == [False, True]  # the file first, then its directory
    assert untouched(path)


def test_a_directory_that_cannot_be_synced_is_no_error(path, monkeypatch):
    real = os.fsync

    def network_file_system(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", network_file_system)
    store.save(belief(), path)
    assert untouched(path)


def test_the_order_is_write_sync_rename_sync(path, monkeypatch):
    events = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, name=name: (events.append(name), real(*a))[1])
    store.save(belief(), path)
    assert events == ["fsync", "replace", "fsync"]


FULL_DISK = """
import errno, resource, signal, sys
import numpy as np
from gaussfold import store
from tests.test_store import ToyBelief
store.KINDS["ToyBelief"] = "tests.test_store"
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    store.save(ToyBelief(mean=np.ones(10_000)), sys.argv[1])
except OSError as error:
    assert not isinstance(error, ValueError)
    print(errno.errorcode[error.errno])
"""


def run(code, *args):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command, pipe = [sys.executable, "-c", code, *map(str, args)], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, text=True)


def test_no_room_on_the_disk_keeps_its_type_and_the_old_file(path):
    store.save(belief(), path)
    process = run(FULL_DISK, path)
    out, err = process.communicate(timeout=120)
    assert out.strip() == "EFBIG", err  # the kernel's refusal while writing, like ENOSPC
    assert untouched(path)


SAVE_FOREVER = """
import sys
import numpy as np
from gaussfold import store
from tests.test_store import ToyBelief
store.KINDS["ToyBelief"] = "tests.test_store"
for i in range(1, 10**9):
    store.save(ToyBelief(mean=np.full(20_000, float(i))), sys.argv[1])
    if i == 1:
        print("started", flush=True)
"""


def test_kill_9_leaves_a_loadable_file(path):
    for attempt in range(4):
        process = run(SAVE_FOREVER, path)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.03 + 0.037 * attempt)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        mean = store.load(path).arrays["mean"]
        assert mean.shape == (20_000,)
        assert mean[0] >= 1.0
        assert (mean == mean[0]).all()


# --- labels and random states --------------------------------------------------------------------

LABELS = [
    np.array([-3, 2**62 + 1]),
    np.array([1, 5], dtype=np.int32),
    np.array([0.1, 1 / 3, -0.0, np.inf]),
    np.array([0.1], dtype=np.float32),
    np.array([False, True]),
    np.array(["", "ünïcode", 'a\\b"c', "\ud800"]),
    np.array(["no", "yes"], dtype=object),
    np.array([True, 1.5, "x", 3], dtype=object),
    np.array([], dtype="<U3"),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda a: f"{a.dtype}-{a.size}")
def test_labels_round_trip_through_json(labels):
    back = decode_labels(json.loads(json.dumps(encode_labels(labels))))
    assert back.dtype == labels.dtype
    assert back.tolist() == labels.tolist()
    assert [type(v) for v in back.tolist()] == [type(v) for v in labels.tolist()]


def test_labels_survive_a_file(path):
    for labels in LABELS:
        store.save(ToyModel(0.7, labels), path)
        assert store.load(path).labels.tolist() == labels.tolist()


def test_odd_labels_are_refused():
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        encode_labels(np.array([[1, 2]]))
    with pytest.raises(ValueError, match="dtype complex128"):
        encode_labels(np.array([1j]))
    with pytest.raises(ValueError, match="dtype datetime64"):
        encode_labels(np.array(["2020-01-01"], dtype="M8[D]"))
    with pytest.raises(ValueError, match="row 1 is None"):
        encode_labels(np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match="dtype datetime64"):
        decode_labels({"dtype": "<M8[D]", "values": [3]})


def test_a_generator_seeded_by_an_array_continues():
    """What an estimator makes of ``random_state=RandomState(3)``: such models were saved, and did not load again."""
    rng = np.random.default_rng(np.random.RandomState(3).randint(2**31 - 1, size=4))
    twin = decode_rng(json.loads(json.dumps(encode_rng(rng))))
    assert (rng.normal(size=5) == twin.normal(size=5)).all()
    assert (rng.spawn(1)[0].normal(size=5) == twin.spawn(1)[0].normal(size=5)).all()


@pytest.mark.parametrize("family", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_generators_continue(family):
    rng = np.random.Generator(getattr(np.random, family)(17))
    rng.normal(size=7)
    rng.integers(0, 9, size=3, dtype=np.uint32)
    rng.spawn(2)
    twin = decode_rng(json.loads(json.dumps(encode_rng(rng))))
    np.testing.assert_array_equal(rng.normal(size=50), twin.normal(size=50))
    np.testing.assert_array_equal(
        rng.integers(0, 9, size=5, dtype=np.uint32), twin.integers(0, 9, size=5, dtype=np.uint32)
    )
    np.testing.assert_array_equal(rng.spawn(1)[0].normal(size=5), twin.spawn(1)[0].normal(size=5))


def test_old_random_states_continue():
    rng = np.random.RandomState(3)
    rng.normal(size=7)  # an odd number: the cached second normal must come along
    twin = decode_rng(json.loads(json.dumps(encode_rng(rng))))
    np.testing.assert_array_equal(rng.normal(size=50), twin.normal(size=50))


def test_seeds_stay_seeds():
    assert decode_rng(encode_rng(None)) is None
    assert decode_rng(json.loads(json.dumps(encode_rng(np.int64(42))))) == 42
    with pytest.raises(ValueError, match="random_state: 'seven'"):
        encode_rng("seven")
    with pytest.raises(ValueError, match="random_state: True"):
        encode_rng(True)
    with pytest.raises(ValueError, match="bit generator 'system'"):
        decode_rng({"type": "Generator", "state": {"bit_generator": "system"}, "seeds": None})


def test_a_part_of_a_kind_that_numpy_has_no_word_for_is_refused(tmp_path):
    path = tmp_path / "m.gf"
    gaussfold.save(gaussfold.DiagonalGaussian.isotropic(3), path)
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    part = header["cells"]
    part["dtype"], part["shape"] = "F8_E8M0", [part["data_offsets"][1] - part["data_offsets"][0]]
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + size :])
    with pytest.raises(StoreError, match="'cells' holds F8_E8M0"):
        gaussfold.load(path)


def test_save_with_its_arguments_swapped_says_so(tmp_path):
    belief, path = gaussfold.DenseGaussian.isotropic(2), tmp_path / "m"
    for wrong in (path, str(path)):
        with pytest.raises(StoreError, match=r"they stand in each other's place; call save\(model, path\)"):
            gaussfold.save(wrong, belief)
    for call in (lambda: gaussfold.save(belief, 7), lambda: gaussfold.load(belief)):
        with pytest.raises(StoreError, match=r"path: a .*; the name of a file is needed"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_pipeline_is_sent_to_skops(tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), gaussfold.StreamingClassifier()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(StoreError, match=r"skops\.io\.dump\(model, path\)"):
        gaussfold.save(model, tmp_path / "m")
