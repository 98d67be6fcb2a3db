#include "server/session_digests.hpp"

#include <new>
#include <utility>

#include "region/exposed/exposed_region.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Returns whether it asks for something, and for no more hashes than an answer has.
bool makes_sense(const digest_body& body) noexcept {
  return body.length > 0 && body.chunk > 0 &&
         (body.length - 1) / body.chunk < digest_body::most_chunks;
}

}  // namespace

session_digests::session_digests(file_hasher& by, refusal refuse, sender send)
    : hasher_(by),
      refuse_(std::move(refuse)),
      send_(std::move(send)),
      self_(std::make_shared<session_digests*>(this)) {}

session_digests::~session_digests() {
  *self_ = nullptr;
  close();
}

void session_digests::close() noexcept {
  for (const auto& [number, each] : waiting_) file_hasher::withdraw(*each.asking);
  waiting_.clear();
}

/// It goes with its file; its place is taken until the thread has seen that.
void session_digests::withdraw(const question& unwanted) noexcept {
  file_hasher::withdraw(*unwanted.asking);
  leaving_.push_back(unwanted.asking);
}

void session_digests::digest(const control_header& asked, const digest_body& body,
                             const std::shared_ptr<exposed_region>& region) {
  const auto refuse = [&](std::error_code why) { refuse_(asked, control_type::digested, why); };
  if (!makes_sense(body)) return refuse(errc::invalid_argument);
  if (const std::error_code ec = region->check(body.offset, body.length, access::read)) {
    return refuse(ec);
  }
  // Memory is not hashed, wherever it is.
  if (region->kind() != memory_kind::host) return refuse(errc::not_supported);
  std::shared_ptr<file_source> file = region->source();
  // A file that is none any more was closed just now.
  if (!file) return refuse(region->bytes().empty() ? errc::revoked : errc::not_supported);
  std::erase_if(leaving_, [](const auto& each) { return each.expired(); });
  if (waiting_.size() + leaving_.size() >= most_unanswered) return refuse(errc::busy);
  const std::uint64_t number = ++last_;
  std::error_code why = errc::busy;
  try {
    leaving_.reserve(most_unanswered);  // so that it can be withdrawn without memory
    question& made = waiting_[number];
    made.asked = asked;
    made.region = body.region;
    made.asking = hasher_.start(
        std::move(file), body.offset, body.length, body.chunk,
        [self = self_, number](std::error_code ec, std::vector<content_digest> digests) {
          if (*self != nullptr) (*self)->answer(number, ec, std::move(digests));
        });
    if (made.asking) return;
  } catch (const std::bad_alloc&) {
    why = errc::no_memory;
  }
  waiting_.erase(number);
  refuse(why);
}

void session_digests::answer(std::uint64_t number, std::error_code ec,
                             std::vector<content_digest> digests) {
  const auto asked = waiting_.extract(number);
  if (asked.empty()) return;
  const control_header& header = asked.mapped().asked;
  if (ec) return refuse_(header, control_type::digested, ec);
  control_header said;
  said.type = control_type::digested;
  said.request = header.request;
  send_(encode_control(said, digested_body{std::move(digests)}));
}

void session_digests::withdrawn(std::uint64_t region) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (at->second.region != region) {
      ++at;
      continue;
    }
    withdraw(at->second);
    const control_header asked = at->second.asked;
    at = waiting_.erase(at);
    refuse_(asked, control_type::digested, errc::revoked);
  }
}

}  // namespace ucx::detail
