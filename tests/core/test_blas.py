from threading import Event, Thread

import pytest
import scipy.linalg  # noqa: F401  (its OpenBLAS is one of the libraries)
from threadpoolctl import ThreadpoolController

from mercer.core.blas import one_blas_thread


def counts():
    return [library.num_threads for library in ThreadpoolController().select(internal_api="openblas").lib_controllers]


def fails_on_one_thread():
    with one_blas_thread(), one_blas_thread():
        assert set(counts()) <= {1}
        raise ValueError("no")


def test_threads_are_put_back_also_after_an_error():
    with ThreadpoolController().select(internal_api="openblas").limit(limits=2):
        before = counts()
        with pytest.raises(ValueError, match="no"):
            fails_on_one_thread()
        assert counts() == before


def test_callers_that_overlap_put_threads_back_when_the_last_of_them_leaves():
    begun, over = Event(), Event()

    def beside():
        with one_blas_thread():
            begun.set()
            over.wait()

    with ThreadpoolController().select(internal_api="openblas").limit(limits=2):
        before, other = counts(), Thread(target=beside)
        with one_blas_thread():
            other.start()
            begun.wait()
        assert set(counts()) <= {1}
        over.set()
        other.join()
        assert counts() == before
