"""Deep Q-learning on a small grid: walkers learn the way to the goal around walls.

Acting, learning and the slow copy of the network are one native loop with its random numbers (Mnih
et al., Nature 2015; the batch of walkers is its replay memory). Beside it: the shortest ways.
"""

import time

import numpy as np

import weft
from weft import nn, optim

GRID = ["......", ".##.#.", "...#..", ".#...#", ".#.#..", "...#.*"]
SIZES = {"small": 60, "normal": 4000}  # steps
WALKERS, WIDTH, DISCOUNT, EVERY = 64, 64, 0.95, 50
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def world():
    """The cell after each move from each cell, the cell of the goal, and cells to stand on."""
    size = len(GRID)
    after = np.zeros((size * size, 4), np.int64)
    for cell in range(size * size):
        for move, (down, right) in enumerate(MOVES):
            i, j = cell // size + down, cell % size + right
            free = 0 <= i < size and 0 <= j < size and GRID[i][j] != "#"
            after[cell, move] = i * size + j if free else cell
    cells = "".join(GRID)
    return after, cells.index("*"), np.array([at for at, kind in enumerate(cells) if kind == "."])


def init(rng):
    return {"in": nn.init.he_normal(rng, (len(GRID) ** 2, WIDTH)), "bias": nn.init.zeros(WIDTH),
            "out": nn.init.glorot_normal(rng, (WIDTH, 4))}


def values(params, cells):
    """What each move is worth: a row of the first weights is what a one-hot cell would choose."""
    return nn.relu(params["in"][cells] + params["bias"]) @ params["out"]


def loss(params, slow, cells, moves, reward, following, end):
    best = np.max(values(slow, following), axis=-1)
    aim = reward + np.where(end, 0, DISCOUNT * best)
    taken = np.take_along_axis(values(params, cells), moves[:, None], axis=-1)[:, 0]
    return np.mean((taken - weft.stop_gradient(aim)) ** 2)


def main(size="normal"):
    after, goal, free = world()
    steps = SIZES[size]
    adam = optim.Adam(2e-3)
    rng = weft.random.default_rng(0)

    @weft.compile
    def train(params):
        def step(carry, at):
            params, slow, state, cells = carry
            curious = rng.random(WALKERS) < np.maximum(0.1, 1 - 2 * at / steps)
            moves = np.where(curious, rng.integers(0, 4, WALKERS),
                             np.argmax(values(params, cells), axis=-1))
            following = np.array(after)[cells, moves]
            end = following == goal
            value, grads = weft.value_and_grad(loss)(
                params, slow, cells, moves, end.astype(np.float32), following, end)
            params, state = adam.update(grads, state, params)
            slow = weft.tree.map(lambda new, old: np.where(at % EVERY == 0, new, old), params, slow)
            cells = np.where(end | (rng.random(WALKERS) < 0.02), rng.choice(free, WALKERS),
                             following)
            return (params, slow, state, cells), value

        start = params, params, adam.init(params), rng.choice(free, WALKERS)
        (params, *_), losses = weft.scan(step, start, np.arange(steps))
        return params, losses

    start = time.perf_counter()
    params, losses = train(init(np.random.default_rng(1)))
    seconds = time.perf_counter() - start
    worth = values(params, np.arange(len(after)))
    learnt = lengths(after[np.arange(len(after)), np.argmax(worth, axis=-1)][:, None], goal)[free]
    right = float(np.mean(learnt == lengths(after, goal)[free]))
    print(f"loss {losses[0]:.4f} -> {np.mean(losses[-100:]):.5f} in {steps} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"shortest ways from {right:.0%} of {len(free)} cells, to the goal from "
          f"{np.mean(np.isfinite(learnt)):.0%}")
    grid = np.where(np.isin(np.arange(len(after)), free), worth.max(1), np.nan)
    return {"losses": losses, "shortest": right, "grid": grid.reshape(len(GRID), -1)}


def lengths(after, goal):
    """How many moves each cell is from the goal."""
    found = np.where(np.arange(len(after)) == goal, 0, np.inf)
    for _ in found:
        found = np.minimum(found, 1 + found[after].min(axis=1))
    return found


if __name__ == "__main__":
    main()
