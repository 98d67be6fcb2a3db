// An access to a peer's region that the peer answers by messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "connection/peer_question.hpp"
#include "ucx/memory_place.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class remote_region_core;

class region_question : public peer_question {
 public:
  const void* target() const noexcept final { return region_.get(); }
  std::string describe() const override;

 protected:
  /// Starts, with so many further references, and puts the operation on its connection's books.
  void enter(std::shared_ptr<remote_region_core> region, std::uint64_t offset, std::uint64_t length,
             clock::time_point deadline, unsigned further_references = 0);
  frame question(opcode code) const noexcept;
  /// Returns the kind of the caller's memory, which may be gone behind the end.
  memory_kind memory_of(const std::byte* here, bool on_device) const noexcept {
    if (!on_device) return memory_kind::host;
    return done() ? memory_kind::cuda : place_of(here).kind;
  }

  std::shared_ptr<remote_region_core> region_;
  std::uint64_t offset_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace ucx::detail
