"""Training that never waits for its input: two queues, filled by threads, as in TensorFlow's work.

    names -> [files] -> read and normalise -> [examples, shuffled] -> train, 32 at a time

A step takes a name, reads the file and puts its rows; two threads run it. The loop ends when the
names are used up and the last rows have come out.

    python examples/queues/two_stages.py
"""

import tempfile
from pathlib import Path

import numpy as np

import weft


def written(folder: Path, count: int) -> list[Path]:
    """Files of 100 rows of four numbers each."""
    rng = np.random.default_rng(0)
    paths = [folder / f"{at}.npy" for at in range(count)]
    for path in paths:
        np.save(path, rng.normal(5, 2, (100, 4)).astype(np.float32))
    return paths


def train(paths: list[Path], epochs: int) -> tuple[float, int]:
    """The last loss of a linear model that learns the sum of a row, and its number of steps."""
    files = weft.FIFOQueue(8, "i64[]", name="files")
    examples = weft.RandomShuffleQueue(1000, "f32[4]", 200, seed=0, name="examples")
    w = weft.Variable(np.zeros(4, np.float32), name="w")
    steps = weft.Variable(0, name="steps")
    g = weft.Graph()
    with g.as_default():
        rows = weft.host_call(lambda at: np.load(paths[int(at)]), "f32[100,4]", files.dequeue())
        fill = examples.enqueue_many((rows - 5) / 2)
        x = examples.dequeue_many(32)
        loss = np.mean((x @ w - x.sum(axis=1)) ** 2)
        step = weft.group(weft.optim.SGD(0.1).minimize(loss, [w]), steps.assign_add(1))
    session, last = weft.Session(g), np.inf
    order = (at for _ in range(epochs) for at in range(len(paths)))
    with (weft.QueueRunner(files, lambda: files.enqueue(next(order))),
          weft.QueueRunner(examples, session.make_callable(fill), threads=2)):
        while True:
            try:
                last, _ = session.run([loss, step])
            except EOFError:
                return float(last), int(steps)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        final, count = train(written(Path(folder), 10), epochs=5)
        print(f"loss {final:.2e} after {count} steps")
