"""The context of UCX's."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..._buffer import Buffer
from ..._core import PlainContext
from ..exceptions import UCXCloseError, translated
from .ucx_object import UCXObject

if TYPE_CHECKING:
    from .ucx_memory_handle import UCXMemoryHandle

__all__ = ["AllocatorType", "Feature", "UCXContext"]


class AllocatorType(enum.Enum):
    """The memory that an allocator of `UCXWorker.register_am_allocator` makes."""

    HOST = 0
    CUDA = 1
    UNSUPPORTED = 2


class Feature(enum.Enum):
    """What a context is for. The values are UCX's."""

    TAG = 1
    RMA = 2
    AMO32 = 4
    AMO64 = 8
    WAKEUP = 16
    STREAM = 32
    AM = 64


# The library's names. It has no atomic operations of UCX's.
_names = {
    Feature.TAG: "tag",
    Feature.RMA: "rma",
    Feature.WAKEUP: "wakeup",
    Feature.STREAM: "stream",
    Feature.AM: "am",
}
_of_messages = {Feature.TAG, Feature.STREAM, Feature.AM}
# Transports of one host. A context that has these alone uses shared memory.
_of_one_host = {"cma", "knem", "mm", "posix", "self", "shm", "sm", "sysv", "xpmem"}
_usual = (Feature.TAG, Feature.WAKEUP, Feature.STREAM, Feature.AM, Feature.RMA)


class UCXContext(UCXObject):
    """A context. Memory and workers are made from it.

    Parameters
    ----------
    config_dict : mapping of str to str, optional
        UCX's configuration: keys without the prefix ``UCX_``.
    feature_flags : iterable of Feature
        What it is for. Memory needs ``Feature.RMA``, messages ``TAG``, ``AM`` or ``STREAM``; waits
        always have ``WAKEUP``.

    Raises
    ------
    UCXConfigError
        UCX does not know a key, or its value.
    """

    def __init__(
        self,
        config_dict: Mapping[str, str] | None = None,
        feature_flags: Iterable[Feature] = _usual,
    ) -> None:
        super().__init__()
        self._features = frozenset(feature_flags)
        names = {_names[each] for each in self._features if each in _names}
        if self._features & _of_messages:
            names.add("am")  # all messages of the library are
        config = dict(config_dict or {})
        transports = config.get("TLS", os.environ.get("UCX_TLS", "")).split(",")
        if _of_one_host.issuperset(transports):
            config.pop("TLS", None)
        else:
            transports = []  # the configuration has them
        with translated("UCXContext"):
            core = PlainContext(config, transports, sorted(names | {"wakeup"}))
        self._core: PlainContext | None = core

    def _opened(self) -> PlainContext:
        if self._core is None:
            raise UCXCloseError("the context was closed")
        return self._core

    def _drop(self) -> None:
        self._core = None

    def get_config(self) -> dict[str, str]:
        """Return UCX's configuration in force."""
        with translated("get_config"):
            return dict(self._opened().configuration())

    @property
    def cuda_support(self) -> bool:
        """Whether UCX was set up to move memory of CUDA devices."""
        with translated("cuda_support"):
            return self._opened().supports_cuda

    @property
    def handle(self) -> int:
        """UCX's context: ``ucp_context_h``."""
        return self._opened().handle

    def info(self) -> str:
        """Return UCX's description of the context, of many lines."""
        with translated("info"):
            return self._opened().description()

    def map(self, mem: Buffer) -> UCXMemoryHandle:
        """Expose a buffer: see `UCXMemoryHandle.map`."""
        from .ucx_memory_handle import UCXMemoryHandle

        return UCXMemoryHandle.map(self, mem)

    def alloc(self, size: int) -> UCXMemoryHandle:
        """Expose new memory: see `UCXMemoryHandle.alloc`."""
        from .ucx_memory_handle import UCXMemoryHandle

        return UCXMemoryHandle.alloc(self, size)

    def __repr__(self) -> str:
        return f"<ucxio.ucp UCXContext, {'open' if self.initialized else 'closed'}>"
