"""What can be measured: a name on the command line and the module behind it (``run(options) -> Report``)."""

from __future__ import annotations

BENCHMARKS = {
    "dense": (
        "benchmarks.dense",
        "R-VGA with a full covariance: a textbook loop, ours by row and by block, bayesianbandits",
    ),
    "sparse": (
        "benchmarks.sparse",
        "hashed clicks, text file to saved model: ours, Vowpal Wabbit, scikit-learn, River",
    ),
    "streams": (
        "benchmarks.streams",
        "forty streams, no option given: progressive loss beside VW's default, its best of eight, River's best of six",
    ),
    "streams-fresh": (
        "benchmarks.fresh",
        "the same of fifty streams that nobody had looked at before",
    ),
    "off-grid": (
        "benchmarks.off_grid",
        "weights of widths between the lanes of prior_std='auto': regret beside that of the right prior",
    ),
    "lowrank": (
        "benchmarks.lowrank",
        "L-RVGA in a million dimensions: textbook, ours by row and by block; factor analysis beside scikit-learn",
    ),
    "lowrank-calibration": (
        "benchmarks.calibration",
        "low-rank posteriors: coverage, loss and KL over rank, condition and prior, beside full, diagonal, the paper",
    ),
    "calibration": (
        "benchmarks.ranks",
        "every estimator, covariance, likelihood and way to learn: ranks of the truth, coverage at 50, 90, 99 %",
    ),
    "drift": (
        "benchmarks.drift",
        "drift that finds itself: elec2 in order and simulated drifts, beside every single pace",
    ),
    "families": (
        "benchmarks.families",
        "what a row costs under each likelihood, in Gaussian rows",
    ),
    "river": (
        "benchmarks.river",
        "one dictionary at a time, beside River's logistic and linear regression",
    ),
    "diagnose": (
        "benchmarks.diagnose",
        "what diagnose says of two hundred beliefs of which the truth is known; fresh ones every run",
    ),
    "defaults": (
        "benchmarks.defaults",
        "no option given, raw data: losses, coverage, order and cost, beside LogisticRegression and BayesianRidge",
    ),
    "classes": (
        "benchmarks.classes",
        "more than two classes by a softmax beside one-vs-rest and LogisticRegression; coverage; pace",
    ),
    "classes-table": (
        "benchmarks.classes_table",
        "what classes and low-rank posteriors did not keep, each tried again: issue 15's table",
    ),
    "deep": (
        "benchmarks.deep",
        "posteriors of networks: VIFA, SLANG, SWAG, L-RVGA beside mean field and laplace-torch; D up to 10 million",
    ),
    "deep-one-pass": (
        "benchmarks.deep_one_pass",
        "one pass over networks with no option given, beside one pass of Adam at fifteen settings: ten fresh splits",
    ),
    "deep-table": (
        "benchmarks.deep_table",
        "networks as a newcomer meets them, each tried again: issue 18's table",
    ),
    "deep-defaults": (
        "benchmarks.deep_defaults",
        "posteriors of networks with no option given: nine tasks, ten splits, beside Adam and five networks",
    ),
    "gp": (
        "benchmarks.gp_race",
        "Gaussian processes: seconds to within 1 % of the best score, beside GPyTorch, GPflow, scikit-learn and others",
    ),
    "gp-iterations": (
        "benchmarks.gp",
        "Gaussian-process classification, Markov to a million points, dense, sparse: ours, bayesnewton, GPyTorch",
    ),
    "gp-regressor": (
        "benchmarks.gp_regressor",
        "GPRegressor beside scikit-learn's with the same kernel, defaults: time and log evidence",
    ),
    "gp-table": (
        "benchmarks.gp_table",
        "what used to fail on ordinary data with default options, each tried again: issue 17's table",
    ),
    "gp-fuzz": (
        "benchmarks.gp_fuzz",
        "a thousand random Gaussian-process problems: converged or warned, finite, and where other optimisers end",
    ),
    "gp-sbc": (
        "benchmarks.gp_sbc",
        "simulation-based calibration of Gaussian processes with default options, eight likelihoods, and a picture",
    ),
    "gp-space-time": (
        "benchmarks.gp_space_time",
        "space x time on a Markov time axis: evidence beside the dense prior, seconds by times and places",
    ),
    "scale": (
        "benchmarks.scale",
        "learning apart by 4, 16 and 64 shards beside one pass: loss, KL, coverage, processor time; fresh seeds",
    ),
    "scale-simulated": (
        "benchmarks.scale_simulated",
        "64 to 1024 workers, 10^9 to 10^12 rows, simulated by costs measured here, and a picture",
    ),
    "before": (
        "benchmarks.before",
        "what was added since costs: this tree beside an earlier commit, start-up, train and folds, in turns",
    ),
}
