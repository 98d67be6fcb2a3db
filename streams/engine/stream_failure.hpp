// Why the last call of a stream failed.
#pragma once

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

/// The code of a failure, and the exception that it was made of, where that has a text. Nothing of
/// both after a call that went well.
class stream_failure {
 public:
  std::error_code code() const noexcept { return code_; }
  const std::exception_ptr& cause() const noexcept { return cause_; }
  /// Returns whether it is what happened to bytes that an earlier call had taken.
  bool is_of_writes() const noexcept { return is_of_writes_; }

  void clear() noexcept {
    code_.clear();
    cause_ = nullptr;
    is_of_writes_ = false;
  }
  void set(std::error_code code, std::exception_ptr cause = nullptr) noexcept {
    code_ = code;
    cause_ = std::move(cause);
    is_of_writes_ = false;
  }
  void note_of_writes() noexcept { is_of_writes_ = true; }
  /// It was found to mean more than the exception says.
  void explain(std::exception_ptr cause) noexcept { cause_ = std::move(cause); }

  /// REQUIRES: an exception is being handled.
  void take_handled() noexcept {
    try {
      throw;
    } catch (const ucx::error& failed) {
      set(failed.code(), std::current_exception());
    } catch (const std::bad_alloc&) {
      set(errc::no_memory);
    } catch (...) {
      set(errc::unexpected);
    }
  }

 private:
  std::error_code code_;
  std::exception_ptr cause_;
  bool is_of_writes_ = false;
};

}  // namespace ucx::detail
