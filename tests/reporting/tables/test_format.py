import pytest

from dualread.reporting.tables.format import latex, number, plain, rounded
from dualread.reporting.tables.values import Value


def value(mean, std=None, **changes):
    return Value(mean=mean, std=std, n_runs=3, n=10, **changes)


@pytest.mark.parametrize(
    ("given", "printed"),
    [(0.952, ".952"), (0.0, ".000"), (1.0, "1.000"), (-0.0134, "-.013"), (-0.0001, ".000"), (0.9996, "1.000"),
     (-1.25, "-1.250"), (10.5, "10.500"), (0.0005001, ".001")],
)  # fmt: skip
def test_number(given, printed):
    assert number(given) == printed


@pytest.mark.parametrize(
    ("given", "digits", "printed"),
    [
        (87.25, 1, "87.2"),
        (2.0, 0, "2"),
        (0.0, 0, "0"),
        (-0.2, 0, "0"),
        (10.0, 0, "10"),
        (0.0, 1, ".0"),
        (0.44, 1, ".4"),
    ],
)
def test_number_with_other_decimals(given, digits, printed):
    assert number(given, digits) == printed


def test_a_count_that_is_the_same_in_every_run_has_no_deviation():
    assert (plain(value(2.0, 0.0), 0), latex(value(2.0, 0.0), bold=False, digits=0)) == ("2", "$2$")
    assert (plain(value(2.4, 0.6), 0), plain(value(87.25, 0.0), 1)) == ("2±1", "87.2±.0")


def test_rounded_equals_the_printed_number():
    assert rounded(0.95249) == rounded(0.95151) == 0.952
    assert str(rounded(-0.0001)) == "0.0"


def test_plain_and_latex():
    assert plain(value(0.952, 0.004)) == ".952±.004"
    assert latex(value(0.952, 0.004), bold=False) == r"$.952_{\pm.004}$"
    assert latex(value(0.952, 0.004), bold=True) == r"$\mathbf{.952}_{\pm.004}$"
    assert (plain(value(0.443)), latex(value(0.443), bold=False)) == (".443", "$.443$")
    weak = value(0.782, 0.1, short=("donor",))
    assert (plain(weak), latex(weak, bold=False)) == (".782±.100†d", r"$.782_{\pm.100}{}^{\dagger\mathrm{d}}$")
    nothing = value(None, reason="why")
    assert (plain(nothing), latex(nothing, bold=False)) == ("---", "---")
