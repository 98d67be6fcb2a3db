#include "small_copy.hpp"

#include <string>

#include "new_file.hpp"
#include "ucx/bulk_open.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

void write_whole(const copy_task& task, std::span<const std::byte> bytes,
                 const copy_context& context) {
  if (!write_new_file(task.to.local(), bytes)) {
    const std::unique_ptr<copy_target> target =
        open_target(task.to, bytes.size(), context.terms, context.clients);
    target->begin(0);
    target->write(0, bytes);
    target->complete(bytes.size());
    target->commit({});
  }
  context.counters.bytes += bytes.size();
  ++context.counters.files;
}

}  // namespace

bool is_small(const copy_task& task, const copy_context& context) noexcept {
  const copy_terms& terms = context.terms;
  return task.from.is_remote() && !task.to.is_remote() && task.size <= small_size &&
         !terms.resume && !terms.verify && !terms.sparse && !terms.preserve;
}

std::vector<copy_task> copy_small(const std::vector<copy_task>& tasks,
                                  const copy_context& context) {
  std::vector<copy_task> left;
  if (tasks.empty()) return left;
  std::uint64_t bytes = 0;
  std::vector<std::string> names;
  for (const copy_task& each : tasks) {
    names.push_back(each.from.remote().name());
    bytes += each.size;
  }
  try {
    context.limit.take(static_cast<std::size_t>(bytes), context.stop);
    client& server = context.clients.of(tasks.front().from.remote());
    const std::vector<fetched_name> fetched = fetch_each(server, names, small_size);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      try {
        if (fetched[i].error || context.stop.stop_requested()) {
          left.push_back(tasks[i]);
        } else {
          write_whole(tasks[i], fetched[i].bytes, context);
        }
      } catch (const failure&) {
        left.push_back(tasks[i]);
      }
    }
  } catch (const error&) {
    return tasks;
  }
  return left;
}

}  // namespace ucx::tool
