"""The line that shows how far a fit, a search or an experiment has come."""

from hyperelm._training.progress import Progress

__all__ = ["Progress"]
