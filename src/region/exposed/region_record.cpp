#include "region/exposed/region_record.hpp"

#include <unistd.h>

#include <random>

namespace ucx::detail {
namespace {

std::uint64_t new_token() {
  std::random_device entropy;
  const std::uint64_t made = (std::uint64_t{entropy()} << 32U) | entropy();
  return made == 0 ? 1 : made;
}

}  // namespace

region_record::region_record(const remote_descriptor& described) : token_(new_token()) {
  record_.begin(token_, subject_of(described));
}

cma_handle region_record::location() const noexcept {
  return {.process = static_cast<std::uint64_t>(::getpid()),
          .record = reinterpret_cast<std::uintptr_t>(&record_),
          .token = token_};
}

}  // namespace ucx::detail
