"""Many pieces of regions, and many files, read with few operations."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from . import _core
from .client import Client
from .errors import Error, ErrorCode
from .region import Region

__all__ = ["Range", "ranges_of", "read_pieces", "read_slices", "read_whole"]

# Slices up to this size are read together.
_short = 1 << 20
# One operation has one deadline, so that it has bounds: bytes, and pieces.
_most_bytes = 256 << 20
_most_pieces = 4096
# Files up to this size come with the answer to a question about many.
_short_file = 256 << 10
# How many files of one call are open at a time.
_most_open = 64

Piece = tuple[int, memoryview]
Range = tuple[int | None, int | None]


def ranges_of(starts: Any, ends: Any, count: int) -> list[Range]:
    """Return `count` slices of sequences, or of single numbers, for which None may stand."""

    def many(given: Any) -> list[int | None]:
        all_of_them = list(given) if isinstance(given, Iterable) else [given] * count
        return [None if each is None else operator.index(each) for each in all_of_them]

    all_starts, all_ends = many(starts), many(ends)
    if len(all_starts) != count or len(all_ends) != count:
        raise ValueError("there are not as many starts and ends as paths")
    return list(zip(all_starts, all_ends, strict=True))


def read_pieces(
    region: Region, pieces: Iterable[Piece], *, timeout: float | None = None, verify: bool = False
) -> None:
    """Fill buffers of bytes from offsets on, with a deadline for each 256 MiB."""
    batch: list[Piece] = []
    size = 0
    for offset, whole in pieces:
        for begin in range(0, len(whole), _most_bytes):
            part = whole[begin : begin + _most_bytes]
            if batch and (size + len(part) > _most_bytes or len(batch) == _most_pieces):
                region.read_batch(batch, timeout=timeout, verify=verify)
                batch, size = [], 0
            batch.append((offset + begin, part))
            size += len(part)
    if batch:
        region.read_batch(batch, timeout=timeout, verify=verify)


class _Wanted:
    """The slices of one region, and memory for the short ones."""

    def __init__(self, region: Region, ranges: Sequence[Range]) -> None:
        self.region = region
        self._spans = []
        size = region.size
        for start, end in ranges:
            first, last, _ = slice(start, end).indices(size)
            self._spans.append((first, max(last - first, 0)))
        short = [span for span in self._spans if span[1] <= _short]
        self.size = sum(length for _, length in short)
        memory = memoryview(bytearray(self.size))
        self.pieces: list[Piece] = []
        begin = 0
        for first, length in short:
            self.pieces.append((first, memory[begin : begin + length]))
            begin += length

    def finish(self, verify: bool) -> list[bytes]:
        """Return all slices. The short ones have been read."""
        filled = iter(self.pieces)
        return [
            bytes(next(filled)[1])
            if length <= _short
            else self.region.read(first, length, verify=verify)
            for first, length in self._spans
        ]


def _read_ranges(
    asked: Sequence[tuple[Region, Sequence[Range]]], *, verify: bool
) -> list[list[bytes] | OSError]:
    """Return the bytes of slices, which are those of Python, or an error for each region.

    Short slices of all regions are read in one operation, unless they are too many.
    """
    all_of_them = [_Wanted(region, ranges) for region, ranges in asked]
    size = sum(each.size for each in all_of_them)
    is_one = size <= _most_bytes and sum(len(each.pieces) for each in all_of_them) <= _most_pieces
    failures: Sequence[Exception | None] = [None] * len(all_of_them)
    if is_one:
        parts = [(each.region._core, each.pieces) for each in all_of_them]
        failures = _core.Region.read_across(parts, None, verify)
    found: list[list[bytes] | OSError] = []
    for each, failed in zip(all_of_them, failures, strict=True):
        try:
            if failed is not None:
                raise failed
            if not is_one:
                read_pieces(each.region, each.pieces, verify=verify)
            found.append(each.finish(verify))
        except OSError as why:
            found.append(why)
    return found


def read_slices(
    client: Client, paths: Sequence[str], slices: Sequence[Range], *, verify: bool
) -> list[bytes | Exception]:
    """Return the bytes of a slice of each file, or its error. A path may come many times."""
    places: dict[str, list[int]] = {}
    for place, path in enumerate(paths):
        places.setdefault(path, []).append(place)
    found: list[bytes | Exception] = [b""] * len(paths)
    names = list(places)
    for begin in range(0, len(names), _most_open):
        some = names[begin : begin + _most_open]
        opened = []
        for path, region in zip(some, client.open_many(some), strict=True):
            if isinstance(region, Region):
                opened.append((path, region))
                continue
            for place in places[path]:
                found[place] = region
        asked = [(region, [slices[each] for each in places[path]]) for path, region in opened]
        got = _read_ranges(asked, verify=verify)
        for (path, region), outcome in zip(opened, got, strict=True):
            region.close()
            for i, place in enumerate(places[path]):
                found[place] = outcome[i] if isinstance(outcome, list) else outcome
    return found


def read_whole(client: Client, paths: list[str], *, verify: bool) -> list[bytes | Exception]:
    """Return the bytes of each file, or its error."""
    if verify:  # only what was opened has checksums
        return read_slices(client, paths, [(None, None)] * len(paths), verify=True)
    found = client.read_many(paths, _short_file)
    longer = [
        place
        for place, each in enumerate(found)
        if isinstance(each, Error)
        and each.code in (ErrorCode.message_truncated, ErrorCode.not_supported)
    ]
    slices = [(None, None)] * len(longer)
    again = read_slices(client, [paths[each] for each in longer], slices, verify=False)
    for place, got in zip(longer, again, strict=True):
        found[place] = got
    return found
