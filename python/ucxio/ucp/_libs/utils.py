"""What programs import from ``ucp._libs.utils``."""

from __future__ import annotations

from .. import get_address

__all__ = ["get_address"]
