// The tokens of a context, as their file has them by now.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "carrier/tls.hpp"
#include "carrier/tls_keys.hpp"
#include "os/locked_memory.hpp"

namespace ucx::detail {

/// A token on its way to the file.
class token_addition {
 public:
  enum class state { going_on, done, failed };

  token_addition(std::string_view name, locked_memory secret)
      : name_(name), secret_(std::move(secret)) {}
  state now() const noexcept { return state_.load(std::memory_order_acquire); }

 private:
  friend class token_watch;

  const std::string name_;
  const locked_memory secret_;  // of `token_size`
  std::atomic<state> state_{state::going_on};
};

/// A file that can not be read leaves the old tokens in force, and is tried again when it changes.
/// Once it has begun, a separate thread reads the file. Callers do not wait for a file system that
/// hangs.
/// Safe from any thread.
class token_watch {
 public:
  /// How often the thread looks.
  static constexpr std::chrono::milliseconds period{250};
  /// How long `look()` waits, and after which a look counts as one that hangs.
  static constexpr std::chrono::milliseconds longest_look{20};
  /// A thread that does not end within this is left behind.
  static constexpr std::chrono::seconds longest_farewell{2};

  token_watch(const tls_settings& settings, std::shared_ptr<const tls_keys> first);
  token_watch(const token_watch&) = delete;
  token_watch& operator=(const token_watch&) = delete;
  ~token_watch();

  std::shared_ptr<const tls_keys> keys() const noexcept;
  /// Returns a number that changes with the tokens.
  std::uint64_t version() const noexcept;
  /// Looks by a thread from here on. Where there is none to be had, `look()` goes on by itself.
  void begin() noexcept;
  /// Looks whether the file is another one; `longest_look` at most once it has begun.
  void look() noexcept;
  /// Adds a token that is accepted, and looks again. The thread does so, once it has begun.
  /// Throws std::bad_alloc.
  void add_token(std::shared_ptr<token_addition> added);
  /// Has everybody look again: something beside the tokens has changed.
  void tell() noexcept;
  void add(token_observer& told);
  void remove(token_observer& told) noexcept;

 private:
  struct state;  // what the thread has, which may outlive this

  const std::shared_ptr<state> state_;
  std::thread thread_;
};

}  // namespace ucx::detail
