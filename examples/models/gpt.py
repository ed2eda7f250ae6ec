"""A small transformer that writes Python: characters of the standard library's argparse.

Beside its likelihood: that of counted pairs of characters, with Laplace's smoothing.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import weft
from weft import nn, optim

# width, context, blocks, heads, steps
SIZES = {"small": (16, 8, 1, 2, 20), "normal": (64, 48, 2, 4, 800)}
BATCH = 24


def data():
    """Ids of the characters of the text, its last tenth held out, and the characters."""
    text = Path(argparse.__file__).read_text(encoding="utf-8")
    characters = sorted(set(text))
    ids = np.array([characters.index(c) for c in text])
    return ids[:-len(ids) // 10], ids[-len(ids) // 10:], characters


def init(rng, many, size):
    width, context, blocks, _, _ = SIZES[size]

    def block():
        return {"q": weights(width), "k": weights(width), "v": weights(width), "o": weights(width),
                "up": weights(4 * width), "down": nn.init.normal(rng, (4 * width, width), 0.02),
                "norm1": nn.init.ones(width), "norm2": nn.init.ones(width)}

    def weights(columns):
        return nn.init.normal(rng, (width, columns), 0.08)

    return {"tokens": nn.init.normal(rng, (many, width), 0.08),
            "places": nn.init.normal(rng, (context, width), 0.08),
            "blocks": [block() for _ in range(blocks)], "norm": nn.init.ones(width)}


def logits(params, ids, heads):
    x = nn.embedding(ids, params["tokens"]) + params["places"][:ids.shape[-1]]
    for p in params["blocks"]:
        h = nn.layer_norm(x, p["norm1"])
        x = x + nn.multi_head_attention(h, h, h, p["q"], p["k"], p["v"], p["o"], heads,
                                        is_causal=True)
        x = x + nn.gelu(nn.layer_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return nn.layer_norm(x, params["norm"]) @ params["tokens"].T


def loss(params, ids, heads):
    """Nats per character, of each character after the first."""
    return nn.cross_entropy(logits(params, ids[:, :-1], heads), ids[:, 1:])


def pairs(train, test, many):
    """Nats per character of counted pairs."""
    counts = np.ones((many, many))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    return -np.mean(np.log(counts / counts.sum(1, keepdims=True))[test[:-1], test[1:]])


def main(size="normal"):
    train, test, characters = data()
    _, context, _, heads, steps = SIZES[size]
    rng = np.random.default_rng(0)
    params = init(rng, len(characters), size)
    adam = optim.AdamW(optim.CosineDecay(2e-3, steps, warmup=steps // 10), clip_norm=1.0)

    @weft.compile
    def step(params, state, ids):
        value, grads = weft.value_and_grad(loss)(params, ids, heads)
        return (value, *adam.update(grads, state, params))

    scores = weft.compile(lambda params, ids: logits(params, ids, heads)[0, -1])
    state, losses, start = adam.init(params), [], time.perf_counter()
    for _ in range(steps):
        at = rng.integers(0, len(train) - context - 1, BATCH)
        value, params, state = step(params, state, train[at[:, None] + np.arange(context + 1)])
        losses.append(float(value))
    seconds = time.perf_counter() - start
    rows = test[:len(test) // (context + 1) * (context + 1)].reshape(-1, context + 1)
    found = weft.compile(lambda params, ids: loss(params, ids, heads))(params, rows)
    counted = pairs(train, test, len(characters))
    print(f"loss {losses[0]:.3f} -> {np.mean(losses[-20:]):.3f} nats in {steps} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"held-out text: {found:.3f} nats per character, pairs of characters {counted:.3f}")
    written = list(train[:context])
    for _ in range(200 if size == "normal" else 5):
        chances = np.exp(scores(params, np.array(written[-context:])[None]) / 0.7)
        written.append(rng.choice(len(characters), p=chances / chances.sum()))
    print("".join(characters[c] for c in written[context:]))
    return {"losses": losses, "held_out": float(found), "pairs": counted}


if __name__ == "__main__":
    main()
