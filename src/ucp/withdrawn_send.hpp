// The fate of a send that its caller gives up.
#pragma once

namespace ucx::detail {

/// It goes on with the caller's bytes, with a copy of them, or not at all.
enum class withdrawn_send { kept, copied, dropped };

}  // namespace ucx::detail
