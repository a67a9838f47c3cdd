import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats import distributions

P = st.floats(0.0, 1.0)
X = st.floats(-1e6, 1e6)
DF = st.integers(1, 10_000)


def are_equal(actual: object, expected: object) -> bool:
    return bool(np.array_equal(np.asarray(actual), np.asarray(expected), equal_nan=True))


@given(x=X | st.sampled_from([np.inf, -np.inf, np.nan]), p=P, df=DF, df_below=DF)
def test_distributions_equal_scipy_to_the_bit(x: float, p: float, df: int, df_below: int) -> None:
    assert are_equal(distributions.t_cdf(x, df), stats.t.cdf(x, df))
    assert are_equal(distributions.t_sf(x, df), stats.t.sf(x, df))
    assert are_equal(distributions.t_isf(p, df), stats.t.isf(p, df))
    assert are_equal(distributions.norm_sf(x), stats.norm.sf(x))
    assert are_equal(distributions.norm_isf(p), stats.norm.isf(p))
    assert are_equal(distributions.chi2_isf(p, df), stats.chi2.isf(p, df))
    assert are_equal(distributions.chi2_ppf(p, df), stats.chi2.ppf(p, df))
    assert are_equal(distributions.chi2_sf(abs(x), df), stats.chi2.sf(abs(x), df))
    assert are_equal(distributions.f_sf(abs(x), df, df_below), stats.f.sf(abs(x), df, df_below))
    assert are_equal(distributions.f_ppf(p, df, df_below), stats.f.ppf(p, df, df_below))


@given(p=st.floats(1e-8, 0.5), df=DF, shift=st.floats(0.0, 100.0))
def test_the_noncentral_t_equals_scipy(p: float, df: int, shift: float) -> None:
    bound = stats.t.isf(p, df)
    assert distributions.nct_sf(bound, df, shift) == pytest.approx(stats.nct.sf(bound, df, shift), abs=1e-12)


def test_running_an_experiment_imports_no_scipy() -> None:
    """Importing scipy would add a second to every launch; `load` imports only scipy.special."""
    script = (
        "import sys\nfrom esper_ab.control import experiment_run\nfrom esper_ab.stats import distributions\n"
        "print([name for name in sys.modules if name.startswith('scipy')])\ndistributions.load()\n"
        "print('scipy.special' in sys.modules, 'scipy.stats' in sys.modules)\n"
    )
    process = subprocess.run([sys.executable, "-c", script], check=True, timeout=120, capture_output=True, text=True)
    assert process.stdout.splitlines() == ["[]", "True False"]
