"""Writes arrays as a checkpoint to a store, and reads them back.

python checkpoint.py URL        URL: that of a writable store's directory, ucxs://host:port/results
"""

import sys

import numpy

import ucxio


def save(url: str, arrays: dict[str, numpy.ndarray]) -> None:
    # It gets its name when all of it is there; an exception leaves nothing.
    with ucxio.open(url, "wb") as file:
        numpy.savez(file, **arrays)


def load(url: str) -> dict[str, numpy.ndarray]:
    with ucxio.open(url) as file, numpy.load(file) as found:
        return dict(found)


def main() -> None:
    url = sys.argv[1] + "/step-1000.npz"
    save(url, {"weights": numpy.ones((1000, 1000)), "step": numpy.array(1000)})
    found = load(url)
    print(f"{url}: step {found['step']}, {found['weights'].nbytes} bytes of weights")


if __name__ == "__main__":
    main()
