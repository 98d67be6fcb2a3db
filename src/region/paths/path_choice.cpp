#include "region/paths/path_choice.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "base/renamed_variable.hpp"
#include "connection/endpoint_core.hpp"
#include "cuda/device_pointer.hpp"
#include "region/paths/cma_path.hpp"
#include "region/paths/cuda_ipc_path.hpp"
#include "region/paths/device_rma_path.hpp"
#include "region/paths/mapped_path.hpp"
#include "region/paths/rma_path.hpp"
#include "ucp/rdma.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

renamed_variable method_variable() noexcept { return {"UCXIO_TRANSFER_METHOD", "UCXIO_WAY"}; }

result<transfer_method> wanted_by_environment() {
  const renamed_variable variable = method_variable();
  const std::string_view forced = variable.value;
  if (forced.empty()) return transfer_method::automatic;
  for (const transfer_method each :
       {transfer_method::message, transfer_method::rma, transfer_method::cma,
        transfer_method::cuda_ipc, transfer_method::mapped}) {
    if (forced == to_string(each)) return each;
  }
  return failure{errc::bad_configuration,
                 std::string(variable.name) + " is \"" + std::string(forced) +
                     "\", and may be \"message\", \"rma\", \"cma\", \"cuda_ipc\" or \"mapped\""};
}

/// Over RDMA hardware a region in memory by message is less than was to be expected.
void log_no_rdma(peer_region& region, const std::string& why_not) {
  endpoint_core& connection = region.endpoint();
  if (!connection.worker().context().log().writes(log_level::warning)) return;
  if (region.descriptor().remote_key.empty() || !any_is_rdma(connection.ucx().transports())) return;
  connection.log(log_level::warning, "a region is read by message, not by RDMA: ", why_not);
}

/// The choice where a way was asked for by name: that way, or its error.
result<path_choice> only(result<std::unique_ptr<transfer_path>> opened) {
  if (!opened) return std::move(opened).why();
  return path_choice{.path = *std::move(opened), .asked_for = true};
}

/// UCX alone moves the bytes of a foreign region.
result<path_choice> choose_foreign(peer_region& region, transfer_method wanted, bool trusted) {
  constexpr const char* why_not = "the region is foreign, and UCX alone reaches it";
  if (wanted != transfer_method::automatic && wanted != transfer_method::rma) {
    return failure{errc::not_supported,
                   std::string(why_not) + ": ask for transfer_method::rma or automatic"};
  }
  auto by_rma = rma_path::open(region, trusted);
  if (!by_rma) return std::move(by_rma).why();
  path_choice chosen{.path = *std::move(by_rma)};
  chosen.not_mapped = chosen.not_read = why_not;
  return chosen;
}

/// By adapters: out of memory of the host's, or of a device.
result<std::unique_ptr<transfer_path>> open_rma(peer_region& region) {
  if (is_copied_by_driver(region.descriptor().kind)) return device_rma_path::open(region);
  return rma_path::open(region, false);
}

result<path_choice> choose_freely(peer_region& region, owned_descriptor file) {
  path_choice chosen;
  auto mapped = mapped_path::open(region, std::move(file));
  if (mapped) return path_choice{.path = *std::move(mapped)};
  chosen.not_mapped = std::move(mapped.why().text);
  auto in_place = is_copied_by_driver(region.descriptor().kind) ? cuda_ipc_path::open(region, false)
                                                                : cma_path::open(region);
  if (in_place) {
    chosen.path = *std::move(in_place);
    return chosen;
  }
  chosen.not_read = std::move(in_place.why().text);
  auto by_rma = open_rma(region);
  if (by_rma) {
    chosen.path = *std::move(by_rma);
    return chosen;
  }
  chosen.not_rma = std::move(by_rma.why().text);
  const std::string why_not = chosen.not_rma + ", and " + chosen.not_read;
  log_no_rdma(region, why_not);
  if (region.has_answers()) return chosen;
  const failure no_answers = region.why_no_answers();
  return failure{no_answers.code, why_not + ", and " + no_answers.text};
}

result<path_choice> choose_by_name(peer_region& region, transfer_method wanted, bool trusted,
                                   owned_descriptor file) {
  if (region.descriptor().foreign) return choose_foreign(region, wanted, trusted);
  switch (wanted) {
    case transfer_method::mapped:
      return only(mapped_path::open(region, std::move(file)));
    case transfer_method::cuda_ipc:
      return only(cuda_ipc_path::open(region, true));
    case transfer_method::cma:
      return only(cma_path::open(region));
    case transfer_method::rma:
      return only(open_rma(region));
    case transfer_method::message:
      if (region.has_answers()) return path_choice{.asked_for = true};
      return region.why_no_answers();
    case transfer_method::automatic:
      break;
  }
  return choose_freely(region, std::move(file));
}

}  // namespace

result<path_choice> choose_path(peer_region& region, transfer_method wanted, bool trusted,
                                owned_descriptor file) {
  if (wanted != transfer_method::automatic) {
    return choose_by_name(region, wanted, trusted, std::move(file));
  }
  const auto forced = wanted_by_environment();
  if (!forced) return forced.why();
  auto chosen = choose_by_name(region, *forced, trusted, std::move(file));
  if (!chosen && *forced != transfer_method::automatic) {
    chosen.why().text = std::string(method_variable().name) + "=" +
                        std::string(to_string(*forced)) + ": " + chosen.why().text;
  }
  return chosen;
}

}  // namespace ucx::detail
