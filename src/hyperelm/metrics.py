"""Measures of predictions and reconstructions."""

from hyperelm._estimators.metrics import prediction_gain, psnr, ssim

__all__ = ["prediction_gain", "psnr", "ssim"]
