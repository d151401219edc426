"""Every option object: by name, as JSON, and through a model file. The members come from the registry itself."""

import inspect
import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold import registry
from gaussfold.expectations.cubature import GaussHermite
from gaussfold.gp import Constant, Cosine, GaussianProcess, Linear, Matern12, Matern32, Matern52, White
from gaussfold.gp.covariances import Product, Sum
from gaussfold.registry import HOMES, catalogue, decode, encode
from gaussfold.rules import PL2

ODD = {
    "alpha": 0.37,
    "classes": 4,
    "column": 2,
    "cutpoints": (-0.3, 0.4, 1.7),
    "damping": 0.23,
    "ep": "printed",
    "expectation": "quadrature",
    "columns": (1, 0),
    "diffusion": ((0.1, 0.0), (0.0, 1.3)),
    "feedback": ((0.0, 1.0), (-4.0, -0.4)),
    "measurement": (1.0, 0.3),
    "part": Matern52(0.2, (0.3, 4.0)),
    "families": (lk.Bernoulli("probit"), lk.Gaussian(0.3)),
    "cov": np.array([[1.3, 0.2], [0.2, 0.6]]),
    "derivatives": 1,
    "form": "mean-only",
    "link": "probit",
    "lengthscale": (0.3, 1.9),
    "mean": "one-step",
    "noise_cov": np.array([[1.3, 0.2], [0.2, 0.6]]),
    "order": 3,
    "points": 64,
    "parts": (Matern12(0.3), Constant(2.5) * Cosine(0.7), Matern52(0.2, (0.3, 4.0)) + White(0.1)),
    "signals": 3,
    "space": Matern52(0.2, (0.3, 4.0)),
    "stored": "averaged",
    "time": Matern12(0.3),
    "transform": "softplus",
    "variance": 0.41,
}
"""Values that are nobody's default, by the parameter's name; numbers not named here become 0.73."""
ODD_OF = {"Marginal": {"variance": "height"}, "Periodic": {"lengthscale": 0.9}}


def odd(cls):
    """An object with odd values for all its parameters."""
    known = ODD | ODD_OF.get(cls.__name__, {})
    return cls(**{name: known.get(name, 0.73) for name in inspect.signature(cls).parameters})


MEMBERS = {f"{kind}-{cls.__name__}": (kind, cls) for kind in HOMES for cls in catalogue(kind).members}
NAMES = [(kind, name) for kind in HOMES for name in catalogue(kind).names]


@pytest.fixture(params=MEMBERS)
def option(request):
    kind, cls = MEMBERS[request.param]
    return kind, odd(cls)


def test_odd_values_are_odd(option):
    _, value = option
    defaults = inspect.signature(type(value)).parameters.values()
    for argument in defaults:
        kept = vars(value)[argument.name]
        if argument.default is not inspect.Parameter.empty and argument.name != "expectation":
            assert kept != argument.default, argument.name


def test_json_and_back(option):
    kind, value = option
    back = decode(json.loads(json.dumps(encode(value))), kind)
    assert type(back) is type(value)
    assert back == value
    assert encode(back) == encode(value)


def test_files_of_format_1_read_the_same(option):
    """There parameters stood beside the class, which was called "name" or "kind"."""
    kind, value = option
    described = registry.parameters(value)
    if "parts" in described:
        described["parts"] = [{"name": part["name"], **part["parameters"]} for part in described["parts"]]
        described["parts"] = described["parts"][:1]
        value = type(value)(value.parts[:1])
    for label in ("name", "kind"):
        assert decode(json.loads(json.dumps({label: type(value).__name__, **described})), kind) == value


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_by_name(kind, name):
    value = registry.resolve(kind, name)
    assert isinstance(value, catalogue(kind).members)
    assert registry.resolve(kind, value) is value
    assert decode(json.loads(json.dumps(encode(name))), kind) == name  # what was given by name is stored by name
    assert decode(json.loads(json.dumps(encode(value))), kind) == value


@pytest.mark.parametrize("kind", HOMES)
@pytest.mark.parametrize("bad", ["magic", 3.5, object, ("ep",)])
def test_unknown_names_say_what_is_allowed(kind, bad):
    with pytest.raises(ValueError, match=rf"^{kind}=") as caught:
        registry.resolve(kind, bad)
    for name in catalogue(kind).names:
        assert repr(name) in str(caught.value)
    assert "an object" in str(caught.value) or "(" in str(caught.value)


@pytest.mark.parametrize("kind", HOMES)
def test_unknown_classes_say_what_to_register(kind):
    document = {"kind": kind, "name": "Magic", "parameters": {}, "module": "tricks.cards"}
    with pytest.raises(
        ValueError, match=rf"{kind} name='Magic'.*'tricks\.cards'.*register\('{kind}', Magic\)"
    ) as caught:
        decode(document, kind)
    assert all(repr(cls.__name__) in str(caught.value) for cls in catalogue(kind).members)


def test_an_unknown_kind():
    with pytest.raises(ValueError, match=r"kind='noun': allowed are 'likelihood', 'rule'"):
        registry.resolve("noun", "vi")


def test_parameters_that_do_not_fit():
    with pytest.raises(ValueError, match=r"rule EP cannot be built from .*'beta'"):
        decode({"kind": "rule", "name": "EP", "parameters": {"beta": 0.5}}, "rule")


# Model files

X = np.linspace(0.0, 2.0, 7)[:, None]
Y = {"counts": np.array([0.0, 1, 1, 2, 0, 3, 1]), "shares": np.array([0.2, 0.4, 0.5, 0.3, 0.6, 0.7, 0.8])}


def through_a_file(model, tmp_path):
    gf.save(model, tmp_path / "model")
    return gf.load(tmp_path / "model")


def members(*kinds, without=()):
    found = [(kind, cls) for kind in kinds for cls in catalogue(kind).members if cls not in without]
    return [pytest.param(kind, odd(cls), id=f"{kind}-{cls.__name__}") for kind, cls in found]


@pytest.mark.parametrize(("kind", "value"), members("rule", "at", "coupling", without=(PL2,)))
def test_estimators_keep_every_option(kind, value, tmp_path):
    options = {"rule": "newton", "at": "posterior", kind: value}
    if kind == "coupling":
        options["covariance"] = "diagonal"
    model = gf.StreamingRegressor(**options, noise_std=0.6).fit(X, Y["shares"])
    loaded = through_a_file(model, tmp_path)
    assert loaded.get_params() == model.get_params()
    for one in (model, loaded):
        one.partial_fit(X, Y["counts"])
    assert all(np.array_equal(array, loaded.state()[name]) for name, array in model.state().items())


@pytest.mark.parametrize(("kind", "value"), members("likelihood", "rule", "curvature", "cubature", "covariance"))
def test_processes_keep_every_option(kind, value, tmp_path):
    """Whether or not the combination can be fitted, it is what it was."""
    options = {"covariance": Matern32(1.3, 0.4), "likelihood": "bernoulli", "rule": "vi", "curvature": "exact"}
    options[kind] = value
    if kind == "curvature":
        options["rule"] = next(rule for rule in catalogue("rule").members if value.name in rule.curvatures).name
    model = GaussianProcess(**options)
    loaded = through_a_file(model, tmp_path)
    assert loaded.covariances == model.covariances
    for name in ("likelihood", "rule", "curvature", "cubature"):
        assert getattr(loaded, name) == getattr(model, name)


def test_a_cubature_given_as_an_object_loads_again(tmp_path):
    likelihood = lk.HeteroscedasticGaussian()
    options = {"curvature": "gauss-newton", "cubature": GaussHermite(5), "max_iter": 3}
    model = GaussianProcess(Matern32(1.3, 0.4), likelihood, **options).fit(X, Y["shares"], iterations=3)
    loaded = through_a_file(model, tmp_path)
    assert loaded.cubature == GaussHermite(5)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.resume(iterations=3).predict(X), model.resume(iterations=3).predict(X))


def test_gp_estimators_keep_objects(tmp_path):
    covariance = Sum((Matern32(0.7), Product((Linear(0.2), Constant(1.4)))))
    options = {"covariance": covariance, "rule": gf.rules.EP(0.5), "max_iter": 4, "learn_hyperparameters": False}
    model = gf.GPRegressor(**options).fit(X, Y["shares"])
    loaded = through_a_file(model, tmp_path)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("value", [odd(cls) for cls in catalogue("optimizer").members], ids=repr)
def test_factor_analysis_keeps_its_optimiser(value, tmp_path):
    rows = np.random.default_rng(3).normal(size=(40, 4))
    model = gf.StreamingFactorAnalysis(2, method="gradient", optimizer=value, warm_up=5, random_state=1)
    model.partial_fit(rows[:20])
    loaded = through_a_file(model, tmp_path)
    assert loaded.optimizer == value
    for one in (model, loaded):
        one.partial_fit(rows[20:])
    np.testing.assert_array_equal(loaded.components_, model.components_)


# One's own


@dataclass(frozen=True)
class Warped(Matern32):
    """A kernel from outside: Matérn on a warped axis."""

    power: float = 1.0

    def __call__(self, X, Z=None):
        return super().__call__(X**self.power, None if Z is None else Z**self.power)


@dataclass(frozen=True)
class Shifted(lk.Gaussian):
    """A likelihood from outside."""

    offset: float = 0.0


@pytest.fixture
def _own():
    registry.register("covariance", Warped)
    registry.register("likelihood", Shifted)
    yield
    registry.unregister("covariance", Warped)
    registry.unregister("likelihood", Shifted)


@pytest.mark.usefixtures("_own")
def test_one_s_own_classes_are_saved_once_registered(tmp_path):
    model = GaussianProcess(Warped(0.7, 1.2, power=2.0) + White(0.1), Shifted(0.6, offset=0.3)).fit(X, Y["shares"])
    loaded = through_a_file(model, tmp_path)
    assert (loaded.covariances, loaded.likelihood) == (model.covariances, model.likelihood)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_one_s_own_classes_are_refused_with_the_remedy(tmp_path):
    model = GaussianProcess(Warped(0.7) + White(0.1), "poisson").fit(X, Y["counts"])
    with pytest.raises(ValueError, match=r"Warped has no name that a model file could hold.*register\(kind, Warped\)"):
        gf.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    registry.register("covariance", Warped)
    gf.save(model, tmp_path / "model")
    registry.unregister("covariance", Warped)
    with pytest.raises(ValueError, match=r"'tests\.test_registry'.*register\('covariance', Warped\) before loading"):
        gf.load(tmp_path / "model")


def test_functions_cannot_be_saved():
    mine = lk.CustomLikelihood(lambda y, f: -((y - f) ** 2))
    with pytest.raises(ValueError, match=r"CustomLikelihood has no name .* holds numbers, not functions"):
        encode(mine)


@dataclass(frozen=True)
class Careful(gf.rules.VI):
    """A rule from outside, with a name of its own."""

    share: float = 0.5
    name: ClassVar[str] = "careful"


def test_a_name_of_one_s_own():
    registry.register("rule", Careful)
    try:
        assert registry.resolve("rule", "careful") == Careful() == gf.rules.resolve("careful")
        assert registry.resolve("rule", Careful(0.2)) == Careful(0.2)
        assert decode(encode(Careful(0.2)), "rule") == Careful(0.2)
    finally:
        registry.unregister("rule", Careful)
    with pytest.raises(ValueError, match="rule='careful'"):
        registry.resolve("rule", "careful")


def test_names_are_not_taken_over():
    class EP:
        """Not ours."""

    class Vain:
        """Its name is taken."""

        name = "vi"

    with pytest.raises(ValueError, match="rule EP: another class has this name"):
        registry.register("rule", EP)
    with pytest.raises(ValueError, match=r"rule name='vi': VI\(\) is called so already"):
        registry.register("rule", Vain)
    assert registry.resolve("rule", "vi") == gf.rules.VI()
    assert Vain not in catalogue("rule").members


class Tally:
    """A model of one's own."""

    def __init__(self, count):
        self.count = count

    def state(self):
        return {"count": np.array(self.count)}

    @classmethod
    def from_state(cls, arrays):
        return cls(int(arrays["count"]))


def test_a_model_of_one_s_own(tmp_path):
    registry.register("model", Tally)
    try:
        assert through_a_file(Tally(7), tmp_path).count == 7
    finally:
        registry.unregister("model", Tally)
    with pytest.raises(gf.store.StoreError, match=r"it holds a 'Tally'.*register\('model', \.\.\.\) your own"):
        gf.load(tmp_path / "model")
    with pytest.raises(ValueError, match="model DenseGaussian: another class"):
        registry.register("model", type("DenseGaussian", (), {}))


def test_an_argument_that_is_not_kept():
    class Forgetful:
        """Keeps nothing."""

        def __init__(self, depth=1):
            self.twice = 2 * depth

    registry.register("rule", Forgetful)
    try:
        with pytest.raises(ValueError, match="does not keep its argument 'depth'"):
            encode(Forgetful())
    finally:
        registry.unregister("rule", Forgetful)
