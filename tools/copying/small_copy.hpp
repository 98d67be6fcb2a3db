// Small files, fetched from a server or stored there together: one at a time they would wait for
// its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "copying/file_copy.hpp"

namespace ucx::tool {

/// So many go together at most; so large each of them is at most.
constexpr std::size_t most_small = 32;
constexpr std::uint64_t small_size = std::uint64_t{32} << 10U;

/// Returns whether a file can go with others. It has to come from a server or go to one, and
/// nothing may be asked for that needs a separate question.
bool is_small(const copy_task& task, const copy_context& context) noexcept;

/// Returns whether two of them can go together.
bool is_alike(const copy_task& one, const copy_task& other) noexcept;

/// Copies files that go together. Returns those that could not be copied like this, for whatever
/// reason: they are then copied one by one, or fail with a message. `failed` is told of files that
/// may or may not be there now; those are not returned.
/// REQUIRES: each is_small(), all is_alike(), there are no more than `most_small`.
std::vector<copy_task> copy_small(const std::vector<copy_task>& tasks, const copy_context& context,
                                  const std::function<void(const failure&)>& failed);

}  // namespace ucx::tool
