"""Vectors of the words of Python's standard library (Mikolov et al., NeurIPS 2013), learnt by
negative sampling, and by sampled softmax.

Beside the likelihood of held-out neighbours: that of counted words, and of smoothed counted pairs.
"""

import argparse
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np

import weft
from weft import nn, optim

SIZES = {"small": (3, 60, 40), "normal": (200, 2000, 3000)}  # files, words, steps
WIDTH, REACH, BATCH, NEGATIVE, SAMPLED = 32, 4, 1024, 8, 128


def data(size):
    """Ids of near words, those of every tenth file held out; the words, most frequent first."""
    files = sorted(Path(argparse.__file__).parent.glob("*.py"))[:SIZES[size][0]]
    texts = [re.findall(r"[A-Za-z_]\w+", file.read_text("utf-8")) for file in files]
    counted = Counter(word for text in texts for word in text).most_common(SIZES[size][1])
    ids = {word: at for at, (word, _) in enumerate(counted)}
    pairs = [[], []]
    for at, text in enumerate(texts):
        known = np.array([ids[word] for word in text if word in ids])
        for by in range(1, REACH + 1):
            near = np.stack([known[by:], known[:-by]], axis=1)
            pairs[at % 10 == 1] += [near, near[:, ::-1]]
    return *(np.concatenate(part) for part in pairs), [word for word, _ in counted]


def init(rng, many):
    return {"words": nn.init.normal(rng, (many, WIDTH), 0.3),
            "near": nn.init.normal(rng, (many, WIDTH), 0.1), "bias": nn.init.zeros(many)}


def negative_sampling(params, words, near, rng, chances):
    """Pairs are told from pairs with other words, of these chances."""
    others = rng.choice(len(chances), (len(words), NEGATIVE), p=chances)
    x = params["words"][words]
    true = np.sum(x * params["near"][near], axis=-1) + params["bias"][near]
    false = np.sum(x[:, None] * params["near"][others], axis=-1) + params["bias"][others]
    return np.mean(nn.softplus(-true) + np.sum(nn.softplus(false), axis=-1))


def sampled_softmax(params, words, near, rng, chances):
    x = params["words"][words]
    return nn.sampled_softmax(x, near, params["near"], params["bias"], SAMPLED, rng)


def train(loss, pairs, chances, steps):
    adam, rng = optim.Adam(optim.CosineDecay(0.01, steps)), weft.random.default_rng(0)

    @weft.compile
    def run(params, pairs):
        """All steps, in one native loop."""
        def step(carry, _):
            words, near = pairs[rng.integers(0, len(pairs), BATCH)].T
            value, grads = weft.value_and_grad(loss)(carry[0], words, near, rng, chances)
            return adam.update(grads, carry[1], carry[0]), value

        (params, _), losses = weft.scan(step, (params, adam.init(params)), length=steps)
        return params, losses

    return run(init(np.random.default_rng(1), len(chances)), pairs)


def main(size="normal"):
    pairs, test, words = data(size)
    many, steps = len(words), SIZES[size][2]
    seen, wanted = (np.bincount(rows @ [many, 1], minlength=many ** 2).reshape(many, many)
                    for rows in (pairs, test))
    single = (seen.sum(0) + 1) / (seen.sum() + many)
    chances = single ** 0.75 / np.sum(single ** 0.75)  # as Mikolov et al. have it
    smooth = (seen + 300 * single) / (seen.sum(1, keepdims=True) + 300)
    found, losses = {}, {}
    for loss, more in ((negative_sampling, np.log(chances)), (sampled_softmax, 0)):
        name, start = loss.__name__, time.perf_counter()
        params, losses[name] = train(loss, pairs, chances, steps)
        seconds = time.perf_counter() - start
        # What negative sampling learns is told from the chances (Levy and Goldberg, NeurIPS 2014).
        logs = nn.log_softmax(params["words"] @ params["near"].T + params["bias"] + more)
        found[name] = -np.sum(wanted * logs) / np.sum(wanted)
        print(f"{name}: loss {losses[name][0]:.3f} -> {np.mean(losses[name][-100:]):.3f} in "
              f"{steps} steps, {seconds:.1f} s with compiling; held-out pairs {found[name]:.3f}")
    counted = [-np.sum(wanted * np.log(table)) / np.sum(wanted) for table in (single, smooth)]
    print(f"held-out nats by counted words {counted[0]:.3f}, by counted pairs {counted[1]:.3f}")
    near = params["words"] / np.linalg.norm(params["words"], axis=1, keepdims=True)
    for at in [words.index(word) for word in ("read", "int", "start") if word in words]:
        print(*(words[each] for each in np.argsort(-near @ near[at])[:5]))
    return {"losses": losses, "held_out": found, "counted": counted, "words": (words, near)}


if __name__ == "__main__":
    main()
