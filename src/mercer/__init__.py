"""Kernel methods from ten points to a billion: a PyTorch core with the scikit-learn API."""

__version__ = "0.1.0"
