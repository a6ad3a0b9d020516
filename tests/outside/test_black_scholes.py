"""Black and Scholes: the price of a call, and its greeks to the third order by gradients of gradients.

It stands for programs that are one formula and need many derivatives of it. The formula, and the example of a call on
42 at 40 that is worth 4.76 (and the put 0.81): Hull, Options, Futures and Other Derivatives, the chapter on the
Black-Scholes-Merton model. Names and signs of the greeks: Haug, The Complete Guide to Option Pricing Formulas (2007),
chapter 2. The truth is mpmath's numerical differentiation with 60 digits; delta, gamma and vega are also compared with
their closed forms.
"""

import math

import mpmath
import pytest

import micrograd as mg
from tests.outside.ways import WAYS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

SPOT, STRIKE, RATE, VOLATILITY, TIME = range(5)  # which argument is which

GREEKS = {
    "price": (),
    "delta": (SPOT,),
    "vega": (VOLATILITY,),
    "rho": (RATE,),
    "minus theta": (TIME,),
    "strike delta": (STRIKE,),
    "gamma": (SPOT, SPOT),
    "vanna": (SPOT, VOLATILITY),
    "minus charm": (SPOT, TIME),
    "volga": (VOLATILITY, VOLATILITY),
    "minus veta": (VOLATILITY, TIME),
    "density": (STRIKE, STRIKE),
    "speed": (SPOT, SPOT, SPOT),
    "zomma": (SPOT, SPOT, VOLATILITY),
    "minus color": (SPOT, SPOT, TIME),
    "ultima": (VOLATILITY, VOLATILITY, VOLATILITY),
    "vega's slope": (SPOT, VOLATILITY, VOLATILITY),
}

MARKETS = {
    "Hull's example": (42.0, 40.0, 0.1, 0.2, 0.5),
    "at the money": (100.0, 100.0, 0.05, 0.2, 1.0),
    "far in the money": (150.0, 80.0, 0.02, 0.35, 2.0),
    "far out of the money": (70.0, 120.0, 0.01, 0.25, 0.75),
    "a negative rate": (100.0, 105.0, -0.01, 0.15, 0.25),
}


def normal_cdf(x):
    return mg.erfc(-x / math.sqrt(2.0)) / 2.0


def call(spot, strike, rate, volatility, time):
    spread = volatility * mg.sqrt(time)
    d1 = (mg.log(spot / strike) + (rate + volatility**2 / 2) * time) / spread
    return spot * normal_cdf(d1) - strike * mg.exp(-rate * time) * normal_cdf(d1 - spread)


def put(spot, strike, rate, volatility, time):
    spread = volatility * mg.sqrt(time)
    d1 = (mg.log(spot / strike) + (rate + volatility**2 / 2) * time) / spread
    return strike * mg.exp(-rate * time) * normal_cdf(spread - d1) - spot * normal_cdf(-d1)


def true_call(spot, strike, rate, volatility, time):
    spread = volatility * mpmath.sqrt(time)
    d1 = (mpmath.log(spot / strike) + (rate + volatility**2 / 2) * time) / spread
    return spot * mpmath.ncdf(d1) - strike * mpmath.exp(-rate * time) * mpmath.ncdf(d1 - spread)


def derivative(f, by):
    for argument in by:
        f = mg.grad(f, argument)
    return f


@pytest.mark.parametrize("greek", GREEKS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.unmeasured
def test_greeks_are_those_of_mpmath(way, greek):
    by = GREEKS[greek]
    f = WAYS[way](derivative(call, by))
    for market in MARKETS.values():
        with mpmath.workdps(60):
            orders = tuple(by.count(argument) for argument in range(5))
            exact = mpmath.diff(true_call, tuple(map(mpmath.mpf, market)), orders) if by else true_call(*market)
            scale = max(abs(exact), abs(true_call(*map(mpmath.mpf, market))) * mpmath.mpf("1e-9"))
            assert abs(mpmath.mpf(float(f(*market))) - exact) < 1e-10 * scale, (greek, market)


@pytest.mark.parametrize("way", WAYS)
def test_the_figures_of_the_book(way):
    market = MARKETS["Hull's example"]
    assert round(WAYS[way](call)(*market), 2) == 4.76
    assert round(WAYS[way](put)(*market), 2) == 0.81
    assert round(WAYS[way](call)(*MARKETS["at the money"]), 4) == 10.4506


@pytest.mark.parametrize("way", WAYS)
def test_the_closed_forms_of_the_first_greeks(way):
    spot, strike, rate, volatility, time = market = MARKETS["at the money"]
    d1 = (math.log(spot / strike) + (rate + volatility**2 / 2) * time) / (volatility * math.sqrt(time))
    density = math.exp(-(d1**2) / 2) / math.sqrt(2 * math.pi)
    truths = {
        (SPOT,): math.erfc(-d1 / math.sqrt(2)) / 2,
        (SPOT, SPOT): density / (spot * volatility * math.sqrt(time)),
        (VOLATILITY,): spot * density * math.sqrt(time),
    }
    for by, truth in truths.items():
        assert math.isclose(WAYS[way](derivative(call, by))(*market), truth, rel_tol=1e-13)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.unmeasured
def test_the_greeks_satisfy_the_equation_of_black_and_scholes(way):
    """A call and a put: -dV/dT + S^2 s^2 / 2 gamma + r S delta - r V = 0. And their difference is S - K exp(-r T)."""
    for market in MARKETS.values():
        spot, strike, rate, volatility, time = market
        prices = []
        for option in (call, put):
            price, delta, gamma, by_time = (
                WAYS[way](derivative(option, by))(*market) for by in ((), (SPOT,), (SPOT, SPOT), (TIME,))
            )
            rest = -by_time + spot**2 * volatility**2 / 2 * gamma + rate * spot * delta - rate * price
            assert abs(rest) < 1e-12 * spot
            prices.append(price)
        assert math.isclose(prices[0] - prices[1], spot - strike * math.exp(-rate * time), rel_tol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_all_greeks_of_the_second_order_at_once(way):
    """As a hessian of the market as a dict, whose names are those of the greeks."""
    names = ("spot", "strike", "rate", "volatility", "time")
    market = dict(zip(names, MARKETS["Hull's example"], strict=True))
    both = WAYS[way](mg.hessian(lambda market: call(**market)))(market)
    for first in names:
        for second in names:
            by = (names.index(first), names.index(second))
            single = derivative(call, by)(*market.values())
            assert math.isclose(both[first][second], single, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_the_implied_volatility_by_newtons_method(way):
    """The volatility at which the formula gives the price of the market: Hull, the same chapter."""
    both = WAYS[way](mg.value_and_grad(call, VOLATILITY))
    guess = 0.5
    for _ in range(20):
        price, vega = both(42.0, 40.0, 0.1, guess, 0.5)
        guess -= (price - 4.759422392871535) / vega
    assert math.isclose(guess, 0.2, rel_tol=1e-12)
