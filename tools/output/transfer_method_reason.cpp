#include "output/transfer_method_reason.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>

namespace ucx::tool {

std::string transfer_method_reason(const entry& described, const remote_region& region,
                                   const std::vector<std::string>& transports) {
  switch (region.transfer_method()) {
    case transfer_method::mapped:
      return "the server's memory is mapped here, and used in place";
    case transfer_method::rma:
      return "the transport reads the server's memory without the server, and writes it where UCX "
             "can";
    case transfer_method::cma:
      return "this process reads the server's memory where it lies; writes go by message";
    case transfer_method::cuda_ipc:
      return "the CUDA driver copies the server's memory without the server";
    case transfer_method::message:
    case transfer_method::automatic:
      break;
  }
  if (described.type == entry_type::file) return "a file: the server reads it when it is asked";
  for (const char* const variable : {"UCXIO_TRANSFER_METHOD", "UCXIO_WAY"}) {
    const char* const forced = std::getenv(variable);
    if (forced == nullptr || *forced == '\0') continue;
    if (forced != ucx::to_string(transfer_method::message)) break;
    return std::string(variable) + " says so";
  }
  if (described.kind != memory_kind::host) {
    return fmt::format("memory of a device, and {}; not by adapters: {}: the server answers",
                       region.why_not(transfer_method::cuda_ipc),
                       region.why_not(transfer_method::rma));
  }
  return fmt::format(
      "no RMA to it over {}: {}; not mapped: {}; not read where it lies: {}: the server answers",
      fmt::join(transports, ", "), region.why_not(transfer_method::rma),
      region.why_not(transfer_method::mapped), region.why_not(transfer_method::cma));
}

}  // namespace ucx::tool
