"""A variational autoencoder of the UCI digits (Kingma and Welling, 2014), whose samples it draws.

Pixels are probabilities of ink. Beside the error of reconstruction: principal components of the
same number.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import weft
from weft import nn, optim

SIZES = {"small": (120, 2), "normal": (1797, 150)}  # images, epochs
HIDDEN, LATENT = 128, 8


def data(size):
    images = load_digits(return_X_y=True)[0] / 16
    images = images[np.random.default_rng(0).permutation(len(images))][:SIZES[size][0]]
    held = len(images) // 5
    return images[held:].astype(np.float32), images[:held].astype(np.float32)


def init(rng):
    shapes = {"in": (64, HIDDEN), "code": (HIDDEN, 2 * LATENT), "out": (LATENT, HIDDEN),
              "pixels": (HIDDEN, 64)}
    return {name: (nn.init.glorot_uniform(rng, shape), nn.init.zeros(shape[1]))
            for name, shape in shapes.items()}


def encode(params, x):
    """The mean and the logarithm of the variance of each image's code."""
    return np.split(nn.linear(nn.silu(nn.linear(x, *params["in"])), *params["code"]), 2, axis=-1)


def decode(params, z):
    return nn.linear(nn.silu(nn.linear(z, *params["out"])), *params["pixels"])


def loss(params, x, noise):
    """Minus the evidence lower bound, in nats per image."""
    mean, log_variance = encode(params, x)
    pixels = decode(params, mean + np.exp(0.5 * log_variance) * noise)
    error = nn.binary_cross_entropy_with_logits(pixels, x, "sum")
    divergence = 0.5 * np.sum(np.exp(log_variance) + mean ** 2 - 1 - log_variance)
    return (error + divergence) / x.shape[0]


def picture(images):
    """Images side by side, of characters."""
    rows = images.reshape(-1, 8, 8).transpose(1, 0, 2)
    return "\n".join("  ".join("".join(" .:+#"[int(v * 4.99)] for v in row) for row in line)
                     for line in rows)


def main(size="normal"):
    x, test = data(size)
    epochs = SIZES[size][1]
    params, rng = init(np.random.default_rng(0)), weft.random.default_rng(1)
    adam = optim.Adam(optim.CosineDecay(4e-3, epochs * (len(x) // 64), warmup=20))

    @weft.compile
    def step(params, state, x):
        noise = rng.standard_normal((x.shape[0], LATENT), dtype=np.float32)
        value, grads = weft.value_and_grad(loss)(params, x, noise)
        return (value, *adam.update(grads, state, params))

    state, losses, order = adam.init(params), [], np.random.default_rng(2)
    start = time.perf_counter()
    for _ in range(epochs):
        places = order.permutation(len(x))
        for at in range(0, len(x) - 63, 64):
            value, params, state = step(params, state, x[places[at:at + 64]])
            losses.append(float(value))
    seconds = time.perf_counter() - start
    bound = weft.compile(loss)(params, test, order.normal(size=(len(test), LATENT)).astype("f4"))
    rebuilt = nn.sigmoid(decode(params, encode(params, test)[0]))
    components = PCA(LATENT).fit(x)
    linear = components.inverse_transform(components.transform(test))
    errors = [float(np.sqrt(np.mean((r - test) ** 2))) for r in (rebuilt, linear)]
    print(f"loss {losses[0]:.2f} -> {np.mean(losses[-20:]):.2f} nats in {len(losses)} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"held-out images: {bound:.2f} nats; error of reconstruction {errors[0]:.4f}, "
          f"of {LATENT} principal components {errors[1]:.4f}")
    drawn = decode(params, order.normal(size=(8, LATENT)).astype("f4"))
    print(picture(nn.sigmoid(drawn)))
    shown = np.concatenate([test[:8], rebuilt[:8], nn.sigmoid(drawn)]).reshape(3, 8, 8, 8)
    return {"losses": losses, "held_out": float(bound), "errors": errors, "images": shown}


if __name__ == "__main__":
    main()
