from __future__ import annotations

import gc
import pickle
import struct
import sys
import threading

import numpy as np
import pytest

import ucxio
from ucxio import _core
from ucxio.region import open_region


def test_array_is_read_and_written_in_another_process_place(server: ucxio.Server) -> None:
    source = np.arange(100_000, dtype="f8").reshape(100, 1000)
    with server.publish("array", source, writable=True) as shown:
        with ucxio.open_region(shown.url, "read_write") as region:
            assert (region.size, len(region), region.access) == (800_000, 800_000, "read_write")
            found = np.empty_like(source)
            assert region.read_into(found) == source.nbytes
            assert (found == source).all()
            found *= 2
            region.write_from(found[50:], 50 * 8000)
            region.flush()
            assert (source[50:] == found[50:]).all()
            assert (source[:50] * 2 == found[:50]).all()
            assert region.read(8, 16) == source.tobytes()[8:24]
            assert region.read(800_000 - 8) == source.tobytes()[-8:]


def test_verified_reads_are_equal(server: ucxio.Server) -> None:
    data = bytes(range(256)) * 5000
    with server.publish("data", data) as shown, ucxio.open_region(shown.url) as region:
        assert region.read(verify=True) == data
        into = bytearray(len(data))
        region.read_into(into, verify=True)
        assert into == data


def test_access_beyond_the_end_is_out_of_range(server: ucxio.Server) -> None:
    with server.publish("data", bytearray(100), writable=True) as shown:
        with ucxio.open_region(shown.url, "read_write") as region:
            for call in (
                lambda: region.read(90, 11),
                lambda: region.read(101, 0),
                lambda: region.read_into(bytearray(11), 90),
                lambda: region.read_batch([(0, bytearray(1)), (90, bytearray(11))]),
            ):
                with pytest.raises(ucxio.Error) as failed:
                    call()
                assert failed.value.code == ucxio.ErrorCode.out_of_range
            for call in (
                lambda: region.write_from(bytes(11), 90),
                lambda: region.write_batch([(0, b"x"), (90, bytes(11))]),
            ):
                with pytest.raises(ucxio.Error) as failed:
                    call()
                    region.flush()
                assert failed.value.code in ("no_space", "out_of_range")
            assert region.read() == bytes(100)


def test_write_to_a_region_for_reading_is_denied(server: ucxio.Server) -> None:
    with server.publish("data", b"data") as shown:
        with ucxio.open_region(shown.url) as region, pytest.raises(PermissionError):
            region.write_from(b"x")
        with pytest.raises(PermissionError):
            ucxio.open_region(shown.url, "write")


@pytest.mark.parametrize("wrong", [-1, 1 << 64, "1", None, 1.5])
def test_offset_that_is_none_is_a_type_error(local_server: ucxio.Server, wrong: object) -> None:
    with local_server.publish("data", b"data") as shown:
        with ucxio.open_region(shown.url) as region, pytest.raises((TypeError, OverflowError)):
            region.read_into(bytearray(1), wrong)  # type: ignore[arg-type]


def test_batches_fill_and_write_many_pieces(server: ucxio.Server) -> None:
    data = bytearray(range(256)) * 16
    before = bytes(data)
    with server.publish("data", data, writable=True) as shown:
        with ucxio.open_region(shown.url, "read_write") as region:
            pieces = [(7 * i, np.empty(5, "u1")) for i in range(200)]
            region.read_batch(pieces)
            for offset, into in pieces:
                assert into.tobytes() == before[offset : offset + 5]
            region.write_batch((offset, bytes([offset % 251] * 3)) for offset in range(0, 4000, 40))
            region.flush()
            for offset in range(0, 4000, 40):
                assert (
                    data[offset : offset + 4]
                    == bytes([offset % 251] * 3) + before[offset + 3 :][:1]
                )
            region.read_batch([])
            with pytest.raises((TypeError, ValueError)):
                region.read_batch([(1, bytearray(1), 2)])  # type: ignore[list-item]
            with pytest.raises(TypeError):
                region.read_batch(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [4, 8])
def test_atomics_return_the_number_before(server: ucxio.Server, width: int) -> None:
    kind, most = {4: ("<I", 2**32), 8: ("<Q", 2**64)}[width]
    with server.allocate("numbers", 64) as shown:
        memory = shown.memoryview()
        with ucxio.open_region(shown.url, "read_write") as region:

            def number() -> int:
                return int(struct.unpack_from(kind, memory, 8)[0])

            how = {"width": width}
            assert region.fetch_add(8, 5, **how) == 0  # type: ignore[arg-type]
            assert region.fetch_add(8, -7, **how) == 5  # type: ignore[arg-type]
            assert number() == most - 2
            assert region.exchange(8, 0b1100, **how) == most - 2  # type: ignore[arg-type]
            assert region.fetch_and(8, 0b0110, **how) == 0b1100  # type: ignore[arg-type]
            assert region.fetch_or(8, 0b0011, **how) == 0b0100  # type: ignore[arg-type]
            assert region.fetch_xor(8, 0b0101, **how) == 0b0111  # type: ignore[arg-type]
            assert region.load(8, **how) == 0b0010  # type: ignore[arg-type]
            assert region.compare_exchange(8, 1, 9, **how) == 2  # type: ignore[arg-type]
            assert number() == 2
            assert region.compare_exchange(8, 2, 9, **how) == 2  # type: ignore[arg-type]
            assert number() == 9
            region.store(8, most - 1, **how)  # type: ignore[arg-type]
            assert number() == most - 1
            with pytest.raises(OverflowError):
                region.store(8, most, **how)  # type: ignore[arg-type]
            with pytest.raises(ucxio.Error):
                region.load(9, **how)  # type: ignore[arg-type]
            with pytest.raises(ucxio.Error):
                region.load(8, width=3)  # type: ignore[arg-type]
        memory.release()


def test_many_threads_share_one_region(server: ucxio.Server) -> None:
    data = bytes(range(256)) * 64
    failures: list[BaseException] = []
    with server.publish("data", data) as shown, server.allocate("sum", 8) as counted:
        with (
            ucxio.open_region(shown.url) as region,
            ucxio.open_region(counted.url, "read_write") as numbers,
        ):

            def use() -> None:
                try:
                    into = bytearray(1000)
                    for offset in range(0, 15_000, 500):
                        region.read_into(into, offset)
                        assert into == data[offset : offset + 1000]
                        numbers.fetch_add(0, 1)
                except BaseException as failed:
                    failures.append(failed)

            threads = [threading.Thread(target=use) for _ in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert failures == []
            assert numbers.load(0) == 8 * 30


def test_mapped_memory_is_viewed_in_place(server: ucxio.Server) -> None:
    with server.allocate("shared", (4, 8), "u1") as shown:
        region = ucxio.open_region(shown.url, "read_write")
        if region.transfer_method != "mapped":
            assert region.why_not("mapped")
            with pytest.raises(OSError, match="map") as failed:
                region.memoryview()
            assert failed.value.code == ucxio.ErrorCode.not_supported  # type: ignore[attr-defined]
            region.close()
            return
        assert region.why_not("mapped") == ""
        array = shown.array()
        array[:] = 7
        view = region.memoryview()
        assert view.readonly
        assert bytes(view) == bytes([7] * 32)
        seen = region.memoryview(8, 8, writable=True)
        seen[:] = b"\1" * 8
        assert (array[1] == 1).all()
        with pytest.raises(BufferError, match="memoryview"):
            region.close()
        with pytest.raises(BufferError, match="memoryview"):
            shown.close()
        del seen
        view.release()
        region.close()
        del array
        gc.collect()


def test_view_outlives_its_region(local_server: ucxio.Server) -> None:
    shown = local_server.allocate("shared", 16)
    view = ucxio.open_region(shown.url).memoryview()
    gc.collect()
    assert bytes(view) == bytes(16)


def test_region_is_pickled_by_its_url(server: ucxio.Server) -> None:
    with server.publish("a name/with %", b"content") as shown:
        with ucxio.open_region(shown.url) as region:
            again = pickle.loads(pickle.dumps(region))
        assert region.closed
        assert again.read() == b"content"
        assert (again.url, again.name) == (shown.url, "a name/with %")
        again.close()


def test_closed_region_is_a_value_error(local_server: ucxio.Server) -> None:
    with local_server.publish("data", b"data") as shown:
        region = open_region(shown.url)
        assert repr(region) == f"<ucxio.Region {shown.url}, 4 bytes, read>"
        region.close()
        region.close()
        assert repr(region) == f"<ucxio.Region {shown.url}, closed>"
        for call in (
            region.read,
            region.flush,
            region.memoryview,
            lambda: region.read_into(bytearray(1)),
            lambda: region.write_from(b"x"),
            lambda: region.load(0),
            lambda: region.notify(1),
            lambda: region.size,
            lambda: region.why_not("rma"),
        ):
            with pytest.raises(ValueError, match="closed") as failed:
                call()
            assert failed.value.code == ucxio.ErrorCode.closed  # type: ignore[attr-defined]


def test_withdrawn_name_is_revoked(server: ucxio.Server) -> None:
    shown = server.publish("data", bytes(100_000))
    region = ucxio.open_region(shown.url)
    region.read()
    shown.close()
    assert shown.closed
    with pytest.raises(ucxio.Error) as failed:
        region.read()
    assert failed.value.code in ("revoked", "no_such_region")
    region.close()


def test_wrong_words_are_value_errors(local_server: ucxio.Server) -> None:
    with local_server.publish("data", b"data") as shown:
        with pytest.raises(ValueError, match='"rw" is no access'):
            ucxio.open_region(shown.url, "rw")  # type: ignore[arg-type]
        with ucxio.open_region(shown.url) as region:
            with pytest.raises(ValueError, match="no transfer method"):
                region.why_not("magic")
            for wrong in (0, -1, float("nan")):
                with pytest.raises(ValueError, match="timeout"):
                    region.read(timeout=wrong)


def test_operations_leak_no_references(server: ucxio.Server) -> None:
    with server.publish("data", bytearray(4096), writable=True) as shown:
        with ucxio.open_region(shown.url, "read_write") as region:
            buffer = np.zeros(512, "u8")
            for _ in range(100):
                region.read_into(buffer)
            before = sys.getrefcount(buffer), len(gc.get_objects())
            for _ in range(300):  # each call keeps less than a third of an object
                region.read_into(buffer)
                region.write_from(buffer)
                region.read(0, 64)
                region.read_batch([(0, buffer)])
            after = sys.getrefcount(buffer), len(gc.get_objects())
            assert after[0] == before[0]
            assert abs(after[1] - before[1]) < 100


def test_reads_of_many_regions_have_an_outcome_each(server: ucxio.Server) -> None:
    data = bytes(range(100))
    with server.publish("a", data), server.publish("b", bytearray(data)) as gone:
        with ucxio.Client(server.url) as client, client.open("a") as a, client.open("b") as b:
            into = [bytearray(5) for _ in range(4)]
            parts = [
                (a._core, [(10, into[0]), (20, into[1])]),
                (b._core, [(30, into[2])]),
                (a._core, [(98, into[3])]),
                (b._core, []),
            ]
            got = _core.Region.read_across(parts, 20, False)
            assert isinstance(got[2], ucxio.Error)
            assert got[2].code == ucxio.ErrorCode.out_of_range
            assert got[:2] == [None, None]
            assert got[3] is None
            assert into == [data[10:15], data[20:25], data[30:35], bytes(5)]
            assert _core.Region.read_across([], None, False) == []
            into[0].append(1)  # no view is left
            for wrong in ([(a._core, [(0, b"read-only")])], [(a._core, [(0, 7)])]):
                with pytest.raises(TypeError):
                    _core.Region.read_across(wrong, None, False)  # type: ignore[list-item]
            with pytest.raises(ValueError, match="pair"):
                _core.Region.read_across([(a._core,)], None, False)  # type: ignore[list-item]
            gone.close()
            got = _core.Region.read_across(
                [(b._core, [(0, into[1])]), (a._core, [(0, into[2])])], None, False
            )
            if got[0] is not None:  # memory that is mapped stays
                assert isinstance(got[0], ucxio.Error)
            assert got[1] is None
            assert into[2] == data[:5]
            b.close()
            with pytest.raises(ValueError, match="closed"):
                _core.Region.read_across([(a._core, []), (b._core, [])], None, False)
