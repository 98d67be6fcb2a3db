#include "connection/passed_files.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "ucx/error.hpp"
#include "wire/frame.hpp"
#include "worker/counted_region.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

bool passed_files::begin() noexcept {
  worker_core& worker = connection_.worker();
  const bool expects =
      connection_.side() == endpoint_core::role::initiator || worker.control_server() == nullptr;
  const ucp_ep_h handle = connection_.handle();
  if (!expects || handle == nullptr || !worker.context().shares_memory()) return false;
  if (!worker.api().ep_carries_files(handle)) return false;
  worker.api().ep_take_files(handle);
  takes_ = true;
  return true;
}

bool passed_files::pass(std::uint64_t region, access rights) {
  worker_core& worker = connection_.worker();
  if (!connection_.session().theirs().takes_files || !connection_.is_ready()) return false;
  if (connection_.handle() == nullptr || !worker.api().ep_carries_files(connection_.handle())) {
    return false;
  }
  if (under_way_ == most_under_way) return false;
  std::error_code ec;
  counted_region* const found = worker.context().regions().begin_access(region, 0, ec);
  if (found == nullptr) return false;
  owned_descriptor file = found->open_file(rights);
  found->end_access();
  if (!file) return false;
  frame said;
  said.code = opcode::pass_file;
  said.session = connection_.session().number();
  said.region = region;
  said.offset = static_cast<std::uint64_t>(rights);
  ++under_way_;  // the sender counts it down, also where it fails
  worker.sender().send(connection_, said, std::move(file));
  return true;
}

void passed_files::arrived(const frame& said, owned_descriptor file) {
  if (!takes_ || said.offset == 0 || said.offset > 3) {
    return connection_.blame(errc::protocol_error, "the peer passes a file that nobody expects");
  }
  if (!file) return;  // a proxy, or a process without descriptors: the region goes by message
  const bool asks = connection_.side() == endpoint_core::role::initiator;
  if (waiting_.size() >= (asks ? most_of_initiator : most_of_acceptor)) {
    waiting_.erase(waiting_.begin());
  }
  waiting_.push_back({said.region, static_cast<access>(said.offset), std::move(file)});
}

owned_descriptor passed_files::take(std::uint64_t region, access wanted) noexcept {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const arrival& each) {
    return each.region == region && includes(each.rights, wanted);
  });
  if (found == waiting_.end()) return {};
  owned_descriptor taken = std::move(found->file);
  waiting_.erase(found);
  return taken;
}

}  // namespace ucx::detail
