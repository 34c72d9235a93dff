"""The search: its errors against networks that are fitted again without each row, its choice, and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import scale

from hyperelm import Algebra, BiasOnlyWarning, ELMRegressor, ELMRegressorCV, algebras, linalg, load, pack, save
from hyperelm._estimators import scoring
from hyperelm._estimators.candidates import most_parsimonious
from hyperelm._solvers.spectrum import VALUES
from hyperelm._training.readouts import readouts_of
from hyperelm.datasets import lorenz, sliding_windows
from hyperelm.metrics import prediction_gain
from oracles import hat_matrix, hidden, penalised, refitted_residuals

PARAMETERS = ("algebra", "n_hidden", "weight_scale", "readout", "ridge")
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((24, 6)), RNG.standard_normal((24, 3))
Y[:, 0] += np.sin(X[:, 0]) + X[:, 1]


def seeds(random_state, n):
    return np.random.default_rng(random_state).integers(2**31 - 1, size=n).tolist()


def layer(algebra, largest, L, seed, data=X, **parameters):
    """Φ_L of what the output layer sees of the first L of the neurons that `ELMRegressor` draws."""
    W = ELMRegressor(algebra, largest, random_state=seed, **parameters).fit(data, data[:, 0]).hidden_weights_[:, :L]
    numbers = pack(data, algebra, into=parameters.get("packing", "full"))
    return linalg.left_matrix(hidden(numbers, W, algebra, direct_link=parameters.get("direct_link", False)), algebra)


def all_but_the_bias(P, algebra):
    """Which of the unknowns the ridge penalises."""
    L = P.shape[1] // algebra.dim
    return penalised(algebra, L, free=[L - 1])


def refitted_error(P, algebra, numbers, used, ridge):
    """The mean squared error, on the components that columns fill, of fits without each row."""
    residuals = refitted_residuals(P, numbers, algebra, ridge, all_but_the_bias(P, algebra))
    return np.mean(residuals[:, used] ** 2)


@pytest.mark.parametrize("name", ["real", "complex", "quaternions", "R[+1,+1]", "klein4", "paper-Cl(1,1)"])
@pytest.mark.parametrize(("packing", "direct_link"), [("full", False), ("imaginary", True)])
def test_leave_one_out_errors_are_those_of_refits(name, packing, direct_link):
    """Of every size, layer and ridge; components that no column fills do not count."""
    algebra, sizes, ridges = algebras.get(name), [2, 3], [0.01, 0.7]
    extra = {"packing": packing, "direct_link": direct_link}
    fixed = {"weight_scale": 0.4, "readout": "algebra", "ridge": ridges, "n_draws": 2, "random_state": 5}
    search = ELMRegressorCV(name, sizes, **fixed, **extra).fit(X, Y)
    numbers = pack(Y, algebra, into=packing)
    used = pack(np.ones((1, 3)), algebra, into=packing)[0] > 0
    for n, seed in enumerate(seeds(5, 2)):
        expected = [
            refitted_error(layer(algebra, 3, L, seed, weight_scale=0.4, **extra), algebra, numbers, used, ridge)
            for L in sizes
            for ridge in ridges
        ]
        assert_allclose(-search.cv_results_[f"draw{n}_test_score"], expected, rtol=1e-7)
    assert_array_equal(search.cv_results_["param_n_hidden"], [2, 2, 3, 3])
    assert_array_equal(search.cv_results_["param_ridge"], [0.01, 0.7, 0.01, 0.7])


@pytest.mark.parametrize("name", ["real", "quaternions", "R[+1,+1]"])
def test_gcv_scores_are_those_of_the_formula(name):
    algebra, ridges = algebras.get(name), [0.01, 0.7]
    fixed = {"weight_scale": 0.4, "readout": "algebra", "ridge": ridges, "n_draws": 1, "random_state": 5}
    search = ELMRegressorCV(name, [2, 3], **fixed, scoring="gcv", packing="imaginary").fit(X, Y)
    t = linalg.to_real(pack(Y, algebra))
    expected = []
    for L in (2, 3):
        P = layer(algebra, 3, L, seeds(5, 1)[0], weight_scale=0.4, packing="imaginary")
        for ridge in ridges:
            S = hat_matrix(P, ridge, all_but_the_bias(P, algebra))
            n = len(P)
            gcv = n * np.linalg.norm(t - S @ t) ** 2 / (n - VALUES.freedom * np.trace(S)) ** 2
            expected.append(gcv * algebra.dim / 3)  # of a row, and of one of its columns
    assert_allclose(-search.cv_results_["mean_test_score"], expected, rtol=1e-7)


def test_a_path_of_ridges_has_its_best_listed():
    """By the errors, raised by what the degrees of freedom cost."""
    fixed = {"algebra": "klein4", "n_hidden": [4], "weight_scale": 0.4, "readout": "algebra"}
    fixed |= {"n_draws": 1, "random_state": 0}
    found = ELMRegressorCV(**fixed).fit(X, Y)
    assert len(found.cv_results_["params"]) == 1
    again = ELMRegressorCV(**fixed, ridge=[found.best_ridge_]).fit(X, Y)
    assert again.best_score_ == pytest.approx(found.best_score_, rel=1e-9)
    P = layer(algebras.get("klein4"), 4, 4, seeds(0, 1)[0], weight_scale=0.4)
    penalty = all_but_the_bias(P, algebras.get("klein4"))
    ridges = found.best_ridge_ * np.geomspace(0.1, 10, 7)
    around = -ELMRegressorCV(**fixed, ridge=ridges).fit(X, Y).cv_results_["mean_test_score"]
    leverage = np.array([np.trace(hat_matrix(P, ridge, penalty)) / len(P) for ridge in ridges])
    scores = around * ((1 - leverage) / (1 - VALUES.freedom * leverage)) ** 2
    assert scores[3] <= 1.01 * scores.min()


def test_no_ridge_is_tried_where_normal_equations_show_none_small_enough():
    """Targets that the layer gives exactly: a ridge can only do harm."""
    seed = seeds(0, 1)[0]
    truth = ELMRegressor("real", 5, weight_scale=0.3, random_state=seed, ridge=0).fit(X, Y).predict(X)
    search = ELMRegressorCV("real", 5, weight_scale=0.3, n_draws=1, random_state=0).fit(X, truth)
    assert search.best_ridge_ < 1e-12
    assert search.best_score_ > -1e-24
    listed = ELMRegressorCV("real", 5, weight_scale=0.3, ridge=[0.0, 1e-30], n_draws=1, random_state=0).fit(X, truth)
    assert listed.best_score_ > -1e-24


def test_targets_that_a_search_can_explain_exactly():
    """Few ridges of a path are tried, but enough to see that small ones are permitted."""
    inputs = np.random.default_rng(0).standard_normal((60, 3))
    search = ELMRegressorCV("complex", [12], weight_scale="0.01 auto", readout="free", random_state=0)
    assert search.fit(inputs, inputs @ [1.0, 2.0, 3.0]).best_score_ > -1e-9


@pytest.mark.parametrize("scoring", ["loo", "gcv"])
def test_the_number_of_jobs_does_not_change_a_bit(scoring):
    grid = {"algebra": ["real", "complex", "klein4"], "n_hidden": [4, 8], "weight_scale": ["0.1 auto", "auto"]}
    alone, both = (ELMRegressorCV(**grid, scoring=scoring, n_jobs=n, random_state=0).fit(X, Y) for n in (None, 2))
    for name in ("draw0_test_score", "draw2_test_score", "mean_test_score", "param_ridge"):
        assert_array_equal(both.cv_results_[name], alone.cv_results_[name])
    assert_array_equal(both.predict(X), alone.predict(X))


def test_the_results_and_the_best_of_them():
    names = ["real", "tessarines", algebras.cayley_dickson(-1, 0.5)]
    search = ELMRegressorCV(
        names, (2, 5), weight_scale=["auto", "0.1 auto", 0.2], ridge=[0.1, 1.0], random_state=3
    ).fit(X, Y)
    results, best = search.cv_results_, search.best_index_
    assert len(results["params"]) == 3 * (1 + 3 + 3) * 2 * 2  # the readouts of real numbers are one
    draws = np.stack([results[f"draw{n}_test_score"] for n in range(3)])
    scored = np.isfinite(draws[0])
    assert_allclose(results["mean_test_score"][scored], np.nanmean(draws[:, scored], axis=0))
    assert_allclose(results["std_test_score"][scored], np.nanstd(draws[:, scored], axis=0))
    assert np.isneginf(results["mean_test_score"][~scored]).all()
    assert results["rank_test_score"][~scored].min() > results["rank_test_score"][scored].max()
    assert np.isfinite(draws[:, best]).all()
    assert results["rank_test_score"][np.argmax(results["mean_test_score"])] == 1
    in_full = results["mean_test_score"][np.isfinite(draws).all(axis=0)]
    assert search.best_score_ == results["mean_test_score"][best] >= 1.01 * in_full.max()
    assert isinstance(search.best_algebra_, Algebra)
    chosen = {name: getattr(search, f"best_{name}_") for name in PARAMETERS}
    assert chosen == search.best_params_ == results["params"][best]
    again = ELMRegressor(**chosen, random_state=3).fit(X, Y)
    assert_array_equal(search.predict(X), again.predict(X))
    assert search.score(X, Y) == again.score(X, Y)
    assert search.best_estimator_.n_parameters_ == results["n_parameters"][best]


def test_results_as_a_frame():
    pandas = pytest.importorskip("pandas")
    search = ELMRegressorCV(["real", "complex"], [2, 3], weight_scale=["auto"], random_state=0).fit(X, Y)
    frame = pandas.DataFrame(search.cv_results_).sort_values("rank_test_score")
    assert set(frame["param_algebra"]) == {"real", "complex"}
    assert frame["mean_test_score"].is_monotonic_decreasing


def test_ties_go_to_the_fewest_parameters():
    assert most_parsimonious(np.array([1.0, 1.005, 1.009, 1.02]), np.array([9, 5, 5, 1]), 0.0) == 1
    assert most_parsimonious(np.array([1.0, np.inf]), np.array([9, 1]), 0.0) == 0
    assert most_parsimonious(np.array([1e-20, 1e-30]), np.array([1, 9]), 1e-15) == 0


def test_what_auto_looks_at():
    search = ELMRegressorCV(weight_scale=0.1, ridge=1.0, n_draws=1, random_state=0).fit(X, Y[:, 0])
    names = list(dict.fromkeys(search.cv_results_["param_algebra"]))
    assert {"real", "complex", "quaternions", "tessarines", "klein4", "R[-1,+1]"} <= set(names)
    assert max(algebras.get(name).dim for name in names) == 4
    assert set(search.cv_results_["param_n_hidden"]) == {16}  # 32 would be more than rows
    numbers = np.random.default_rng(0).standard_normal((20, 2, 8))
    search = ELMRegressorCV(n_hidden=2, weight_scale=0.1, ridge=1.0, n_draws=1).fit(numbers, numbers[:, :1])
    assert {algebras.get(name).dim for name in search.cv_results_["param_algebra"]} == {8}
    assert "octonions" in search.cv_results_["param_algebra"]
    assert search.predict(numbers).shape == (20, 1, 8)
    few = ELMRegressorCV("real", random_state=0, weight_scale=["auto"]).fit(X[:9], Y[:9])
    assert few.best_n_hidden_ == 1


def test_the_unit_of_the_data_does_not_matter():
    plain = ELMRegressorCV("complex", [3], random_state=0).fit(X, Y)
    other = ELMRegressorCV("complex", [3], random_state=0).fit(1e6 * X, Y)
    assert other.best_weight_scale_ == plain.best_weight_scale_
    assert_allclose(other.predict(1e6 * X), plain.predict(X), rtol=1e-6)


@pytest.mark.parametrize("scoring", ["loo", "gcv"])
def test_weights_are_numbers_of_samples(scoring):
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    again = np.repeat(np.arange(len(X)), weight)
    grid = {"algebra": ["real", "klein4"], "n_hidden": [2, 4], "scoring": scoring, "random_state": 0}
    grid["readout"] = (
        ["algebra"] if scoring == "gcv" else ["algebra", "free"]
    )  # GCV counts ranks, which rounding decides
    weighted, repeated = ELMRegressorCV(**grid).fit(X, Y, weight), ELMRegressorCV(**grid).fit(X[again], Y[again])
    assert_allclose(weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"], rtol=1e-6)
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


@pytest.mark.parametrize("scoring", ["loo", "gcv"])
def test_row_blocks_and_single_precision(scoring):
    grid = {"algebra": "quaternions", "n_hidden": [2, 4], "weight_scale": 0.3, "scoring": scoring, "random_state": 0}
    whole = ELMRegressorCV(**grid, ridge=[0.1, 1]).fit(X, Y)
    chunks = ELMRegressorCV(**grid, ridge=[0.1, 1], chunk_size=5).fit(X, Y)
    assert_allclose(chunks.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], rtol=1e-9)
    single = ELMRegressorCV(**grid, ridge=[0.1, 1]).fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("solver", ["gram", "qr", "svd"])
def test_solvers_agree(solver):
    fixed = {"algebra": ["quaternions"], "n_hidden": [3], "weight_scale": 0.3, "ridge": [0.1], "random_state": 0}
    fixed["readout"] = ["algebra", "free"]
    errors = [ELMRegressorCV(**fixed, solver=one).fit(X, Y).best_score_ for one in ("auto", solver)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-9)


def test_constant_inputs_and_targets():
    search = ELMRegressorCV(["real", "complex"], [2], bias=True, random_state=0).fit(np.ones((8, 2)), np.ones(8))
    assert_allclose(search.predict(np.ones((3, 2))), 1)
    search = ELMRegressorCV(["real"], [2], bias=False, random_state=0).fit(np.zeros((8, 2)), np.arange(8.0))
    assert_allclose(search.predict(np.zeros((3, 2))), 0)


def test_progress(capsys):
    ELMRegressorCV(["real", "complex"], [2], weight_scale=["auto"], verbose=1).fit(X, Y)
    assert capsys.readouterr().err.startswith("ELMRegressorCV (all rows, 4 candidates): 2 of 2 layers, ")
    ELMRegressorCV("real", [2, 3, 4], ridge=0.1, verbose=1, n_draws=1).fit(X, Y)
    rounds = re.findall(r"\(([a-z ]+),", capsys.readouterr().err)
    assert list(dict.fromkeys(rounds)) == ["all rows", "all sizes"]  # none of readouts that are learned


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algebra": []}, "`algebra` must be 'auto', a value or a list of at least one, got"),
        ({"algebra": ["quaternoins"]}, "Did you mean 'quaternions'"),
        ({"algebra": None}, "`algebra` must be 'auto', a value or a list"),
        ({"n_hidden": [5, 0]}, "`n_hidden` must be a whole number >= 1, got 0"),
        ({"n_hidden": [2.5]}, "`n_hidden` must be a whole number >= 1, got 2.5"),
        ({"n_hidden": ()}, "`n_hidden` must be 'auto', a value or a list"),
        ({"n_hidden": "many"}, "`n_hidden` must be a whole number >= 1, got 'many'"),
        ({"weight_scale": ["auto", -1]}, "`weight_scale` must be 'auto', a multiple of it as '0.1 auto'"),
        ({"weight_scale": ["x auto"]}, "`weight_scale` must be"),
        ({"ridge": [0.1, -1]}, "`ridge` must be a finite number >= 0"),
        ({"ridge": "gcv"}, "`ridge` must be 'auto' or finite numbers >= 0, got 'gcv'"),
        ({"ridge": np.array([])}, "`ridge` must be 'auto', a value or a list"),
        ({"scoring": "r2"}, "`scoring` must be one of 'loo', 'gcv', got 'r2'"),
        ({"n_draws": 0}, "`n_draws` must be a whole number >= 1, got 0"),
        ({"solver": "lu"}, "`solver` must be one of"),
        ({"packing": "half"}, "`packing` must be one of"),
    ],
)
def test_what_is_refused(parameters, message):
    small = {"algebra": "real", "n_hidden": 2, "weight_scale": 0.1, "ridge": 0.1}
    with pytest.raises(ValueError, match=r"`|mean") as error:
        ELMRegressorCV(**small | parameters).fit(X, Y)
    assert message in str(error.value)


def test_data_that_is_refused():
    with pytest.raises(ValueError, match="fewer neurons or a ridge > 0"):
        ELMRegressorCV("real", [30], ridge=0.0).fit(X, Y)
    with pytest.raises(ValueError, match="`X` must have shape"):
        ELMRegressorCV(["complex", "klein4"], [2]).fit(X.reshape(24, 1, 3, 2), Y)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        ELMRegressorCV().fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="NaN"):
        ELMRegressorCV().fit(X, np.where(Y > 1, np.nan, Y))


def test_the_best_model_can_be_saved(tmp_path):
    search = ELMRegressorCV(["real", "complex"], [2, 3], random_state=0).fit(X, Y)
    save(search, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(X), search.predict(X))


def test_a_sound_choice_on_diabetes():
    inputs, target = load_diabetes(return_X_y=True)
    inputs = scale(inputs)
    search = ELMRegressorCV(["real", "quaternions"], [8, 32], n_draws=2, random_state=0).fit(inputs[::2], target[::2])
    assert search.score(inputs[1::2], target[1::2]) > 0.4


def test_lorenz_above_60_dB_tuned_on_the_training_part_alone():
    """The paper's 300 training points, T = 3; scaling, too, from the training part."""
    positions = lorenz(4000)
    train = positions[:300]
    positions = (positions - train.mean(axis=0)) / train.std(axis=0)
    (inputs, targets), (unseen, truth) = (sliding_windows(part, 3) for part in (positions[:300], positions[300:]))
    for random_state in range(3):
        search = ELMRegressorCV(
            ["real", "quaternions"],
            [35, 70],
            weight_scale=[0.01, 0.03, 0.1],
            readout="algebra",
            packing="imaginary",
            n_draws=2,
            random_state=random_state,
        ).fit(inputs.reshape(len(inputs), -1), targets)
        predicted = search.predict(unseen.reshape(len(unseen), -1))
        assert prediction_gain(truth, predicted, signal=unseen[:, -1]) > 60


@pytest.mark.parametrize("scoring", ["gcv", "loo"])
@pytest.mark.parametrize("unit", [1e-200, 1e-150, 1e150, 1e200])
def test_targets_whose_squares_are_no_numbers(scoring, unit):
    X = np.random.default_rng(0).standard_normal((40, 4))
    model = ELMRegressorCV(["real"], [3, 6], scoring=scoring, n_draws=1, random_state=0)
    with pytest.raises(ValueError, match="`y` must have squares and errors within double precision"):
        model.fit(X, np.sin(X[:, 0]) * unit)


def test_a_search_that_fails_leaves_no_mixture_of_two():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    y = np.sin(X[:, 0])
    model = ELMRegressorCV("real", [4]).fit(X[:, :4], y)
    with pytest.raises(ValueError, match="squares and errors within double precision"):
        model.fit(X, 1e200 * y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_no_weight_at_all():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="`sample_weight` must not be zero for all 40 rows"):
        ELMRegressorCV("real", [4]).fit(rng.standard_normal((40, 5)), rng.standard_normal(40), np.zeros(40))


def test_noise_is_predicted_by_its_mean():
    noise = np.random.default_rng(0).standard_normal(len(X))
    with pytest.warns(BiasOnlyWarning, match="No candidate does better than the mean"):
        search = ELMRegressorCV("real", [2, 4], weight_scale=["auto"], random_state=0).fit(X, noise)
    assert_allclose(search.predict(10 * X), noise.mean(), atol=1e-9)
    assert search.cv_results_["is_bias_only"][search.best_index_]


def test_equal_numbers_of_parameters():
    names = ["real", "complex", "quaternions"]
    search = ELMRegressorCV(names, n_parameters=[200, 400], weight_scale=["auto"], random_state=0).fit(X, Y)
    results = search.cv_results_
    for name in names:
        for readout in ("algebra", "learned", "free"):
            at = (results["param_algebra"] == name) & (results["param_readout"] == readout)
            assert_allclose(results["n_parameters"][at], [200, 400][: at.sum()], rtol=0.1)
    model = search.best_estimator_
    assert model.n_parameters_ == results["n_parameters"][search.best_index_]
    with pytest.raises(ValueError, match="`n_hidden` must be 'auto' where `n_parameters` decides"):
        ELMRegressorCV(names, [5], n_parameters=200).fit(X, Y)
    with pytest.raises(ValueError, match="`n_parameters` must be a whole number >= 1, got 0"):
        ELMRegressorCV(names, n_parameters=[0]).fit(X, Y)


def test_errors_below_rounding_are_not_claimed():
    """Weights of 1e7 predict to 1e-9, whatever the residuals of the training rows say."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((60, 3))
    inputs[:, 2] = inputs[:, 0] + 1e-7 * inputs[:, 2]
    target = 1e7 * (inputs[:, 2] - inputs[:, 0])
    fixed = {"activation": "identity", "weight_scale": 1.0, "n_draws": 1, "random_state": 0, "ridge": [0.0]}
    search = ELMRegressorCV("real", [3], **fixed).fit(inputs, target)
    assert -search.best_score_ > 1e-18


def test_no_candidate_without_all_draws_looks_better_than_the_best():
    """The best of many on one draw is the best by luck, too, so others follow until none is ahead."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((30, 3))
    target = np.sin(2 * inputs[:, 0]) + 0.3 * rng.standard_normal(30)
    for random_state in range(3):
        results = ELMRegressorCV(["real", "complex", "klein4"], [4, 8, 16], random_state=random_state)
        results = results.fit(inputs, target).cv_results_
        has_all = np.isfinite([results[f"draw{n}_test_score"] for n in range(3)]).all(axis=0)
        assert not has_all.all()
        assert results["mean_test_score"][~has_all].max() <= results["mean_test_score"][has_all].max()


def test_where_rows_are_few_most_candidates_have_small_networks():
    """Of 16 pairs of a layer and a readout, four go on to a network of more than one component for two rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(120)
    several = {"algebra": ["complex", "quaternions", "klein4", "R[-1,+1]"], "weight_scale": ["0.1 auto", "auto"]}
    search = ELMRegressorCV(**several, n_hidden=[64, 8], n_draws=1, random_state=0).fit(X, y)
    results = search.cv_results_
    scored, is_large = np.isfinite(results["draw0_test_score"]), results["param_n_hidden"] > 30
    assert scored[~is_large].sum() == 16
    assert scored[is_large].sum() == 4
    has_large = np.flatnonzero(scored & is_large) + 1  # the small networks of a pair follow its large ones
    rest = np.setdiff1d(np.flatnonzero(scored & ~is_large), has_large)
    assert results["draw0_test_score"][has_large].min() >= results["draw0_test_score"][rest].max()


def test_learned_tables_are_scored_on_rows_that_they_have_not_seen(monkeypatch):
    """The errors of every other row are those of refits with a table from the rest."""
    taught = []

    def recorded(accumulator, *arguments, **options):
        found = readouts_of(accumulator, *arguments, **options)
        taught.append((accumulator.n_counted, found[0].algebra))
        return found

    monkeypatch.setattr(scoring, "readouts_of", recorded)
    algebra, seed = algebras.get("klein4"), seeds(5, 1)[0]
    fixed = {"weight_scale": 0.4, "ridge": [0.7], "n_draws": 1, "random_state": 5}
    search = ELMRegressorCV(algebra, [3], readout="learned", **fixed).fit(X, Y)
    W = ELMRegressor(algebra, 3, random_state=seed, weight_scale=0.4).fit(X, Y).hidden_weights_
    inputs, numbers, ones = (pack(array, algebra, into="full") for array in (X, Y, np.ones((1, 3))))
    H, used = hidden(inputs, W, algebra), ones[0] > 0
    assert [counted for counted, _ in taught] == [12, 12]
    errors = []
    for half, (_, table) in zip((1, 0), taught):
        P = linalg.left_matrix(H, table)
        residuals = refitted_residuals(P, numbers, table, 0.7, all_but_the_bias(P, table))
        errors.append(np.mean(residuals[half::2, used] ** 2))
    assert -search.best_score_ == pytest.approx(np.mean(errors), rel=1e-7)


def test_a_constant_layer_predicts_the_mean_everywhere():
    X, y = np.ones((60, 4)), np.repeat([0.0, 10.0], 30)
    search = ELMRegressorCV(["real"], [8], weight_scale=["auto"], random_state=0)
    search.fit(X, y)
    assert_allclose(search.predict(5 * np.random.default_rng(0).standard_normal((4, 4))), 5, atol=1e-6)
