// Many names that a client opens at once.
#include <algorithm>
#include <string>
#include <utility>

#include "detail/client_core.hpp"
#include "detail/core_access.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// A server answers more questions than these at a time.
constexpr std::size_t most_at_once = 64;

}  // namespace

std::vector<opened_name> client_core::open_each(std::span<const std::string> names, access wanted,
                                                const io_options& options) {
  std::vector<opened_name> all;
  all.reserve(names.size());
  while (!names.empty()) {
    const std::size_t count = std::min(names.size(), most_at_once);
    open_some(names.first(count), wanted, options, all);
    names = names.subspan(count);
  }
  return all;
}

void client_core::open_some(std::span<const std::string> names, access wanted,
                            const io_options& options, std::vector<opened_name>& all) {
  std::vector<client_session::question> asked;
  for (const std::string& name : names) {
    std::string unused;
    std::error_code ec;
    check_name(name, unused, ec);
    asked.push_back({.answer_type = control_type::opened, .done = static_cast<bool>(ec)});
    asked.back().outcome = ec;
  }
  ask_all(asked, names, wanted, deadline_after(options));
  for (std::size_t i = 0; i < names.size(); ++i) {
    opened_name& made = all.emplace_back();
    made.error = asked[i].outcome;
    if (!made.error) made.region = region_of(asked[i].answer, names[i], wanted, made.error);
    if (!made.error) continue;
    made.region.reset();
    failures_.fetch_add(1, std::memory_order_relaxed);
  }
}

/// Asks for those that are not done, and returns when all are.
void client_core::ask_all(std::vector<client_session::question>& asked,
                          std::span<const std::string> names, access wanted,
                          clock::time_point deadline) {
  worker_core& core = *core_access::core(worker_);
  endpoint_core& connection = *core_access::core(*endpoint_);
  requests_.fetch_add(asked.size(), std::memory_order_relaxed);
  if (core.in_handler()) {
    for (client_session::question& each : asked) each.outcome = errc::would_deadlock;
    return;
  }
  const auto forget_all = [&] {
    connection.expected_control();
    for (client_session::question& each : asked) session_.forget(each);
  };
  {
    const std::lock_guard guard(core.lock());
    connection.expect_control();
    try {
      for (std::size_t i = 0; i < asked.size(); ++i) {
        if (!asked[i].done) session_.ask(asked[i], control_type::open, open_body{names[i], wanted});
      }
    } catch (...) {
      forget_all();
      throw;
    }
  }
  std::size_t first = 0;  // before it all are done
  core.wait_until(deadline, [&] {
    while (first < asked.size() && asked[first].done) ++first;
    return first == asked.size();
  });
  const std::lock_guard guard(core.lock());
  forget_all();
  for (client_session::question& each : asked) {
    if (!each.done) each.outcome = errc::timed_out;
  }
}

}  // namespace ucx::detail
