"""The types of objects with memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

__all__ = ["Buffer", "CudaArray", "DLPackArray"]


class CudaArray(Protocol):
    """An array in a CUDA device: of CuPy, Numba, RMM, torch."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...


class DLPackArray(Protocol):
    """An array that exports its memory by DLPack."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


if TYPE_CHECKING:
    from typing_extensions import Buffer as _Buffer

    Buffer: TypeAlias = _Buffer | CudaArray | DLPackArray
elif sys.version_info >= (3, 12):
    from collections.abc import Buffer
else:
    Buffer = Any
