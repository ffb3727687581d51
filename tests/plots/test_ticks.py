"""Labels along an axis have room beside each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from mercer.plots import regression_summary
from mercer.plots.canvas import new_figure


@pytest.mark.parametrize("size", [1.0, 1e4, 5e5, 1e7, 3e8])
def test_tick_labels_do_not_run_together(size):
    y = size * np.random.default_rng(0).uniform(0.1, 1.0, 50)
    figure = regression_summary(y, 1.1 * y, target="turnover", figure=new_figure(10.0, 5.2))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for ax in figure.axes:
        boxes = [t.get_window_extent(canvas.get_renderer()) for t in ax.get_xticklabels() if t.get_text()]
        boxes = [b for b in boxes if ax.bbox.x0 - 1 <= (b.x0 + b.x1) / 2 <= ax.bbox.x1 + 1]
        assert len(boxes) >= 2
        assert all(a.x1 + 3 < b.x0 for a, b in pairwise(boxes))
