#include "served_calls.hpp"

#include <algorithm>
#include <utility>

#include <ucx/error.hpp>

namespace ucxio_python {

void served_calls::add(const std::shared_ptr<ucx::server>& by, const ucx::call_function& called,
                       std::shared_ptr<const call_types> types,
                       const std::shared_ptr<call_queue>& queue, std::uint64_t number,
                       const std::string& documentation) {
  const std::lock_guard guard(lock_);
  if (is_over_) throw ucx::error(ucx::errc::closed, "the server was closed");
  if (!serves_) {
    serves_.emplace(*by, table_);
    by_ = by;
  }
  table_.add_dynamic(
      called.name(), called.signature().text(),
      [queue, types = std::move(types), number](ucx::call_context& context,
                                                ucx::call_reader& arguments, ucx::call_writer&) {
        queue->defer(number, *types, context, arguments);
      },
      ucx::call_function_options{.documentation = documentation});
  std::erase_if(queues_, [](const auto& each) { return each.expired(); });
  const bool is_known = std::any_of(queues_.begin(), queues_.end(),
                                    [&](const auto& each) { return each.lock() == queue; });
  if (!is_known) queues_.push_back(queue);
}

void served_calls::close_queues() {
  std::vector<std::weak_ptr<call_queue>> all;
  {
    const std::lock_guard guard(lock_);
    all.swap(queues_);
  }
  for (const std::weak_ptr<call_queue>& each : all) {
    if (const auto queue = each.lock()) queue->close();
  }
}

void served_calls::end() {
  std::optional<ucx::call_server> gone;
  std::shared_ptr<ucx::server> by;  // goes after it
  {
    const std::lock_guard guard(lock_);
    is_over_ = true;
    gone.swap(serves_);
    by.swap(by_);
  }
  close_queues();
  gone.reset();
}

}  // namespace ucxio_python
