"""Extreme learning machines as scikit-learn estimators."""

from hyperelm.elm.autoencoder import ELMAutoencoder
from hyperelm.elm.checks import BiasOnlyWarning, RankDeficiencyWarning
from hyperelm.elm.classifier import ELMClassifier
from hyperelm.elm.cv import ELMRegressorCV
from hyperelm.elm.regressor import ELMRegressor

__all__ = [
    "BiasOnlyWarning",
    "ELMAutoencoder",
    "ELMClassifier",
    "ELMRegressor",
    "ELMRegressorCV",
    "RankDeficiencyWarning",
]
