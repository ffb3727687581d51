"""The order in which the gallery is read."""

from pathlib import Path

ORDER = [
    "first_model",
    "kernel_zoo",
    "tuning",
    "more_data",
    "tables",
    "classification",
    "quantiles",
    "gaussian_process",
    "co2",
    "gaussian_process_classification",
    "concentric_circles",
    "ten_houses",
    "ridge_on_features",
    "random_features",
    "kernel_pca",
    "duplicates_and_grouping",
    "rkhs_functions",
    "double_descent",
    "degrees",
    "gram_operator",
    "landmarks",
    "early_stopping",
    "spectral_bias",
    "wide_networks",
    "lazy_and_rich",
    "which_features_matter",
    "two_samples",
    "my_sampler",
    "thin_a_chain",
    "drift",
    "strings",
    "own_kernel",
]


class ReadingOrder:
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        return ORDER.index(Path(filename).stem.removeprefix("plot_"))
