#include "rpc/call_windows.hpp"

#include <algorithm>
#include <optional>

#include "connection/endpoint_core.hpp"
#include "region/exposed/exposed_memory.hpp"
#include "region/exposed/exposed_region.hpp"
#include "worker/context_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

call_windows::~call_windows() { close(); }

result<void> call_windows::open(const std::shared_ptr<context_core>& owner,
                                const call_writer& arguments) {
  const bool is_whole = arguments.wrong_ == nullptr && arguments.depth_ == 0;
  if (owner && is_whole && !arguments.windows_.empty()) return expose(owner, arguments);
  try {
    arguments_ = arguments.written();
  } catch (const error& wrong) {
    return failure{wrong.code(), wrong.what()};
  }
  return {};
}

/// Puts the descriptors where the windows were written.
result<void> call_windows::expose(const std::shared_ptr<context_core>& owner,
                                  const call_writer& from) {
  const std::span<const std::byte> written(from.bytes_);
  call_writer filled;
  std::size_t at = 0;
  regions_.reserve(from.windows_.size());
  for (const call_writer::opened& each : from.windows_) {
    if (each.memory.data() == nullptr && !each.memory.empty()) {
      return failure{errc::invalid_argument, "a window is at address zero"};
    }
    auto made = expose_memory(owner, each.memory, each.granted, std::nullopt);
    if (!made) return std::move(made).why();
    // Giving back memory of a device waits for its driver, which the thread that serves peers must
    // not do.
    if ((*made)->bytes().data() == nullptr && !each.memory.empty()) {
      return failure{errc::not_supported, "a window is memory of a device"};
    }
    regions_.push_back(*std::move(made));
    regions_.back()->require_grants();
    filled.append(written.subspan(at, each.at - at));
    filled.bytes(regions_.back()->descriptor().encode());
    at = each.at;
  }
  filled.append(written.subspan(at));
  try {
    static_cast<void>(filled.written());
  } catch (const error& wrong) {
    return failure{wrong.code(), wrong.what()};
  }
  spliced_ = std::move(filled.bytes_);
  arguments_ = spliced_;
  return {};
}

void call_windows::grant(endpoint_core& to) try {
  for (const auto& each : regions_) to.grants().add(each->id(), each->granted());
} catch (...) {
  for (const auto& each : regions_) to.grants().remove(each->id());
  throw;
}

void call_windows::revoke(endpoint_core& from) noexcept {
  for (const auto& each : regions_) {
    from.grants().remove(each->id());
    from.worker().context().regions().remove(*each, each->generation());
    from.worker().begin_drain(*each);  // answers that wait for room end here
  }
  is_revoked_ = true;
}

bool call_windows::idle() const noexcept {
  const auto is_idle = [](const auto& each) { return each->idle(); };
  return regions_.empty() ||
         (is_revoked_ && std::all_of(regions_.begin(), regions_.end(), is_idle));
}

void call_windows::close() noexcept {
  for (const auto& each : regions_) each->close();
  regions_.clear();
  is_revoked_ = false;
  arguments_ = {};
  std::vector<std::byte>().swap(spliced_);  // the next call may have none
}

}  // namespace ucx::detail
