"""The chapter on depth: its figures' numbers by a second method, the numbers in its prose, its derivations."""

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import angle_between, angle_map, angles, embedding_angle, kernels, symbolic
from ntklib.book.claims import depth as claims
from ntklib.book.explorables import depth as show


# ---- for the tests of all chapters -------------------------------------------------------------------------------
def scaled(f, factor):
    return lambda *args, **kw: factor * f(*args, **kw)


EMBED, GRAM = angles.embedding_angle, kernels.nngp_gram
SABOTAGE = {
    "depth-ceiling": [(claims, "A", 1.001 / (3 * math.pi)), (claims, "small_angle_margin", lambda z: 1.0)],
    "depth-model": [(claims, "layer", lambda z: z / (1 + z / (3 * math.pi)))],
    "depth-rate": [(angles, "embedding_angle", scaled(EMBED, 1 + 1e-9))],
    "depth-lemma": [(claims, "exact", lambda z, depth: z - depth * z**2 / (3 * mp.pi))],
    "depth-crossover": [(angles, "embedding_angle", lambda z, depth: z * math.exp(-depth * float(z) / (3 * math.pi)))],
    "depth-order": [(angles, "embedding_angle", lambda z, depth: (z * (math.pi - z)) / (depth + 3))],
    "depth-contrast": [(angles, "embedding_angle", scaled(EMBED, 1 + 1e-9))],
    "depth-edge": [(angles, "angle_map", lambda z: 0.9 * z)],
    "depth-phases": [(kernels, "nngp_gram", lambda X, **kw: GRAM(X, **kw | {"activation": "relu"}))],
    "depth-width": [(claims, "library", lambda z, depth: 2 * EMBED(torch.tensor(z, dtype=torch.float64), depth))],
}


def table(X):
    return angle_between(X[:, None], X[None])


def looped(X, depth):
    theta = table(X)
    for _ in range(depth):
        theta = angle_map(theta)
    return theta


def by_cosines(X, depth):
    c = (X @ X.T / X.norm(dim=1) / X.norm(dim=1)[:, None]).clamp(-1, 1)
    for _ in range(depth):
        t = c.arccos()
        c = (((math.pi - t) * c + t.sin()) / math.pi).clamp(-1, 1)
    return c.arccos()


def with_log(theta, depth, weight=1 / (2 * math.pi)):
    s = depth * theta / (3 * math.pi)
    return 1 / (1 / theta + depth / (3 * math.pi) + weight * torch.log(1 + s))


STUDENTS = {
    "depth.ex5": [
        (lambda X, depth: angle_map(table(X)), "apply the map `depth` times".replace("`", "")),
        (lambda X, depth: looped(X, depth + 1), "one layer too many"),
        (lambda X, depth: table(X) / (1 + depth * table(X) / (3 * math.pi)), "leaves out the logarithm"),
        (lambda X, depth: looped(X, depth).rad2deg(), "give radians"),
        (by_cosines, "an arccosine was taken"),
        (lambda X, depth: looped(X, depth)[0], "and (6, 6) is wanted"),
    ],
    "depth.ex6": [
        (lambda theta, depth: theta / (1 + depth * theta / (3 * math.pi)), "the continuous model itself"),
        (lambda theta, depth: theta - depth * theta**2 / (3 * math.pi), "Work with the reciprocal"),
        (lambda theta, depth: with_log(theta, depth, 1 / (3 * math.pi)), "its factor is not"),
        (lambda theta, depth: with_log(theta, depth, 1 / (6 * math.pi**2)), "times 3π"),
        (lambda theta, depth: 1 / (1 / theta + depth / (3 * math.pi) + depth * theta / (6 * math.pi**2)), "the angle shrinks"),
    ],
}
CORRECT = {
    "depth.ex5": [looped, lambda X, depth: embedding_angle(table(X), depth)],
    "depth.ex6": [with_log, embedding_angle],
}


# ---- the figures' numbers by other means -------------------------------------------------------------------------
@pytest.mark.parametrize("theta", [1, 90, 180])
def test_a_walk_is_the_printed_formula_iterated(theta):
    with mp.workdps(30):
        path = [mp.mpf(theta) * mp.pi / 180]
        for _ in range(50):
            path.append(mp.acos(((mp.pi - path[-1]) * mp.cos(path[-1]) + mp.sin(path[-1])) / mp.pi))
        want = [float(mp.degrees(t)) for t in path]
    assert show.walk((theta,), tuple(range(51)))[:, 0] == pytest.approx(want, rel=1e-13)
    state = show.fifty_layers(theta, 50)
    assert state["after"] == pytest.approx(want[50], rel=1e-13)
    assert state["left"] == pytest.approx(want[50] / theta, rel=1e-13)


def test_a_staircase_goes_down_to_the_curve_and_across_to_the_diagonal():
    state = show.staircase(120, 8)
    x, y = state["stairs"]["x"], state["stairs"]["y"]
    drawn = np.isfinite(x)
    assert drawn.sum() == 2 * 8 + 1
    assert (x[drawn][::2] == y[drawn][::2]).all()                              # every second corner is on the diagonal
    on_curve = np.degrees(angle_map(torch.tensor(np.radians(x[drawn][1::2]))).numpy())
    assert y[drawn][1::2] == pytest.approx(on_curve, rel=1e-13)
    assert x[drawn][1::2] == pytest.approx(x[drawn][:-1:2])                    # straight down
    assert state["step"] == pytest.approx(state["path"]["angle"][8] - show.staircase(120, 9)["after"], rel=1e-10)


def test_all_starts_obey_the_law_and_its_rescaling():
    for theta in show.FUNNEL:
        state = show.collapse_law(theta, 100)
        every = state["every"]
        assert (every["angle"] <= show.cap(every["L"])).all()
        assert every["left"] * (1 + every["s"]) == pytest.approx(1, abs=0.35)  # one layer from 180 degrees: 90 of 135
        assert (every["left"] * (1 + every["s"]) <= 1 + 1e-14).all()
        assert state["after"] <= state["bound"]
        i = list(state["chosen"]["L"]).index(100)
        assert state["now"]["angle"][0] == state["chosen"]["angle"][i] == state["after"]
    near = show._funnel()
    close = near["start"] <= 0.3
    assert near["left"][close] * (1 + near["s"][close]) == pytest.approx(1, abs=1e-3)


def test_a_real_network_of_the_papers_form_has_these_angles():
    """The plane's network against the library's MLP, fed with the same weights."""
    from ntklib import MLP
    g = torch.Generator().manual_seed(3)
    model = MLP(2, width=40, depth=3, generator=g)
    replay = torch.Generator().manual_seed(3)
    got = show.real_angles([50.0], 40, (1, 3), 1, replay)[0, :, 0]
    t = math.radians(50)
    a, want = torch.tensor([[1.0, 0], [math.cos(t), math.sin(t)]], dtype=torch.float64), []
    with torch.no_grad():
        for layer in model.layers[:-1]:
            a = model.scale * torch.relu(layer(a))
            want.append(angle_between(a[0], a[1]))
    torch.testing.assert_close(got, torch.stack([want[0], want[2]]), rtol=1e-12, atol=0)


def test_the_measured_network_scatters_round_the_law():
    ratio = show._measured() / show.walk(show.FUNNEL, show.MEASURED)
    assert (np.abs(np.log(ratio)) < 4 * np.sqrt(np.array(show.MEASURED) / show.WIDTH)[:, None] + 0.01).all()


@pytest.mark.parametrize("pair", show.PAIRS)
def test_the_pictures_are_as_far_apart_as_the_embeddings(pair):
    u, v, theta = show._pair(pair)
    assert theta == pytest.approx(math.degrees(math.acos(float(u @ v))), rel=1e-10)
    for depth in (0, 5, 100):
        state = show.digits(pair, depth)
        grey = torch.tensor(state["pixels"]["grey"]).reshape(2, 64)
        shown = math.degrees(angle_between(*grey))
        assert shown == pytest.approx(state["after"], abs=1.2)                 # 33 grey levels
        assert state["after"] == pytest.approx(math.degrees(EMBED(torch.tensor(math.radians(theta), dtype=torch.float64), depth)), rel=1e-12)
        if depth == 0:
            assert grey[0].numpy() == pytest.approx((u / u.max()).numpy(), abs=1 / 60)


def test_the_numbers_in_the_text_about_digits():
    X, _ = show._digits()
    cosine = (X @ X.T / X.norm(dim=1) / X.norm(dim=1)[:, None])[torch.triu_indices(len(X), len(X), 1).unbind()]
    assert round(math.degrees(math.acos(cosine.max()))) == 5
    assert round(math.degrees(math.acos(cosine.min()))) == 75
    assert bool((X >= 0).all())
    assert len(X) == 1797
    assert show.digits("3 and 8", 0)["contrast"] == pytest.approx(1.41, abs=0.005)
    assert show.digits("3 and 8", 100)["contrast"] == pytest.approx(1.05, abs=0.005)
    crowd = np.array(show._crowd()[0])
    assert len(crowd) == 120
    assert (show.walk(tuple(crowd), (0, 100))[1] < 5.3).all()


def test_the_other_numbers_in_the_text():
    right = torch.tensor(math.pi / 2, dtype=torch.float64)
    first = math.degrees(angle_map(right))
    assert first == pytest.approx(71.4, abs=0.05)
    assert first / 90 == pytest.approx(0.8, abs=0.01)                          # four fifths
    assert 90 * (first / 90) ** 50 == pytest.approx(0.001, abs=2e-4)           # had every layer taken the same share
    assert show.cap(100) == pytest.approx(5.24, abs=0.005)
    assert show.fifty_layers(1, 50)["left"] == pytest.approx(0.9, abs=0.02)    # one degree keeps nine tenths


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "gelu", "leaky", "abs"])
def test_a_layer_of_another_activation_by_monte_carlo(activation):
    f = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "gelu": torch.nn.functional.gelu, "abs": torch.abs,
         "leaky": lambda u: torch.nn.functional.leaky_relu(u, 0.3)}[activation]
    t = torch.tensor([0.3, 1.2], dtype=torch.float64)
    u, w = torch.randn(2, 400_000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for angle, got in zip(t.tolist(), show.one_layer(t, activation).tolist(), strict=True):
        a, b = f(u), f(math.cos(angle) * u + math.sin(angle) * w)
        sample = a * b / (f(u) ** 2).mean()
        assert abs(float(sample.mean()) - math.cos(got)) < 5 * float(sample.std()) / 400_000**0.5


def test_the_fates_of_the_activations():
    states = {a: show.edge(a, 5) for a in show.ACTIVATIONS}
    assert {a: s["fate"] for a, s in states.items()} == {
        "relu": "the edge", "leaky": "the edge", "abs": "the edge", "tanh": "chaotic", "sin": "chaotic", "gelu": "chaotic",
        "softplus": "ordered", "sigmoid": "ordered"}
    assert show.edge("tanh", 90)["after"] == pytest.approx(90, abs=1e-6)       # an odd activation keeps a right angle
    assert show.edge("gelu", 90)["after"] == pytest.approx(states["gelu"]["after"], abs=15)


# ---- the derivations ---------------------------------------------------------------------------------------------
Z, A, L = sp.Symbol("z"), sp.Symbol("a"), sp.Symbol("L")


def test_every_step_holds_and_says_why():
    for step in symbolic.depth.reciprocal_steps(Z):
        assert step.holds, step.title
        assert step.reason.endswith(".")


@pytest.mark.parametrize("slope", [0, sp.Rational(1, 2), -1, 1])
def test_the_series_leave_out_the_next_order(slope):
    g = sp.lambdify(Z, symbolic.angle_map(Z, slope), "mpmath")
    reciprocal = sp.lambdify(Z, symbolic.depth.reciprocal_series(Z, 2, slope), "mpmath")
    with mp.workdps(80):
        left = [abs(1 / g(z) - reciprocal(z)) for z in (mp.mpf("2e-5"), mp.mpf("1e-5"))]
        assert left[1] < mp.mpf("1e-40") if slope == 1 else float(mp.log(left[0] / left[1], 2)) == pytest.approx(3, abs=0.01)
        for depth in (0, 1, 4):
            series = sp.lambdify(Z, symbolic.depth.embedding_angle_series(Z, depth, 4, slope), "mpmath")

            def off(z, depth=depth, series=series):
                t = z
                for _ in range(depth):
                    t = g(t)
                return abs(t - series(z))

            far, near = off(mp.mpf("2e-5")), off(mp.mpf("1e-5"))
            if depth and slope != 1:
                assert float(mp.log(far / near, 2)) == pytest.approx(5, abs=0.01)
            else:
                assert near < mp.mpf("1e-60")


def test_the_series_with_a_symbolic_depth():
    found = sp.Poly(symbolic.depth.embedding_angle_series(Z, L, 3), Z)
    for power, want in ((1, 1), (2, -L / (3 * sp.pi)), (3, (2 * L**2 - 3 * L) / (18 * sp.pi**2))):
        assert sp.simplify(found.coeff_monomial(Z**power) - want) == 0


def test_the_bracket_of_the_proof():
    """The polynomial is below the true margin, and the intervals hold the function's values."""
    with mp.workdps(40):
        for z in (mp.mpf("0.01"), mp.mpf("0.3"), mp.mpf(1)):
            true = (mp.cos(z) + (mp.sin(z) - z * mp.cos(z)) / mp.pi - mp.cos(z / (1 + z / (3 * mp.pi)))) / z**4
            assert 0 < claims.small_angle_margin(float(z)) < true
            assert claims.small_angle_margin(float(z)) >= claims.small_angle_margin(1.0)    # it falls up to 1
        values = [mp.cos(z) + (mp.sin(z) - z * mp.cos(z)) / mp.pi - mp.cos(z / (1 + z / (3 * mp.pi)))
                  for z in mp.linspace(1, mp.pi, 301)]
    assert 0 < float(claims.least_margin()) <= float(min(values))
    assert not claims.least_margin(3) > 0                                      # too few pieces prove nothing
