#include "region/paths/path_choice.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "cuda/device_pointer.hpp"
#include "region/paths/cma_path.hpp"
#include "region/paths/cuda_ipc_path.hpp"
#include "region/paths/mapped_path.hpp"
#include "region/paths/rma_path.hpp"
#include "ucp/rdma.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

result<way> wanted_by_environment() {
  const char* variable = std::getenv("UCXIO_WAY");
  const std::string_view forced = variable == nullptr ? "" : variable;
  if (forced.empty()) return way::automatic;
  for (const way each : {way::message, way::rma, way::cma, way::cuda_ipc, way::mapped}) {
    if (forced == to_string(each)) return each;
  }
  return failure{errc::bad_configuration,
                 "UCXIO_WAY is \"" + std::string(forced) +
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

result<path_choice> choose_freely(peer_region& region) {
  path_choice chosen;
  auto mapped = mapped_path::open(region);
  if (mapped) return path_choice{.path = *std::move(mapped)};
  chosen.not_mapped = std::move(mapped.why().text);
  auto in_place = is_copied_by_driver(region.descriptor().kind) ? cuda_ipc_path::open(region, false)
                                                                : cma_path::open(region);
  if (in_place) {
    chosen.path = *std::move(in_place);
    return chosen;
  }
  chosen.not_read = std::move(in_place.why().text);
  auto by_rma = rma_path::open(region);
  if (by_rma) {
    chosen.path = *std::move(by_rma);
    return chosen;
  }
  chosen.not_rma = std::move(by_rma.why().text);
  const std::string why_not = chosen.not_rma + ", and " + chosen.not_read;
  log_no_rdma(region, why_not);
  if (region.endpoint().worker().context().has(feature::am)) return chosen;
  return failure{errc::feature_disabled,
                 why_not + ", and the context was made without feature::am"};
}

result<path_choice> choose_by_name(peer_region& region, way wanted) {
  switch (wanted) {
    case way::mapped:
      return only(mapped_path::open(region));
    case way::cuda_ipc:
      return only(cuda_ipc_path::open(region, true));
    case way::cma:
      return only(cma_path::open(region));
    case way::rma:
      return only(rma_path::open(region));
    case way::message:
      if (region.endpoint().worker().context().has(feature::am)) {
        return path_choice{.asked_for = true};
      }
      return failure{errc::feature_disabled, "the context was made without feature::am"};
    case way::automatic:
      break;
  }
  return choose_freely(region);
}

}  // namespace

result<path_choice> choose_path(peer_region& region, way wanted) {
  if (wanted != way::automatic) return choose_by_name(region, wanted);
  const auto forced = wanted_by_environment();
  if (!forced) return forced.why();
  auto chosen = choose_by_name(region, *forced);
  if (!chosen && *forced != way::automatic) {
    chosen.why().text = "UCXIO_WAY=" + std::string(to_string(*forced)) + ": " + chosen.why().text;
  }
  return chosen;
}

}  // namespace ucx::detail
