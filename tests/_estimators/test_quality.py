"""Quality on real data, behind a StandardScaler and with defaults, by 5-fold cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperelm import ELMClassifier, ELMRegressor

FOLDS = KFold(5, shuffle=True, random_state=0)


def scores(model, load, folds=FOLDS, dtype=float):
    X, y = load(return_X_y=True)
    return cross_val_score(make_pipeline(StandardScaler(), model), X, y.astype(dtype), cv=folds)


def linear(load):
    return scores(RidgeCV(np.logspace(-3, 3, 13)), load)


@pytest.mark.parametrize("load", [load_diabetes, load_wine])
def test_within_a_standard_error_of_ridge_regression(load):
    baseline = linear(load)
    error = baseline.std(ddof=1) / np.sqrt(len(baseline))
    assert scores(ELMRegressor(random_state=0), load).mean() >= baseline.mean() - error


def test_better_than_ridge_regression_on_digits():
    assert scores(ELMRegressor(random_state=0), load_digits).mean() > linear(load_digits).mean() + 0.1


@pytest.mark.slow
def test_digits_classifier():
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = ELMClassifier("R[-1,+1]", 500, random_state=0)
    assert scores(model, load_digits, folds, int).mean() >= 0.965
