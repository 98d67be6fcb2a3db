// By what processes of a host find memory that its owner lets them read where it lies:
// docs/reference/wire-format.md, "Region descriptor".
#pragma once

#include <cstdint>

#include "ucx/remote_descriptor.hpp"
#include "wire/cma_record.hpp"

namespace ucx::detail {

/// Returns what the record of a region tells it from all others by.
inline cma_record::subject subject_of(const remote_descriptor& described) noexcept {
  return {described.incarnation, described.region, described.size};
}

/// The owner's side: lends the region as long as it is there.
class region_record {
 public:
  /// Draws a random token, which no peer can foresee.
  explicit region_record(const remote_descriptor& described);
  region_record(const region_record&) = delete;
  region_record& operator=(const region_record&) = delete;
  ~region_record() { record_.end(); }
  /// Returns where it is.
  cma_handle location() const noexcept;

 private:
  const std::uint64_t token_;
  cma_record record_;
};

}  // namespace ucx::detail
