// The functions that peers call, and what becomes of each call.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "call/call_gate.hpp"
#include "call/call_message.hpp"
#include "call/call_shape.hpp"
#include "ucx/call_memory.hpp"
#include "ucx/call_table.hpp"

namespace ucx::detail {

class call_deferral;
class deferred_call;
class late_senders;

/// The core of `call_table`. Calls use the functions as they were when the call began, so that
/// functions are added at any time.
class call_directory : public std::enable_shared_from_this<call_directory> {
 public:
  call_directory();

  /// `shape`: the arguments and the result are compared with it; nothing: the function does.
  result<void> add(std::string_view name, call_signature signature, std::optional<call_shape> shape,
                   call_table::handler run, const call_function_options& options);
  void refuse(call_table::predicate refused);
  void observe(call_table::observer told);

  /// Runs what `asked` asks for. Returns the answer, or nothing where it comes later. `gate`: null
  /// where all functions exist for the caller. `later`: null where answers can not come later.
  std::optional<call_message> answer(const asked_call& asked, call_context& context,
                                     call_gate* gate = nullptr, late_senders* later = nullptr);
  /// Returns the answer to what is no call, or was not run.
  call_message refuse(std::uint64_t number, const call_failure& why, const call_context& context,
                      std::string_view name = {});
  call_statistics statistics() const noexcept;
  /// Where the memory beside a call lands, and whether the function has arguments that name it.
  struct landing {
    call_memory where;
    bool is_named = false;
  };
  /// Returns where the memory beside a call lands; nothing where the call would be refused before
  /// its function runs.
  std::optional<landing> landing_of(const asked_call& asked, const call_context& context,
                                    call_gate* gate) const;

 private:
  friend class call_deferral;
  friend class deferred_call;

  struct function {
    std::string name;
    call_signature signature;
    std::optional<call_shape> shape;
    std::uint64_t number = 0;
    call_table::handler run;
    std::string documentation;
    call_memory memory;
    bool takes_memory = false;
  };
  /// Never changed: a change makes another one.
  struct contents {
    std::map<std::string, std::shared_ptr<const function>, std::less<>> by_name;
    std::vector<std::shared_ptr<const function>> in_order;
    std::shared_ptr<const call_table::predicate> refused;
    std::shared_ptr<const call_table::observer> observer;

    std::string known_versions(std::string_view name, call_gate* gate) const;
    bool refuses(const call_context& context, std::string_view name) const noexcept;
    const function* find(const asked_call& asked, std::uint64_t first, call_gate* gate,
                         call_failure& refusal) const;
    /// Writes the functions behind a name, as far as they go into one answer.
    void list(std::string_view after, call_gate* gate, call_writer& to) const;
  };
  /// Of calls that ended so.
  struct counters {
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint64_t> failed{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> invalid{0};
    std::atomic<std::uint64_t> given_up{0};
  };

  std::shared_ptr<const contents> current() const;
  template <class Change>
  void change(Change made);
  static std::optional<call_failure> run(const function& called, const asked_call& asked,
                                         call_context& context, call_writer& value);
  static call_failure failure_of_exception();
  /// Returns why `value` is no result.
  static std::optional<call_failure> complaint_about_result(const call_writer& value,
                                                            const std::optional<call_shape>& shape);
  /// Returns why there is no listing in `value`.
  std::optional<call_failure> list(const contents& now, const asked_call& asked,
                                   const call_context& context, call_gate* gate,
                                   call_writer& value) const;
  void count(call_outcome outcome) noexcept;

  /// The number of the first function. Another table has other numbers.
  const std::uint64_t first_number_;
  const call_signature listing_;
  mutable std::mutex changing_;  // with the next one
  std::shared_ptr<const contents> contents_;
  counters counters_;
};

}  // namespace ucx::detail
