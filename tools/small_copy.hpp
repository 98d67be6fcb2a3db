// Small files of a server, fetched together: one at a time they would wait for its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "file_copy.hpp"

namespace ucx::tool {

/// So many are fetched together at most; so large each of them is at most.
constexpr std::size_t most_small = 32;
constexpr std::uint64_t small_size = std::uint64_t{32} << 10U;

/// Returns whether a file can be fetched with others: it goes from a server to here, and nothing
/// was asked for that needs a question of its own.
bool is_small(const copy_task& task, const copy_context& context) noexcept;

/// Copies files of one server; returns those that could not be copied like this,
/// for whatever reason: one by one they are copied, or it is told why they are not.
/// REQUIRES: each is_small(), there are no more than `most_small`.
std::vector<copy_task> copy_small(const std::vector<copy_task>& tasks, const copy_context& context);

}  // namespace ucx::tool
