// Many names that a client opens at once.
#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/forked_child.hpp"
#include "client/client_core.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

std::vector<opened_name> client_core::open_each(std::span<const std::string> names, access wanted,
                                                const io_options& options) {
  std::vector<opened_name> all;
  all.reserve(names.size());
  for (; !names.empty(); names = names.subspan(std::min(names.size(), most_at_once))) {
    const auto some = names.first(std::min(names.size(), most_at_once));
    const std::vector<client_session::question> asked = ask_names(some, wanted, options);
    bool answers = true;
    for (std::size_t i = 0; i < some.size(); ++i) {
      answers = answers && asked[i].outcome != errc::timed_out;
      opened_name& made = all.emplace_back();
      made.error = asked[i].outcome;
      if (!made.error) {
        auto opened = region_of(asked[i].answer, some[i], wanted, {});
        if (opened) {
          made.region = *std::move(opened);
          continue;
        }
        made.error = opened.why().code;
      }
      failures_.fetch_add(1, std::memory_order_relaxed);
    }
    if (answers) continue;
    // A server that does not answer in time is not asked for the rest, which would take as long.
    const std::size_t left = names.size() - some.size();
    for (std::size_t i = 0; i < left; ++i) all.emplace_back().error = errc::timed_out;
    failures_.fetch_add(left, std::memory_order_relaxed);
    break;
  }
  return all;
}

std::vector<client_session::question> client_core::ask_names(std::span<const std::string> names,
                                                             access wanted,
                                                             const io_options& options) {
  std::vector<client_session::question> asked;
  for (const std::string& name : names) {
    std::error_code ec;
    check_name(name).or_tell(ec);
    asked.push_back({.answer_type = control_type::opened, .done = static_cast<bool>(ec)});
    asked.back().outcome = ec;
  }
  const auto send = [&](std::size_t i) {
    session_.ask(asked[i], control_type::open, open_body{names[i], wanted});
  };
  ask_all(asked, send, deadline_after(options));
  return asked;
}

}  // namespace ucx::detail
