"""Smoothed labels."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import KernelClassifier
from mercer.kernels import Gaussian
from mercer.selection.smoothed import smoothed_labels


def test_labels_are_probabilities_that_come_nearer_to_certainty_with_more_rows():
    few, many = smoothed_labels(torch.tensor([0, 1, 2]), 3), smoothed_labels(torch.arange(3).repeat(1000), 3)
    for labels in (few, many):
        assert torch.allclose(labels.sum(1), torch.ones(len(labels)).double())
    assert float(few[0, 0]) == pytest.approx(3 / 4)
    assert float(many[0, 0]) == pytest.approx(1001 / (1001 + 2 / 3))


def test_integer_weights_equal_repeated_rows():
    codes, weights = torch.tensor([0, 1, 1]), torch.tensor([2.0, 1.0, 3.0])
    repeated = smoothed_labels(torch.tensor([0, 0, 1, 1, 1, 1]), 2)
    assert torch.allclose(smoothed_labels(codes, 2, weights), repeated[[0, 2, 3]])


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize(("loss", "alpha"), [("logistic", "auto"), ("hinge", 0.5)])
def test_few_rows_that_are_all_right_do_not_make_a_model_certain(load, loss, alpha):
    """Mean log-loss over halves of small sets is below that of SVC(probability=True) with the same kernel."""
    ours, theirs = [], []
    X, y = load(return_X_y=True)
    gamma = 1.0 / X.shape[1]
    for seed in range(3):
        old, new, y_old, y_new = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
        scale = StandardScaler().fit(old)
        old, new = scale.transform(old), scale.transform(new)
        model = KernelClassifier(Gaussian.from_gamma(gamma), loss=loss, alpha=alpha, fit_intercept=True)
        ours.append(log_loss(y_new, model.fit(old, y_old).predict_proba(new)))
        theirs.append(
            log_loss(y_new, SVC(gamma=gamma, probability=True, random_state=0).fit(old, y_old).predict_proba(new))
        )
    assert np.mean(ours) < np.mean(theirs)
