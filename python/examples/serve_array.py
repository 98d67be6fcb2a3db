"""Serves an array, and reads it from another process.

python serve_array.py
"""

import subprocess
import sys

import numpy

import ucxio

reader = """
import sys, numpy, ucxio
with ucxio.open_region(sys.argv[1]) as region:
    found = numpy.empty(region.size // 8)
    region.read_into(found)
print(f"read {found.nbytes} bytes by {region.url}, the sum is {found.sum()}")
"""


def main() -> None:
    table = numpy.arange(1_000_000.0)
    with ucxio.Server() as server, server.publish("table", table) as shown:
        print(f"serves {shown.url}, the sum is {table.sum()}", flush=True)
        subprocess.run([sys.executable, "-c", reader, shown.url], check=True)


if __name__ == "__main__":
    main()
