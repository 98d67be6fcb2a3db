#include "detail/region_service.hpp"

#include <cstring>
#include <utility>

#include "detail/endpoint_core.hpp"
#include "detail/piece_sender.hpp"
#include "detail/region_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

/// One read of a peer's, being answered: UCX reads the region until the last piece is sent.
class read_answer final : public piece_sender, public list_hook<answer_tag> {
 public:
  void begin(region_service& service, endpoint_core& to, region_core& region, const frame& asked) {
    service_ = &service;
    region_ = &region;
    to.answer_started();
    frame first;
    first.code = opcode::data;
    first.session = asked.session;
    first.request = asked.request;
    prepare_pieces(to, first,
                   region.bytes().subspan(static_cast<std::size_t>(asked.offset),
                                          static_cast<std::size_t>(asked.length)));
    send_pieces();
  }

  const region_core& region() const noexcept { return *region_; }
  endpoint_core& peer() const noexcept { return pieces_endpoint(); }

 private:
  friend class region_service;
  void pieces_moved() override {
    if (peer().status()) stop_pieces();
    if (sending() || !(all_posted() || stopped())) return;
    region_->end_access();
    peer().answer_ended();
    service_->ended(*this);
  }

  region_service* service_ = nullptr;
  region_core* region_ = nullptr;
};

region_service::region_service(worker_core& worker) noexcept
    : worker_(worker), idle_(std::make_unique<pool<read_answer>>()) {}

region_service::~region_service() = default;

/// Looks the region up for one access, which the caller ends.
region_core* region_service::admit(const frame& asked, bool writes, std::error_code& ec) noexcept {
  if (asked.incarnation != worker_.context().incarnation()) {
    ec = errc::stale_region;
    return nullptr;
  }
  region_core* region = worker_.context().begin_access(asked.region, ec);
  if (region == nullptr) return nullptr;
  if (asked.generation != region->generation()) {
    ec = errc::stale_region;
  } else {
    ec = region->check(asked.offset, asked.length, writes ? access::write : access::read);
  }
  if (!ec) return region;
  region->end_access();
  return nullptr;
}

void region_service::read(endpoint_core& from, const frame& asked) {
  std::error_code ec;
  if (asked.length == 0) return refuse(from, asked, errc::invalid_argument);
  if (from.answers() >= most_reads) return refuse(from, asked, errc::busy);
  region_core* region = admit(asked, false, ec);
  if (region == nullptr) return refuse(from, asked, ec);
  read_answer* answer = idle_->take();
  answers_.push_back(*answer);
  answer->begin(*this, from, *region, asked);
}

void region_service::write(endpoint_core& from, const frame& asked,
                           std::span<const std::byte> payload) {
  std::error_code ec;
  if (asked.length != payload.size() || payload.empty()) ec = errc::protocol_error;
  region_core* region = ec ? nullptr : admit(asked, true, ec);
  if (region != nullptr) {
    std::memcpy(region->bytes().data() + asked.offset, payload.data(), payload.size());
    region->end_access();
  }
  frame answer;
  answer.code = opcode::written;
  answer.status = error_status(ec);
  answer.session = asked.session;
  answer.request = asked.request;
  answer.offset = asked.offset;
  answer.length = asked.length;
  from.send(answer);
}

void region_service::refuse(endpoint_core& to, const frame& asked, std::error_code why) {
  frame answer;
  answer.code = opcode::data;
  answer.status = error_status(why);
  answer.session = asked.session;
  answer.request = asked.request;
  to.send(answer);
}

void region_service::ended(read_answer& answer) noexcept {
  answers_.remove(answer);
  idle_->give_back(&answer);
}

bool region_service::answering(const region_core& region) const noexcept {
  for (read_answer* answer = answers_.front(); answer != nullptr; answer = answers_.next(*answer)) {
    if (&answer->region() == &region) return true;
  }
  return false;
}

void region_service::cut_off(const region_core& region) {
  // Failing a connection ends its answers, so the walk begins anew each time.
  for (read_answer* answer = answers_.front(); answer != nullptr;) {
    read_answer* next = answers_.next(*answer);
    if (&answer->region() == &region && !answer->peer().status()) {
      answer->peer().fail(make_error_code(errc::timed_out),
                          "the peer did not take its answers while their region was withdrawn");
      next = answers_.front();
    }
    answer = next;
  }
}

}  // namespace ucx::detail
