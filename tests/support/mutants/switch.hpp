// Which mutant is on, and which mutants a process came by. mutate.py puts this header
// into its copy of the tree; nothing else includes it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace ucxio_mutants {

/// The size of the map of what was reached: one byte a mutant.
inline constexpr std::size_t map_size = 4096;

struct choice {
  int number = 0;  ///< of the mutant that is on; 0: none
  std::atomic<unsigned char>* reached = nullptr;
};

/// Reads $UCXIO_MUTANT, a number, and maps $UCXIO_MUTANTS_REACHED, a file of `map_size` bytes.
inline choice chosen_by_environment() noexcept {
  choice made;
  if (const char* const number = std::getenv("UCXIO_MUTANT")) made.number = std::atoi(number);
  if (const char* const path = std::getenv("UCXIO_MUTANTS_REACHED")) {
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) std::abort();
    void* const map = ::mmap(nullptr, map_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (map == MAP_FAILED) std::abort();
    made.reached = static_cast<std::atomic<unsigned char>*>(map);
  }
  return made;
}

/// Made when a program or library is loaded, so that no system call of it is among a test's.
inline const choice chosen = chosen_by_environment();

/// Returns whether this mutant is on, and notes that it was reached.
inline bool on(int number) noexcept {
  if (chosen.reached != nullptr) chosen.reached[number].store(1, std::memory_order_relaxed);
  return chosen.number == number;
}

}  // namespace ucxio_mutants
