#include "ucx/window.hpp"

#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/without_const.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Bytes of a descriptor at most: its key has 4 KiB, and the rest less than one.
constexpr std::size_t longest_descriptor = std::size_t{5} << 10U;

/// Returns whether the number is that of this process, or of a thread of it, which is as good.
bool is_this_process(std::uint64_t number) {
  if (number == 0) return false;
  const std::string thread = "/proc/self/task/" + std::to_string(number);
  return number == static_cast<std::uint64_t>(::getpid()) || ::access(thread.c_str(), F_OK) == 0;
}

/// Returns whether memory in place may be another's than the caller's. A caller that came by a
/// socket proves nothing about the process that its descriptor names. By UCX a caller may be here,
/// or may have the descriptor from here: this process would reach its own memory for it.
bool may_be_of_others(const remote_descriptor& there, const endpoint& caller) {
  const auto over = core_access::core(caller);
  if (!over) return false;
  const context_core& here = over->worker().context();
  if (!here.is_of_ucx() || here.incarnation() == there.incarnation) return true;
  return is_this_process(there.cma.process) || is_this_process(there.memfd.process);
}

}  // namespace

untyped_window::untyped_window(std::span<const std::byte> here) noexcept
    : untyped_window(without_const(here)) {}

remote_descriptor untyped_window::read(call_reader& from, access wanted) {
  const std::span<const std::byte> bytes = from.bytes();
  remote_descriptor made;
  if (!from.ok()) return made;
  if (bytes.size() > longest_descriptor) {
    from.fail("the window before is too long");
    return made;
  }
  std::error_code ec;
  made = remote_descriptor::decode(bytes, ec);
  if (ec) {
    from.fail("the window before is none: " + ec.message());
  } else if (made.foreign || !includes(made.granted, wanted)) {
    from.fail("the window before grants other rights");
  }
  return made;
}

/// By message, and by RMA, the caller alone is reached.
remote_region untyped_window::open(const endpoint& caller, const remote_region_options& options,
                                   std::error_code& ec) const {
  const bool is_of_caller = options.transfer_method == transfer_method::message ||
                            options.transfer_method == transfer_method::rma;
  if (is_of_caller || !may_be_of_others(there_, caller)) return {caller, there_, options, ec};
  if (options.transfer_method != transfer_method::automatic) {
    const failure why{errc::no_such_region,
                      "a window in place to memory that may not be the caller's"};
    return result<remote_region>(why).or_end(ec);
  }
  remote_region_options by_message = options;
  by_message.transfer_method = transfer_method::message;
  return {caller, there_, by_message, ec};
}

}  // namespace ucx::detail
