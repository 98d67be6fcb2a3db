#include "server/published_name.hpp"

#include <optional>
#include <utility>

#include "file/file_facts.hpp"
#include "file/file_source.hpp"
#include "region/exposed/exposed_region.hpp"
#include "server/server_core.hpp"

namespace ucx::detail {

published_name::published_name(const std::shared_ptr<server_core>& server, entry described,
                               std::shared_ptr<exposed_region> region, std::span<std::byte> bytes)
    : server_(server),
      described_(std::move(described)),
      region_(std::move(region)),
      region_id_(region_->id()),
      descriptor_(region_->descriptor()),
      bytes_(bytes) {
  region_->require_grants();
}

published_name::~published_name() { close(); }

std::span<std::byte> published_name::bytes() const noexcept {
  return is_open() ? bytes_ : std::span<std::byte>();
}

std::shared_ptr<exposed_region> published_name::exposed() const {
  const std::lock_guard guard(holding_);
  return region_;
}

published_name::state published_name::look() const {
  state made{described_, descriptor_};
  const std::shared_ptr<exposed_region> region = exposed();
  const std::shared_ptr<file_source> file = region ? region->source() : nullptr;
  if (!file) return made;
  made.identity = file_identity(file->descriptor());
  const std::optional<file_facts> facts = known_facts(file->descriptor());
  if (!facts) return made;
  tell(made.described, file->settled(*facts));
  region->reach(facts->size);
  made.descriptor = region->descriptor();
  made.descriptor.size = facts->size;
  return made;
}

entry published_name::described_now() const {
  entry made = described_;
  const std::shared_ptr<exposed_region> region = exposed();
  const std::shared_ptr<file_source> file = region ? region->source() : nullptr;
  const std::optional<file_facts> facts = file ? known_facts(file->descriptor()) : std::nullopt;
  if (facts) tell(made, file->settled(*facts));
  return made;
}

std::string published_name::url() const {
  const std::shared_ptr<server_core> server = server_.lock();
  return server ? server->url(described_.name) : std::string();
}

void published_name::close(clock::time_point until) noexcept {
  // Out of the catalogue, then out of the peers' reach; who has it open is told meanwhile.
  if (!closed_.exchange(true, std::memory_order_acq_rel)) {
    if (const std::shared_ptr<server_core> server = server_.lock()) server->withdraw(*this);
  }
  std::shared_ptr<exposed_region> region;
  {
    const std::lock_guard guard(holding_);
    region = region_;
  }
  // Server and publication may both be closing it: either returns when no peer reaches it any more.
  if (region) region->close(until);
  // A publication may be kept for long after its server: it holds nothing of it any more.
  const std::lock_guard guard(holding_);
  region_.reset();
}

}  // namespace ucx::detail
