"""Saves the arrays of a model to another node, and goes on where an earlier run was killed.

python resume_checkpoint.py save URL     URL: a directory of a writable store
python resume_checkpoint.py load URL
"""

from __future__ import annotations

import sys

import numpy

import ucxio

Model = dict[str, numpy.ndarray]


def example_model() -> Model:
    return {f"layer{i}": numpy.full((500, 500), float(i)) for i in range(20)}


def save(url: str, model: Model) -> None:
    for name, array in model.items():
        try:
            # A file gets its name when all of it is there, so one with a name is whole.
            with ucxio.open(f"{url}/{name}.npy", "xb") as file:
                numpy.save(file, array)
            print(name, "saved", flush=True)
        except FileExistsError:
            print(name, "is there", flush=True)
    with ucxio.open(f"{url}/complete", "w") as file:
        file.write("\n".join(model))


def load(url: str) -> Model:
    with ucxio.open(f"{url}/complete", "r") as file:  # FileNotFoundError: not all is there
        names = file.read().split("\n")
    model = {}
    for name in names:
        with ucxio.open(f"{url}/{name}.npy") as file:
            model[name] = numpy.load(file)
    return model


def main() -> None:
    action, url = sys.argv[1:]
    if action == "save":
        save(url, example_model())
    else:
        for name, array in load(url).items():
            print(name, array.shape, array.mean())


if __name__ == "__main__":
    main()
