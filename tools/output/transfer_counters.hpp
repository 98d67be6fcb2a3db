// How far a command has come.
#pragma once

#include <atomic>
#include <cstdint>

namespace ucx::tool {

/// Written by those who move bytes, and read by who shows it. Safe from any thread.
struct transfer_counters {
  std::atomic<std::uint64_t> bytes{0};    ///< Moved by now.
  std::atomic<std::uint64_t> present{0};  ///< That need not be moved: they were there already.
  std::atomic<std::uint64_t> hashed{0};   ///< By each end, to be compared.
  std::atomic<std::uint64_t> files{0};    ///< Done.
  std::atomic<std::uint64_t> hollow{0};   ///< Empty directories that an old server does not make.
  std::atomic<std::uint64_t> total_bytes{0};
  std::atomic<std::uint64_t> total_files{0};
  std::atomic<bool> is_total_known{false};
};

}  // namespace ucx::tool
