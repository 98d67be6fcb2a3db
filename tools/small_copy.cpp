#include "small_copy.hpp"

#include <string>
#include <system_error>
#include <utility>

#include "ucx/bulk_open.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"

namespace ucx::tool {
namespace {

/// A file that is being fetched.
struct fetched {
  const copy_task* task = nullptr;
  std::span<std::byte> bytes = {};
  request reading = {};
};

void write_whole(const fetched& file, const copy_context& context) {
  const std::unique_ptr<copy_target> target =
      open_target(file.task->to, file.bytes.size(), context.terms, context.clients);
  target->begin(0);
  target->write(0, file.bytes);
  target->complete(file.bytes.size());
  target->commit({});
  context.counters.bytes += file.bytes.size();
  ++context.counters.files;
}

/// Opens them, and begins to read those that are not longer than they were.
std::vector<fetched> fetch(const std::vector<copy_task>& tasks, std::vector<opened_name>& opened,
                           std::span<std::byte> buffer, std::vector<copy_task>& left) {
  std::vector<fetched> all;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::span<std::byte> room = buffer.subspan(i * small_size, small_size);
    if (opened[i].error || opened[i].region->size() > room.size()) {
      left.push_back(tasks[i]);
      continue;
    }
    fetched& one = all.emplace_back();
    one.task = &tasks[i];
    one.bytes = room.first(static_cast<std::size_t>(opened[i].region->size()));
    if (!one.bytes.empty()) one.reading = opened[i].region->start_read_at(0, one.bytes);
  }
  return all;
}

}  // namespace

bool is_small(const copy_task& task, const copy_context& context) noexcept {
  const copy_terms& terms = context.terms;
  return task.from.is_remote() && !task.to.is_remote() && task.size <= small_size &&
         !terms.resume && !terms.verify && !terms.sparse && !terms.preserve &&
         terms.source_codec == codec::none;
}

std::vector<copy_task> copy_small(const std::vector<copy_task>& tasks, const copy_context& context,
                                  std::span<std::byte> buffer) {
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
    std::vector<opened_name> opened = open_each(server, names);
    for (fetched& each : fetch(tasks, opened, buffer, left)) {
      std::error_code ec;
      each.reading.wait(ec);
      try {
        if (ec || context.stop.stop_requested()) {
          left.push_back(*each.task);
        } else {
          write_whole(each, context);
        }
      } catch (const failure&) {
        left.push_back(*each.task);
      }
    }
  } catch (const error&) {
    return tasks;
  }
  return left;
}

}  // namespace ucx::tool
