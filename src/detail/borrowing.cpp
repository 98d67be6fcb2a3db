#include "detail/borrowing.hpp"

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <span>

namespace ucx::detail {
namespace {

/// So many runs of a scattering receive are filled by one call.
constexpr std::size_t most_runs = 16;

}  // namespace

void borrowing::begin(const loan_offer& offer, const parcel& announced) noexcept {
  offer_ = offer;
  expected_ = {.token = offer.token,
               .session = announced.session,
               .number = announced.number,
               .length = announced.length};
  read_ = 0;
}

bool borrowing::finds_record(ucp_api& api) const noexcept {
  loan_record::content found;
  const ::iovec into = {&found, sizeof found};
  const std::array from{memory_range{offer_.record, sizeof found}};
  const auto process = static_cast<::pid_t>(offer_.process);
  return api.read_process(process, {&into, 1}, from) == sizeof found && found == expected_;
}

borrowing::outcome borrowing::read(ucp_api& api, const byte_runs<std::byte>& into,
                                   std::size_t most) noexcept {
  std::array<::iovec, most_runs + 1> places;
  std::size_t runs = 0;
  std::size_t size = 0;
  const std::size_t end = read_ + std::min(most, expected_.length - read_);
  while (runs < most_runs && read_ + size < end) {
    const std::span<std::byte> run = into.from(read_ + size);
    const std::size_t length = std::min(run.size(), end - read_ - size);
    places[runs++] = {run.data(), length};
    size += length;
  }
  loan_record::content found;
  places[runs++] = {&found, sizeof found};
  // In this order, says process_vm_readv(2): the record is read when the bytes have been.
  const std::array from{memory_range{offer_.address + read_, size},
                        memory_range{offer_.record, sizeof found}};
  const std::size_t wanted = size + sizeof found;
  const auto process = static_cast<::pid_t>(offer_.process);
  if (api.read_process(process, std::span(places).first(runs), from) != wanted) {
    return outcome::failed;
  }
  if (found != expected_) return outcome::failed;
  read_ += size;
  return read_ == expected_.length ? outcome::whole : outcome::more;
}

}  // namespace ucx::detail
