"""Plots draw the numbers they are given, on the axes they are given, and touch nothing else."""

from __future__ import annotations

import io
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from sklearn.metrics import r2_score, root_mean_squared_error

from mercer import plots
from mercer.core.errors import InputError, InputTypeError
from mercer.plots import canvas
from mercer.plots.dials import MANY_POINTS

rng = np.random.default_rng(0)
ACTUAL = rng.normal(100, 30, 50)
PREDICTED = ACTUAL + rng.normal(0, 10, 50)
ALPHAS = np.logspace(-3, 2, 11)
ERRORS = 2 + (np.log10(ALPHAS) + 0.5) ** 2
GRID = np.linspace(0, 1, 20)
KERNEL = np.exp(-np.abs(np.subtract.outer(GRID, GRID)))

ON_AXES = {
    "predicted_against_actual": lambda **ax: plots.predicted_against_actual(ACTUAL, PREDICTED, baseline=100.0, **ax),
    "residuals": lambda **ax: plots.residuals(ACTUAL, PREDICTED, **ax),
    "alpha_path": lambda **ax: plots.alpha_path(ALPHAS, ERRORS, **ax),
    "fit_1d": lambda **ax: plots.fit_1d(GRID, GRID**2, GRID, GRID**2, std=GRID, **ax),
    "gram_matrix": lambda **ax: plots.gram_matrix(KERNEL, **ax),
    "surface": lambda **ax: plots.surface(KERNEL[:, :2], GRID, GRID, GRID, KERNEL, std=KERNEL, **ax),
}
FIGURES = ON_AXES | {
    "regression_summary": lambda: plots.regression_summary(ACTUAL, PREDICTED, alphas=ALPHAS, errors=ERRORS, title="t"),
    "regression_summary without alphas": lambda: plots.regression_summary(ACTUAL, PREDICTED, baseline=ACTUAL[::-1]),
}


def png(drawn):
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


def settings():
    return {
        name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"
    }  # that one loads pyplot


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib.use("Agg")
    yield plt
    plt.close("all")


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_numbers_give_the_same_picture_and_settings_stay(name):
    before = settings()
    first, second = (png(FIGURES[name]()) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert settings() == before


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_is_the_current_figure_of_pyplot(name, pyplot):
    drawn = FIGURES[name]()
    assert pyplot.gcf() is (drawn if isinstance(drawn, Figure) else drawn.figure)
    buffer = io.BytesIO()
    pyplot.savefig(buffer)
    assert np.ptp(matplotlib.image.imread(io.BytesIO(buffer.getvalue()))[..., :3]) > 0.5  # not a blank one


def test_an_empty_figure_of_pyplot_is_drawn_on_and_a_full_one_is_left_alone(pyplot):
    mine = pyplot.figure(figsize=(3, 2))
    assert plots.residuals(ACTUAL, PREDICTED).figure is mine
    assert plots.residuals(ACTUAL, PREDICTED).figure is not mine


def test_many_pictures_give_no_warning(recwarn):
    for _ in range(25):
        plots.gram_matrix(np.eye(2))
    assert not recwarn.list


@pytest.mark.parametrize("name", ON_AXES)
def test_axes_of_ones_own_need_no_pyplot(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert png(ON_AXES[name](ax=canvas.new_figure().add_subplot()))


def test_the_map_has_the_deviation_beside_it_or_as_lines():
    side, z = np.linspace(0, 1, 6), np.add.outer(np.linspace(0, 1, 6), np.linspace(0, 1, 6))
    both = plots.surface([[0.2, 0.4]], [0.5], side, side, z, std=z).figure
    np.testing.assert_allclose(both.axes[0].collections[0].get_array(), z)
    assert "standard deviation" in both.axes[3].get_ylabel()
    alone = plots.surface([[0.2, 0.4]], [0.5], side, side, z, std=z, ax=Figure().add_subplot())
    assert len(alone.figure.axes) == 2  # the map and its colour bar
    assert len(alone.collections) == 3  # colours, lines and rows


@pytest.mark.parametrize("name", ON_AXES)
def test_the_axes_given_are_drawn_on_and_returned(name):
    ax = Figure().add_subplot()
    assert ON_AXES[name](ax=ax) is ax
    assert ax.has_data()
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_points_are_the_values_given_and_the_legend_holds_their_scores():
    other = ACTUAL + 20
    ax = plots.predicted_against_actual(
        ACTUAL, PREDICTED, baseline=other, label="ours", baseline_label="theirs", unit="m"
    )
    ours, theirs = (collection.get_offsets() for collection in ax.collections[:2])
    np.testing.assert_allclose(ours, np.column_stack([ACTUAL, PREDICTED]))
    np.testing.assert_allclose(theirs, np.column_stack([ACTUAL, other]))
    r2, rmse = r2_score(ACTUAL, PREDICTED), root_mean_squared_error(ACTUAL, PREDICTED)
    assert texts(ax) == [f"ours: R² {r2:.2f}, RMSE {rmse:.3g}", f"theirs: R² {r2_score(ACTUAL, other):.2f}, RMSE 20",
                         "± RMSE of ours"]  # fmt: skip
    assert ax.get_xlim() == ax.get_ylim()
    assert ax.get_xlabel() == "Actual target (m)"


def test_a_number_as_baseline_is_a_line():
    ax = plots.predicted_against_actual(ACTUAL, PREDICTED, baseline=ACTUAL.mean(), baseline_label="mean")
    assert any(np.allclose(line.get_ydata(), ACTUAL.mean()) for line in ax.lines)
    assert texts(ax)[1] == f"mean: R² 0.00, RMSE {ACTUAL.std():.3g}"


def test_many_points_become_counts():
    x = rng.normal(size=MANY_POINTS + 1)
    ax = plots.predicted_against_actual(x, x, baseline=x + 1)
    assert ax.collections[0].get_array().sum() == len(x)


def test_targets_that_do_not_vary_have_no_r2():
    ax = plots.predicted_against_actual([1.0, 1.0], [1.0, 2.0])
    assert texts(ax)[0] == "model: RMSE 0.707"


def test_residuals_are_actual_minus_predicted():
    ax = plots.residuals(ACTUAL, PREDICTED)
    np.testing.assert_allclose(ax.collections[-1].get_offsets(), np.column_stack([PREDICTED, ACTUAL - PREDICTED]))


def test_the_chosen_alpha_is_marked_where_the_error_is_least():
    ax = plots.alpha_path(ALPHAS[::-1], ERRORS[::-1])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.column_stack([ALPHAS, ERRORS]))
    x, y = ax.lines[-1].get_xydata()[0]
    assert (x, y) == pytest.approx((ALPHAS[np.argmin(ERRORS)], ERRORS.min()))
    assert texts(ax) == ["alpha = 0.316"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_a_choice_at_the_edge_is_named_and_coloured():
    inside, edge = plots.alpha_path(ALPHAS, ERRORS), plots.alpha_path(ALPHAS, ALPHAS)
    assert texts(edge) == ["alpha = 0.001 (at the edge of the path)"]
    assert edge.lines[-1].get_color() == canvas.ORANGE != inside.lines[-1].get_color()


def test_an_alpha_between_two_of_the_path_lies_on_the_curve():
    ax = plots.alpha_path([1.0, 100.0], [4.0, 16.0], chosen=10.0)
    assert ax.lines[-1].get_xydata()[0] == pytest.approx((10.0, 8.0))


def test_alpha_zero_is_named_though_it_has_no_place():
    ax = plots.alpha_path([0.0, 1.0, 10.0], [1.0, 2.0, 3.0])
    assert texts(ax) == ["alpha = 0 (at the edge of the path)"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [1.0, 10.0])


@pytest.mark.parametrize("top", [1.3, 3.0, 8.0, 50.0, 1e5])
def test_the_error_axis_has_numbers_to_read(top):
    ax = plots.alpha_path([1.0, 2.0, 4.0], [1.0, top**0.5, top])
    ax.figure.canvas.draw()
    low, high = ax.get_ylim()
    labelled = [t for t in ax.yaxis.get_ticklabels(which="both") if t.get_text() and low <= t.get_position()[1] <= high]
    assert len(labelled) >= 2


def test_the_line_is_sorted_and_the_band_two_deviations_wide():
    ax = plots.fit_1d([[0.0], [1.0]], [0.0, 1.0], GRID[::-1], GRID[::-1] ** 2, std=np.full(20, 0.5))
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.column_stack([GRID, GRID**2]))
    heights = ax.collections[0].get_paths()[0].get_extents()
    assert (heights.y0, heights.y1) == pytest.approx((-1.0, 2.0))


def test_gram_matrices_of_one_sign_start_at_zero_and_others_are_symmetric_about_it():
    assert plots.gram_matrix(KERNEL).images[0].get_clim() == (0.0, 1.0)
    assert plots.gram_matrix([[1.0, -3.0]]).images[0].get_clim() == (-3.0, 3.0)
    assert plots.gram_matrix(np.zeros((2, 2))).images[0].get_clim() == (0.0, 1.0)
    np.testing.assert_array_equal(plots.gram_matrix(KERNEL).images[0].get_array(), KERNEL)


def test_tensors_can_be_drawn():
    assert plots.gram_matrix(torch.eye(3)).has_data()
    assert plots.residuals(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0])).has_data()


def test_the_summary_shows_how_alpha_was_chosen_or_what_is_left_over():
    left, right = plots.regression_summary(ACTUAL, PREDICTED, alphas=ALPHAS, errors=ERRORS).axes
    assert (left.get_title("left"), right.get_xlabel()) == ("Predictions for 50 test rows", "alpha (ridge)")
    _, right = plots.regression_summary(ACTUAL, PREDICTED, target="price").axes
    assert right.get_xlabel() == "Predicted price"


@pytest.mark.parametrize(
    ("draw", "error", "words"),
    [
        (lambda: plots.predicted_against_actual([1.0, 2.0], [1.0]), InputError, "predicted has 1 values, expected 2"),
        (lambda: plots.predicted_against_actual([1.0], [1.0], baseline=[1.0, 2.0]), InputError, "baseline"),
        (lambda: plots.residuals([], []), InputError, "actual"),
        (lambda: plots.residuals([np.nan], [1.0]), InputError, "actual contains NaN"),
        (lambda: plots.residuals(["a"], [1.0]), InputTypeError, r"actual=\['a'\]: must be numbers"),
        (lambda: plots.alpha_path([1.0, -1.0], [1.0, 1.0]), InputError, "must not be negative"),
        (lambda: plots.alpha_path([1.0], [1.0], chosen=-1.0), InputError, "chosen=-1.0"),
        (lambda: plots.fit_1d(np.ones((3, 2)), [1.0] * 3, [0.0], [0.0]), InputError, "X must be a sequence"),
        (lambda: plots.fit_1d([1.0], [1.0], [0.0], [0.0, 1.0]), InputError, "mean has 2 values, expected 1"),
        (lambda: plots.surface([[1.0, 2.0]], [1.0], [0, 1], [0, 1], [0.0]), InputError, "mean has shape"),
        (lambda: plots.surface([[1.0]], [1.0], [0, 1], [0, 1], np.eye(2)), InputError, "X has shape"),
        (lambda: plots.gram_matrix([1.0]), InputError, "K must be a matrix"),
        (lambda: plots.regression_summary([1.0], [1.0], alphas=[1.0]), InputError, "alphas and errors"),
    ],
)
def test_bad_input_is_named(draw, error, words):
    with pytest.raises(error, match=words):
        draw()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "mercer\[plot\]"'):
        plots.gram_matrix(KERNEL)
