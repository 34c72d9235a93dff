from __future__ import annotations

from itertools import product

import pytest

from hyperelm import algebras, experiments
from hyperelm.experiments._definition import Experiment, Unit, load, seed_of


def test_names():
    assert "lorenz" in experiments.names()


def test_settings_are_those_of_the_paper():
    settings = load("lorenz").settings
    assert settings["n_hidden"] == list(range(11, 36))
    assert (settings["networks"], len(settings["models"]), settings["train"], settings["window"]) == (100, 8, 300, 3)


def test_a_load_leaves_the_next_one_alone():
    changed = load("lorenz", quick=True, seed=3, changes=["networks=2", "few_hidden=[4]"]).settings
    assert (changed["networks"], changed["few_hidden"], changed["seed"]) == (2, [4], 3)
    assert load("lorenz").settings["networks"] == 100


def test_quick_is_smaller():
    def runs(**options):
        return sum(unit.count for unit in load("lorenz", **options).units())

    assert runs(quick=True) < runs() / 10


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("networks=7", 7),
        ("dt=0.02", 0.02),
        ("n_hidden=[3, 4]", [3, 4]),
        ("n_hidden=12", [12]),
        ('models=["real"]', ["real"]),
        ("models=real", ["real"]),
        ("scaling=none", "none"),
        ('scaling="none"', "none"),
        ("sensitivity=[]", []),
        ('sensitivity=[{name = "x", change = {dt = 0.02}}]', [{"name": "x", "change": {"dt": 0.02}}]),
    ],
)
def test_changes(change, value):
    assert load("lorenz", changes=[change]).settings[change.partition("=")[0]] == value


def test_whole_numbers_are_numbers():
    settings = load("lorenz", changes=["weight_scale=2", "start=[1, 2, 3]"]).settings
    assert [type(number) for number in (settings["weight_scale"], *settings["start"])] == [float] * 4


def test_the_last_change_holds():
    assert load("lorenz", changes=["few_hidden=[3]", "networks=3", "networks=4"]).settings["networks"] == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("networks", "--set must be of the form key=value, got 'networks'"),
        ("netwroks=3", "Did you mean 'networks'?"),
        ("=3", "--set must name a setting, got ''"),
        ("networks=", "--set networks must be a whole number"),
        ("networks=2.5", "--set networks must be a whole number"),
        ("networks=true", "--set networks must be a whole number"),
        ("networks=many", "--set networks must be a whole number"),
        ("networks=0", "--set networks must be at least 1"),
        ("dt=fast", "--set dt must be a number"),
        ("dt=true", "--set dt must be a number"),
        ("scaling=3", "--set scaling must be a text"),
        ('n_hidden=["a"]', "--set n_hidden must be a list"),
        ("n_hidden=[3.5]", "--set n_hidden must be a list"),
        ("n_hidden=[true]", "--set n_hidden must be a list"),
        ("n_hidden=[0]", "--set n_hidden must be at least 1, got [0]"),
        ("n_hidden=[]", "--set n_hidden must not be empty"),
        ("models=[3]", "--set models must be a list"),
        ('start=["a", 1, 2]', "--set start must be a list"),
        ("sensitivity=5", "--set sensitivity must be a list"),
        ("scaling=nothing", "--set scaling must be one of each, common, standard, none"),
        ('models=["quaternoins"]', "Did you mean 'quaternions'?"),
        ("seed=-1", "--seed must be at least 0, got -1"),
    ],
)
def test_wrong_changes(change, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        load("lorenz", changes=[change])
    assert message in str(error.value)


def test_unknown_experiment():
    with pytest.raises(ValueError, match=r"NAME must be one of .*lorenz.*, got 'lorentz'\. Did you mean 'lorenz'\?"):
        load("lorentz")


def test_every_run_is_done_once():
    units = load("lorenz", quick=True).units()
    runs = [(u.part, u.variant, u.algebra, u.n_hidden, network) for u in units for network in u.networks]
    assert len(runs) == len(set(runs)) == sum(unit.count for unit in units)
    main = {run[2:] for run in runs if run[0] == experiments.MAIN}
    settings = load("lorenz", quick=True).settings
    assert main == set(product(settings["models"], settings["n_hidden"], range(settings["networks"])))


@pytest.mark.parametrize("change", ['models=["real", "real"]', "n_hidden=[3, 3]", "few_hidden=[4, 4]"])
def test_no_run_is_done_twice(change):
    with pytest.raises(ValueError, match="--set"):
        load("lorenz", changes=[change]).units()


def test_a_whole_number_too_large_for_a_fraction():
    with pytest.raises(ValueError, match="--set dt must be a number such as"):
        load("lorenz", changes=[f"dt={10**310}"])


def test_units_do_not_depend_on_the_seed():
    assert load("lorenz", quick=True).units() == load("lorenz", quick=True, seed=5).units()


def test_keys_of_units_differ():
    units = load("lorenz").units()
    assert len({unit.key for unit in units}) == len(units)
    assert list(Unit("main", "", "real", 3, 20, 5).networks) == [20, 21, 22, 23, 24]


def test_an_experiment_without_runs_is_refused(monkeypatch):
    experiment = load("lorenz", quick=True)
    monkeypatch.setattr(experiment.module, "units", lambda _: [])
    with pytest.raises(ValueError, match="--set"):
        Experiment("lorenz", experiment.settings, {}).units()


def test_seeds_depend_on_nothing_else():
    assert seed_of(0, "quaternions", 11, 0) == seed_of(0, "quaternions", 11, 0)
    # Numbers that a later version must give, too, or results of earlier ones could not be repeated.
    assert [seed_of(0, "quaternions", 11, n) for n in range(3)] == [3393589142, 1810602032, 2696281860]


def test_seeds_differ():
    runs = list(product((0, 1), algebras.names(), range(11, 36), range(20)))
    seeds = {seed_of(*run) for run in runs}
    # By chance, N²/2³³ pairs of N numbers below 2³² are equal: 0.04 here.
    assert len(seeds) == len(runs)
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_settings_that_ask_for_any_number_of_units():
    """They may come from a file, and must not take more time and memory than can be had."""
    experiment = experiments.load("lorenz")
    experiment.settings["networks"] = 10**11
    with pytest.raises(ValueError, match="at most 1,000,000 units"):
        experiment.units()
