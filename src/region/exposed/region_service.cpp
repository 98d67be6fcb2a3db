#include "region/exposed/region_service.hpp"

#include <cstring>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/piece_sender.hpp"
#include "region/exposed/device_reader.hpp"
#include "region/exposed/exposed_region.hpp"
#include "wire/digest.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// One read of a peer's, being answered: UCX reads the region until the last piece is sent.
class read_answer final : public piece_sender, public list_hook<answer_tag> {
 public:
  void begin(region_service& service, endpoint_core& to, exposed_region& region,
             const frame& asked) {
    service_ = &service;
    region_ = &region;
    to.answer_started();
    frame first;
    first.code = opcode::data;
    first.session = asked.session;
    first.request = asked.request;
    prepare_pieces(to, first,
                   region.bytes().subspan(static_cast<std::size_t>(asked.offset),
                                          static_cast<std::size_t>(asked.length)),
                   asked);
    send_pieces();
  }

  const exposed_region& region() const noexcept { return *region_; }
  endpoint_core& peer() const noexcept { return pieces_endpoint(); }
  /// Ends it as far as UCX has let go of the region; may end the object.
  void peer_failed() {
    stop_pieces();
    pieces_moved();
  }

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
  exposed_region* region_ = nullptr;
};

region_service::region_service(worker_core& worker)
    : worker_(worker),
      idle_(std::make_unique<pool<read_answer>>()),
      files_(worker),
      devices_(worker) {
  devices_.read_slowly_by(std::make_unique<device_reader>(worker));
}

region_service::~region_service() {
  // UCX's worker is gone, with or without a word about what it had left to send.
  while (read_answer* left = answers_.front()) {
    left->region_->end_access();
    ended(*left);
  }
}

/// Looks the region up for one access, which the caller ends.
exposed_region* region_service::admit(const frame& asked, access wanted,
                                      std::error_code& ec) noexcept {
  if (asked.incarnation != worker_.context().incarnation()) {
    ec = errc::stale_region;
    return nullptr;
  }
  auto* const region =
      static_cast<exposed_region*>(worker_.context().regions().begin_access(asked.region, ec));
  if (region == nullptr) return nullptr;
  if (asked.generation != region->generation()) {
    ec = errc::stale_region;
  } else {
    ec = region->check(asked.offset, asked.length, wanted);
  }
  if (!ec) return region;
  region->end_access();
  return nullptr;
}

void region_service::read(endpoint_core& from, const frame& asked) {
  std::error_code ec;
  if (asked.length == 0) return refuse(from, asked, errc::invalid_argument);
  if (from.answers() >= most_reads) return refuse(from, asked, errc::busy);
  exposed_region* region = admit(asked, access::read, ec);
  if (region == nullptr) return refuse(from, asked, ec);
  held_access until_answered(*region);
  // The processor can not look at the memory of another device.
  if (wants_digests(asked) && region->kind() != memory_kind::host) {
    return refuse(from, asked, errc::not_supported);
  }
  if (region->kind() != memory_kind::host) {
    return devices_.read(from, *region, until_answered, asked);
  }
  if (region->source()) return files_.read(from, *region, until_answered, asked);
  read_answer* answer = idle_->take();
  until_answered.leave();
  answers_.push_back(*answer);
  answer->begin(*this, from, *region, asked);
}

void region_service::write(endpoint_core& from, const frame& asked,
                           std::span<const std::byte> payload) {
  std::error_code ec;
  if (asked.length != payload.size() || payload.empty()) ec = errc::protocol_error;
  exposed_region* region = ec ? nullptr : admit(asked, access::write, ec);
  if (region != nullptr) {
    const held_access until_taken(*region);
    if (const std::shared_ptr<write_sink> sink = region->sink()) {
      return sink->write(from, asked, payload);
    }
    std::memcpy(region->bytes().data() + asked.offset, payload.data(), payload.size());
  }
  answer_write(from, asked, ec);
}

void region_service::answer_write(endpoint_core& from, const frame& asked, std::error_code ec) {
  frame answer;
  answer.code = opcode::written;
  answer.status = error_status(ec);
  answer.session = asked.session;
  answer.request = asked.request;
  answer.offset = asked.offset;
  answer.length = asked.length;
  from.reply(answer);
}

void region_service::refuse(endpoint_core& to, const frame& asked, std::error_code why) {
  frame answer;
  answer.code = opcode::data;
  answer.status = error_status(why);
  answer.session = asked.session;
  answer.request = asked.request;
  to.reply(answer);
}

void region_service::ended(read_answer& answer) noexcept {
  answers_.remove(answer);
  idle_->give_back(&answer);
}

bool region_service::answering(const counted_region& region) const noexcept {
  for (read_answer* answer = answers_.front(); answer != nullptr; answer = answers_.next(*answer)) {
    if (&answer->region() == &region) return true;
  }
  return files_.answering(region) || devices_.answering(region);
}

void region_service::connection_failed(const driven_connection& connection) {
  for (read_answer* answer = answers_.front(); answer != nullptr;) {
    read_answer* next = answers_.next(*answer);
    if (&answer->peer() == &connection) answer->peer_failed();
    answer = next;
  }
  extras_.connection_failed(connection);
  files_.connection_failed(connection);
  devices_.connection_failed(connection);
}

void region_service::cut_off(const counted_region& region) {
  // Failing a connection ends its answers, so the walk begins anew each time.
  for (read_answer* answer = answers_.front(); answer != nullptr;) {
    read_answer* next = answers_.next(*answer);
    if (&answer->region() == &region && !answer->peer().status()) {
      answer->peer().fail(
          make_error_code(errc::connection_reset),
          if_there_is_memory("the peer did not take its answers while their region was withdrawn"));
      next = answers_.front();
    }
    answer = next;
  }
}

}  // namespace ucx::detail
