// How far a connection has come.
#pragma once

namespace ucx::detail {

enum class endpoint_state {
  connecting,  ///< Hello was sent, or is awaited.
  ready,       ///< The peer answered; operations go out.
  failed,      ///< The connection is lost; `error()` says why.
  closed,      ///< close() was called here, and is over.
};

}  // namespace ucx::detail
