// Calls of the system's that are counted, of every thread of the program.
#pragma once

#include <cstdint>

namespace ucx::test {

/// Each works in a program that has replaced_calls.cpp among its sources.
std::uint64_t getpeername_calls() noexcept;
std::uint64_t poll_calls() noexcept;
std::uint64_t readdir_calls() noexcept;

}  // namespace ucx::test
