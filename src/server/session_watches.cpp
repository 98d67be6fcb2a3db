#include "server/session_watches.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "file/file_watcher.hpp"
#include "region/exposed/exposed_region.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

std::vector<std::byte> answer_of(const control_header& asked, const entry& described) {
  control_header said;
  said.type = control_type::described;
  said.request = asked.request;
  return encode_control(said, described_body{described});
}

std::chrono::nanoseconds bounded(std::uint64_t wait) noexcept {
  constexpr std::chrono::nanoseconds most = session_watches::longest_wait;
  return std::chrono::nanoseconds(std::min(wait, static_cast<std::uint64_t>(most.count())));
}

}  // namespace

session_watches::session_watches(file_watcher& by, refusal refuse, sender send)
    : watcher_(by),
      refuse_(std::move(refuse)),
      send_(std::move(send)),
      self_(std::make_shared<session_watches*>(this)) {}

session_watches::~session_watches() {
  *self_ = nullptr;
  close();
}

void session_watches::close() noexcept {
  for (const auto& [number, each] : waiting_) watcher_.forget(each.look);
  waiting_.clear();
}

void session_watches::measure(const control_header& asked, const measure_body& body,
                              const std::shared_ptr<exposed_region>& region, entry described) {
  if (described.type != entry_type::file) return send_(answer_of(asked, described));
  std::shared_ptr<file_source> file = region->source();
  if (!file)
    return refuse_(asked, control_type::described, errc::revoked);  // it was closed just now
  if (waiting_.size() >= most_waiting) return refuse_(asked, control_type::described, errc::busy);
  const std::uint64_t number = ++last_;
  std::error_code why = errc::busy;
  try {
    question& asking = waiting_[number];
    asking = {asked, body.region, region, std::move(described)};
    asking.look =
        watcher_.look(std::move(file), body.known, bounded(body.wait),
                      [self = self_, number](std::error_code ec, const file_facts& facts) {
                        if (*self != nullptr) (*self)->answer(number, ec, facts);
                      });
    if (asking.look != 0) return;
  } catch (const std::bad_alloc&) {
    why = errc::no_memory;
  }
  waiting_.erase(number);
  refuse_(asked, control_type::described, why);
}

void session_watches::answer(std::uint64_t number, std::error_code ec, const file_facts& facts) {
  auto asked = waiting_.extract(number);
  if (asked.empty()) return;
  question& asking = asked.mapped();
  const std::shared_ptr<exposed_region> region = asking.measured.lock();
  if (!region) ec = errc::revoked;
  if (ec) return refuse_(asking.asked, control_type::described, ec);
  region->reach(facts.size);
  tell(asking.described, facts);
  send_(answer_of(asking.asked, asking.described));
}

void session_watches::withdrawn(std::uint64_t region) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (at->second.region != region) {
      ++at;
      continue;
    }
    watcher_.forget(at->second.look);
    const control_header asked = at->second.asked;
    at = waiting_.erase(at);
    refuse_(asked, control_type::described, errc::revoked);
  }
}

}  // namespace ucx::detail
