#include "small_copy.hpp"

#include <cstddef>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "new_file.hpp"
#include "ucx/bulk_open.hpp"

namespace ucx::tool {
namespace {

/// Returns whether no earlier copy to that name has left anything, and it is a name for copies.
bool is_free(const std::filesystem::path& path) {
  const std::string leaf = path.filename().string();
  std::error_code ec;
  const auto left = std::filesystem::symlink_status(path.parent_path() / partial_name(leaf), ec);
  return !is_partial_name(leaf) && left.type() == std::filesystem::file_type::not_found;
}

void write_whole(const copy_task& task, std::span<const std::byte> bytes,
                 const copy_context& context) {
  if (!is_free(task.to.local()) || !write_new_file(task.to.local(), bytes)) {
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
         !terms.resume && !terms.verify && !terms.sparse && !terms.preserve &&
         terms.source_codec == codec::none;
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
  std::size_t done = 0;
  try {
    context.limit.take(static_cast<std::size_t>(bytes), context.stop);
    client& server = context.clients.of(tasks.front().from.remote());
    const std::vector<fetched_name> fetched = fetch_each(server, names, small_size);
    for (; done < tasks.size(); ++done) {
      if (fetched[done].error || context.stop.stop_requested()) {
        left.push_back(tasks[done]);
        continue;
      }
      try {
        write_whole(tasks[done], fetched[done].bytes, context);
      } catch (const failure&) {
        left.push_back(tasks[done]);
      }
    }
  } catch (const std::exception&) {  // one by one they tell it
    left.insert(left.end(), tasks.begin() + static_cast<std::ptrdiff_t>(done), tasks.end());
  }
  return left;
}

}  // namespace ucx::tool
