"""Gradient descent: predicted against stepped, a network against its kernel."""

import math

import pytest
import torch
from torch import nn

from ntklib import MLP, empirical_ntk, ntk_gram, predict_flow, predict_gd, train


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X, Y = random(6, 4) / 2, random(6, seed=1)
K = ntk_gram(X, depth=2)
LR = 1 / float(torch.linalg.eigvalsh(K)[-1])


def network(outputs=1, width=32):
    return MLP(4, width, 2, outputs=outputs, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("y", [Y, random(6, 3, seed=2)], ids=["one output", "three"])
@pytest.mark.parametrize("factor", [0.5, 1.9])
def test_prediction_is_the_iteration(y, factor):
    f = f0 = random(*y.shape, seed=3)
    run = predict_gd(K, y, factor * LR, 7, f0=f0)
    for step in range(8):
        assert torch.allclose(run.outputs[step], f, rtol=1e-11, atol=1e-12)
        assert float(run.loss[step]) == pytest.approx(float((f - y).square().sum() / 2), rel=1e-11)
        f = f - factor * LR * K @ (f - y)
    some = predict_gd(K, y, factor * LR, [0, 5], f0=f0)
    assert some.step.tolist() == [0, 5]
    assert torch.allclose(some.outputs, run.outputs[[0, 5]])


def test_flow_is_the_limit_of_small_steps():
    times = torch.tensor([0.0, 0.3, 2.0], dtype=torch.float64)
    flow = predict_flow(K, Y, times)
    fine = predict_gd(K, Y, 1e-5, [0, 30_000, 200_000])
    assert torch.allclose(flow.outputs, fine.outputs, atol=1e-4)
    assert torch.allclose(flow.outputs[2], Y - torch.linalg.matrix_exp(-2 * K) @ Y)


def test_learning_rates_past_the_limit_are_refused_with_the_limit():
    with pytest.raises(
        ValueError, match=rf"2 / lambda_max = {2 * LR:.6g}.*1 / lambda_max = {LR:.6g} is safe"
    ):
        predict_gd(K, Y, 2.1 * LR, 3)
    predict_gd(K, Y, 2 * LR, 3)
    model = network()
    limit = 2 / float(torch.linalg.eigvalsh(empirical_ntk(model, X))[-1])
    with pytest.raises(ValueError, match=f"2 / lambda_max = {limit:.5g}"):
        train(model, X, Y, lr=1.05 * limit, steps=3)
    with pytest.raises(ValueError, match="positive"):
        train(model, X, Y, lr=0.0, steps=3)


def test_linear_model_follows_its_kernel_exactly():
    model = MLP(4, 1, 0, generator=torch.Generator().manual_seed(0))
    f0 = model(X).detach()
    run, predicted = train(model, X, Y, lr=0.1, steps=20, records=20), predict_gd(X @ X.T, Y, 0.1, 20, f0=f0)
    assert run.step.tolist() == list(range(21))
    assert torch.allclose(run.outputs, predicted.outputs, rtol=1e-12, atol=1e-13)
    assert torch.allclose(run.loss, predicted.loss, rtol=1e-12)


def test_wide_networks_follow_the_kernel():
    errors = []
    for width in (32, 1024):
        model = network(width=width)
        f0, kernel = model(X).detach(), empirical_ntk(model, X)
        run, predicted = train(model, X, Y, lr=LR / 2, steps=20), predict_gd(kernel, Y, LR / 2, 20, f0=f0)
        errors.append(float((run.outputs - predicted.outputs).abs().max()))
    assert errors[1] < 0.05
    assert errors[1] < errors[0] / 2


def test_sgd_and_cross_entropy_learn_and_repeat():
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    runs = [
        train(
            network(3),
            X,
            labels,
            lr=0.5,
            steps=200,
            loss="cross_entropy",
            batch=4,
            records=10,
            generator=torch.Generator().manual_seed(1),
        )
        for _ in range(2)
    ]
    assert torch.equal(runs[0].outputs, runs[1].outputs)
    assert float(runs[0].loss[-1]) < 0.1 < float(runs[0].loss[0])
    assert runs[0].outputs.shape == (11, 6, 3)
    square = train(network(), X, Y, lr=LR / 4, steps=400, batch=3, generator=torch.Generator().manual_seed(1))
    assert float(square.loss[-1]) < 0.1 * float(square.loss[0])


def test_sgd_is_unbiased():
    """The mean step over all batches of an epoch is the full step (square loss, scaled by n / batch)."""

    def weight(batch):
        model = nn.Linear(4, 1, bias=False).double()
        nn.init.zeros_(model.weight)
        generator = None if batch is None else torch.Generator().manual_seed(2)
        train(
            model,
            X,
            Y[:, None],
            lr=1e-9,
            steps=1 if batch is None else 6 // batch,
            batch=batch,
            generator=generator,
        )
        return model.weight.detach() / (1 if batch is None else 6 // batch)

    assert torch.allclose(weight(2), weight(None), rtol=1e-6)


def test_early_stops():
    seen = []
    run = train(
        network(), X, Y, lr=LR / 2, steps=50, records=10, callback=lambda *a: seen.append(a) or a[0] >= 20
    )
    assert run.step.tolist() == [0, 5, 10, 15, 20] == [s for s, _ in seen]
    run = train(network(), X, Y, lr=LR / 2, steps=10_000, stop=0.01)
    assert float(run.loss[-1]) <= 0.01 < float(run.loss[-2])


def test_divergence_is_an_error():
    with pytest.raises(ArithmeticError, match="lower lr"):
        train(network(), X, Y, lr=50.0, steps=100, batch=6, generator=torch.Generator())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": Y[:, None]}, r"y must have this shape, got \(6, 1\)"),
        ({"y": Y[:5]}, "y must have this shape"),
        ({"y": Y, "loss": "mse"}, "loss must be"),
        ({"y": Y, "batch": 3}, "torch.Generator"),
        ({"y": Y, "batch": 7, "generator": torch.Generator()}, "1 <= batch <= n = 6"),
        ({"y": torch.zeros(6, dtype=torch.long), "loss": "cross_entropy"}, "integer classes below"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",          # no addresses: two workers must agree on the names
)
def test_refused_training(options, message):
    with pytest.raises(ValueError, match=message):
        train(network(), X, lr=0.1, steps=1, **options)


def test_refused_predictions():
    with pytest.raises(ValueError, match=r"K must be \(n, n\)"):
        predict_gd(K, Y[:4], 0.1, 3)
    with pytest.raises(TypeError, match="share one dtype"):
        predict_gd(K, Y.float(), 0.1, 3)
    assert math.isinf(float(predict_gd(K, Y, 0.1, [10**9]).loss)) is False


K2, Y2 = torch.tensor([[2.0, 0.5], [0.5, 1.0]]), torch.tensor([1.0, -1.0])


@pytest.mark.parametrize(("change", "message"), [
    ({"K": torch.tensor([[2.0, 0.5], [0.1, 1.0]])}, "must be symmetric"),
    ({"K": torch.tensor([[-2.0, 0.0], [0.0, 1.0]])}, "not positive semi-definite.*-2"),
    ({"y": Y2 * math.inf}, "finite"), ({"f0": Y2 * math.nan}, "f0 contains 2 NaN"),
    ({"f0": Y2.double()}, "y and f0 must share one dtype"), ({"f0": [0.0, 0.0]}, "f0 must be a torch.Tensor"),
    ({"steps": [-1]}, "none below 0"), ({"steps": [0.5]}, "sequence of ints"), ({"steps": "3"}, "must be an int"),
    ({"lr": "fast"}, "lr must be a number"), ({"lr": True}, "lr must be a number")])
def test_what_prediction_refuses(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        predict_gd(**{"K": K2, "y": Y2, "lr": 0.1, "steps": 3} | change)


def test_refused_times():
    for times in (3.0, [math.nan]):
        with pytest.raises(ValueError, match="times must be a sequence"):
            predict_flow(K2, Y2, times)


@pytest.mark.parametrize(("change", "message"), [
    ({"X": torch.empty(0, 3), "y": torch.empty(0).long()}, "at least one point"),
    ({"y": torch.ones(6, dtype=torch.bool)}, "int64 or uint8, got torch.bool"), ({"y": [0] * 6}, "y must be a torch.Tensor"),
    ({"X": torch.ones(6, 3).double()}, "X and the model must share one dtype"),
    ({"model": torch.nn.Linear(3, 2).requires_grad_(False)}, "requires_grad")])
def test_refused_classification(change, message):
    usual = {"model": torch.nn.Linear(3, 2), "X": torch.ones(6, 3), "y": torch.zeros(6).long(), "lr": 0.1, "steps": 2}
    with pytest.raises((ValueError, TypeError), match=message):
        train(**usual | change, loss="cross_entropy")


def test_training_under_no_grad():
    with torch.no_grad():
        assert train(torch.nn.Linear(1, 1), torch.ones(1, 1), torch.ones(1, 1), lr=0.1, steps=1).loss.diff() < 0
