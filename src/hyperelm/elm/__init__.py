"""Extreme learning machines as scikit-learn estimators."""
