#include "message/cma_read.hpp"

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <span>

namespace ucx::detail {
namespace {

/// So many runs of a scattering receive are filled by one call.
constexpr std::size_t most_runs = 63;

}  // namespace

void cma_read::begin(const cma_offer& offer, const parcel& announced) noexcept {
  offer_ = offer;
  expected_ = {.token = offer.token, .about = subject_of(announced)};
  length_ = announced.length;
  read_ = 0;
}

cma_read::sender cma_read::look_for_sender(ucp_api& api) const noexcept {
  cma_record::content found;
  const ::iovec into = {&found, sizeof found};
  const std::array from{memory_range{offer_.record, sizeof found}};
  const auto process = static_cast<::pid_t>(offer_.process);
  if (api.read_process(process, {&into, 1}, from) != sizeof found) return sender::unreadable;
  return found.about[0] == expected_.about[0] ? sender::found : sender::not_found;
}

cma_read::outcome cma_read::read(ucp_api& api, const byte_runs<std::byte>& into,
                                 std::size_t most) noexcept {
  const std::uint64_t end = read_ + std::min<std::uint64_t>(most, length_ - read_);
  while (read_ < end) {
    if (!read_part(api, into, end)) return outcome::failed;
  }
  return read_ == length_ ? outcome::whole : outcome::more;
}

/// As much as one call can do; returns whether it is the message's.
bool cma_read::read_part(ucp_api& api, const byte_runs<std::byte>& into,
                         std::uint64_t end) noexcept {
  std::array<::iovec, most_runs + 1> places;
  std::size_t runs = 0;
  std::uint64_t next = read_;
  while (runs < most_runs && next < end) {
    const std::span<std::byte> run = into.from(static_cast<std::size_t>(next));
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(run.size(), end - next));
    places[runs++] = {run.data(), length};
    next += length;
  }
  cma_record::content found;
  places[runs++] = {&found, sizeof found};
  const auto size = static_cast<std::size_t>(next - read_);
  // In this order, says process_vm_readv(2). Linux lets go of the bytes' pages, with full ordering,
  // before it turns to the record.
  const std::array from{memory_range{offer_.address + read_, size},
                        memory_range{offer_.record, sizeof found}};
  const auto process = static_cast<::pid_t>(offer_.process);
  const std::size_t read = api.read_process(process, std::span(places).first(runs), from);
  if (read != size + sizeof found || found != expected_) return false;
  read_ = next;
  return true;
}

}  // namespace ucx::detail
