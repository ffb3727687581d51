"""The gallery: each example runs as a script, without a warning, and ends with a picture."""

import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))
WITH_DATA_OF = {"plot_co2": "statsmodels"}
"""Examples whose data come with a package that only the documentation needs."""


@pytest.fixture
def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


def test_there_are_examples():
    assert len(EXAMPLES) >= 11


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_without_a_warning_and_ends_with_a_picture(path, pyplot):
    if path.stem in WITH_DATA_OF:
        pytest.importorskip(WITH_DATA_OF[path.stem])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(path), run_name="__main__")
        for number in pyplot.get_fignums():
            pyplot.figure(number).canvas.draw()  # layout problems show only when the figure is drawn
    assert pyplot.get_fignums()
