"""A generative adversarial pair of the UCI digits (Goodfellow et al., NeurIPS 2014): one graph, of
which the training steps of critic and generator are fetched in turn.

Beside the likelihood of held-out images by Parzen windows on samples (as there): that by samples of
scikit-learn's Gaussian mixture, and by training images.
"""

import time
from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import weft
from weft import nn, optim

SIZES = {"small": (150, 20), "normal": (1797, 8000)}  # images, steps of each
LATENT, HIDDEN, BATCH = 32, 256, 64


def data(size):
    images = load_digits(return_X_y=True)[0] / 16
    images = images[np.random.default_rng(0).permutation(len(images))][:SIZES[size][0]]
    held = len(images) // 5
    return images[held:].astype(np.float32), images[:held].astype(np.float32)


def init(rng):
    widths = {"generator": (LATENT, HIDDEN, HIDDEN, 64), "critic": (64, HIDDEN, HIDDEN, 1)}
    return {name: [(nn.init.he_normal(rng, shape), nn.init.zeros(shape[1]))
                   for shape in pairwise(several)] for name, several in widths.items()}


def network(layers, h):
    for w, b in layers[:-1]:
        h = nn.leaky_relu(nn.linear(h, w, b), 0.2)
    return nn.linear(h, *layers[-1])


def generate(params, noise):
    return nn.sigmoid(network(params["generator"], noise))


def critic_loss(params, real, noise):
    true, false = (network(params["critic"], x) for x in (real, generate(params, noise)))
    return np.mean(nn.softplus(-true)) + np.mean(nn.softplus(false))


def generator_loss(params, noise):
    return np.mean(nn.softplus(-network(params["critic"], generate(params, noise))))


def build(variables, steps):
    """The graph, and what of it is fetched."""
    graph = weft.Graph("adversaries")
    with graph.as_default():
        real = weft.placeholder("f32", (None, 64), name="real")
        noise = weft.placeholder("f32", (None, LATENT), name="noise")
        losses = critic_loss(variables, real, noise), generator_loss(variables, noise)
        parts = {"images": generate(variables, noise)}
        for name, loss in zip(("critic", "generator"), losses, strict=True):
            adam = optim.Adam(optim.CosineDecay(1e-3, steps), beta1=0.5)
            parts[name] = loss, adam.minimize(loss, weft.tree.leaves(variables[name]))
    return graph, parts


def likelihood(made, tried, test):
    """Nats of an image of test by Parzen windows on those made, of a width that suits those tried.
    """
    windows = [KernelDensity(bandwidth=width).fit(made) for width in np.linspace(0.1, 0.4, 13)]
    return max(windows, key=lambda each: each.score(tried)).score(test) / len(test)


def main(size="normal"):
    x, test = data(size)
    steps, rng = SIZES[size][1], np.random.default_rng(0)
    graph, parts = build(weft.tree.map(weft.Variable, init(rng)), steps)
    session, losses = weft.Session(graph), {"critic": [], "generator": []}
    start = time.perf_counter()
    for _ in range(steps):
        for name, needs in (("critic", {"real:0": x[rng.integers(0, len(x), BATCH)]}),
                            ("generator", {})):
            needs["noise:0"] = rng.standard_normal((BATCH, LATENT), np.float32)
            losses[name].append(float(session.run(parts[name], needs)[0]))
    seconds = time.perf_counter() - start
    made = session.run(parts["images"], {"noise:0": rng.standard_normal((len(x), LATENT), "f4")})
    mixture = GaussianMixture(10, reg_covar=1e-3, random_state=0).fit(x).sample(len(x))[0]
    nats = [likelihood(images, test[::2], test[1::2]) for images in (made, mixture, x)]
    last = [np.mean(each[-100:]) for each in losses.values()]
    print(f"losses {losses['critic'][0]:.3f}, {losses['generator'][0]:.3f} -> {last[0]:.3f}, "
          f"{last[1]:.3f} in {steps} steps of each, {seconds:.1f} s with compiling")
    print(f"held-out images by Parzen windows: {nats[0]:.1f} nats, of a Gaussian mixture's samples "
          f"{nats[1]:.1f}, of training images {nats[2]:.1f}")
    return {"losses": losses, "nats": nats, "images": made[:32].reshape(4, 8, 8, 8)}


if __name__ == "__main__":
    main()
