// What the pretended driver's calls return: cuda.h's numbers.
#pragma once

namespace ucx::test {

constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int not_initialized = 3;
constexpr int invalid_device = 101;
constexpr int invalid_context = 201;
constexpr int map_failed = 205;
constexpr int already_mapped = 208;
constexpr int invalid_handle = 400;
constexpr int not_found = 500;
constexpr int not_ready = 600;
constexpr int illegal_address = 700;
constexpr int context_is_destroyed = 709;
constexpr int already_registered = 712;
constexpr int not_supported = 801;
constexpr int capture_unsupported = 900;

}  // namespace ucx::test
