#include "agent/agent_links.hpp"

#include <algorithm>

#include "output/exit_code.hpp"

namespace ucx::tool {

std::shared_ptr<agent_link> agent_links::of(const url& any) {
  const std::lock_guard guard(mutex_);
  server_links& links = servers_[any.server()];
  const auto least = std::ranges::min_element(
      links.all, {}, [](const std::shared_ptr<agent_link>& each) { return each.use_count(); });
  const bool is_free = least != links.all.end() && least->use_count() == 1;
  if (is_free || links.all.size() == most_of_one_server || !links.may_grow) return *least;
  try {
    return links.all.emplace_back(
        std::make_shared<agent_link>(any.server(), settings_, end_.get_token()));
  } catch (const failure&) {
    if (links.all.empty() || end_.stop_requested()) throw;
    links.may_grow = false;
    return *least;
  }
}

}  // namespace ucx::tool
