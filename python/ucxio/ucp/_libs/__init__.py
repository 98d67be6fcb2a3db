"""What programs import from ``ucp._libs``: `ucx_api`."""
