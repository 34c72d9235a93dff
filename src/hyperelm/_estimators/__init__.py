"""Extreme learning machines as scikit-learn estimators."""

from hyperelm._estimators.autoencoder import ELMAutoencoder
from hyperelm._estimators.checks import BiasOnlyWarning, RankDeficiencyWarning
from hyperelm._estimators.classifier import ELMClassifier
from hyperelm._estimators.cv import ELMClassifierCV, ELMRegressorCV
from hyperelm._estimators.regressor import ELMRegressor

__all__ = [
    "BiasOnlyWarning",
    "ELMAutoencoder",
    "ELMClassifier",
    "ELMClassifierCV",
    "ELMRegressor",
    "ELMRegressorCV",
    "RankDeficiencyWarning",
]
