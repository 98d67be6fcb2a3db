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
  for (; !names.empty(); names = names.subspan(std::min(names.size(), most_at_once))) {
    const auto some = names.first(std::min(names.size(), most_at_once));
    const std::vector<client_session::question> asked = ask_names(some, wanted, 0, options);
    for (std::size_t i = 0; i < some.size(); ++i) {
      opened_name& made = all.emplace_back();
      made.error = asked[i].outcome;
      if (!made.error) made.region = region_of(asked[i].answer, some[i], wanted, made.error);
      if (!made.error) continue;
      made.region.reset();
      failures_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return all;
}

std::vector<fetched_name> client_core::fetch_each(std::span<const std::string> names,
                                                  std::size_t most, const io_options& options) {
  std::vector<fetched_name> all;
  all.reserve(names.size());
  for (; !names.empty(); names = names.subspan(std::min(names.size(), most_at_once))) {
    fetch_some(names.first(std::min(names.size(), most_at_once)), most, options, all);
  }
  return all;
}

/// What does not come with the answers is read from the regions that come instead.
void client_core::fetch_some(std::span<const std::string> names, std::size_t most,
                             const io_options& options, std::vector<fetched_name>& all) {
  struct reading {
    fetched_name* into;
    remote_region from;
    request started;
  };
  std::vector<reading> started;
  const bool knows = (features_ & control_feature::contents) != 0;
  const std::vector<client_session::question> asked =
      ask_names(names, access::read, knows ? most : 0, options);
  for (std::size_t i = 0; i < names.size(); ++i) {
    fetched_name& made = all.emplace_back();
    made.error = asked[i].outcome;
    if (made.error) continue;
    std::optional<opened_body> said = decode_opened(asked[i].answer);
    if (said && said->content) {
      const bool is_meant = knows && most > 0 && said->content->size() <= most &&
                            said->described.name == names[i] && said->descriptor.empty() &&
                            !said->held;
      if (!is_meant) made.error = errc::protocol_error;
      if (is_meant) made.bytes = std::move(*said->content);
      continue;
    }
    remote_region opened = region_of(asked[i].answer, names[i], access::read, made.error);
    if (!made.error && opened.size() > most) made.error = errc::message_truncated;
    if (made.error) continue;
    made.bytes.resize(static_cast<std::size_t>(opened.size()));
    started.push_back({&made, std::move(opened), {}});
  }
  // The memory that is read into stays where it is, whatever becomes of the list.
  for (reading& each : started) {
    each.started = each.from.start_read_at(0, each.into->bytes, options);
  }
  for (reading& each : started) {
    each.started.wait(each.into->error);
    if (each.into->error) each.into->bytes.clear();
  }
  failures_.fetch_add(static_cast<std::uint64_t>(std::count_if(
                          all.end() - static_cast<std::ptrdiff_t>(names.size()), all.end(),
                          [](const fetched_name& each) { return static_cast<bool>(each.error); })),
                      std::memory_order_relaxed);
}

std::vector<client_session::question> client_core::ask_names(std::span<const std::string> names,
                                                             access wanted, std::size_t most,
                                                             const io_options& options) {
  std::vector<client_session::question> asked;
  for (const std::string& name : names) {
    std::string unused;
    std::error_code ec;
    check_name(name, unused, ec);
    asked.push_back({.answer_type = control_type::opened, .done = static_cast<bool>(ec)});
    asked.back().outcome = ec;
  }
  ask_all(asked, names, wanted, most, deadline_after(options));
  return asked;
}

/// Asks for those that are not done, and returns when all are.
void client_core::ask_all(std::vector<client_session::question>& asked,
                          std::span<const std::string> names, access wanted, std::size_t most,
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
        if (!asked[i].done) {
          session_.ask(asked[i], control_type::open, open_body{names[i], wanted, most});
        }
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
