#include "copying/small_copy.hpp"

#include <cstddef>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "copying/new_file.hpp"
#include "ucx/many_files.hpp"

namespace ucx::tool {
namespace {

/// Returns whether no earlier copy to that name has left anything, and it is a name for copies.
bool is_free(const copy_task& task) {
  const std::filesystem::path& path = task.to.local();
  const std::string leaf = path.filename().string();
  if (is_partial_name(leaf) || task.goes_into_new) return !is_partial_name(leaf);
  std::error_code ec;
  const auto left = std::filesystem::symlink_status(path.parent_path() / partial_name(leaf), ec);
  return left.type() == std::filesystem::file_type::not_found;
}

void write_whole(const copy_task& task, std::span<const std::byte> bytes,
                 const copy_context& context) {
  if (!is_free(task) || !write_new_file(task.to.local(), bytes)) {
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

/// Which of some files were copied, by their numbers; what becomes of the others is told one by
/// one.
using copied = std::vector<bool>;

using report = std::function<void(const failure&)>;

void fetch_small(const std::vector<copy_task>& tasks, const copy_context& context,
                 const report& failed, copied& done) {
  std::vector<std::string> names;
  for (const copy_task& each : tasks) names.push_back(each.from.remote().name());
  client& server = context.clients.of(tasks.front().from.remote());
  const std::vector<read_result> fetched = read_many(server, names, small_size);
  for (std::size_t i = 0; i < tasks.size() && !context.stop.stop_requested(); ++i) {
    if (fetched[i].error == errc::timed_out) {  // who asks again waits again
      failed(failure(exit_code::timed_out,
                     to_string(tasks[i].from) + ": " + fetched[i].error.message()));
      done[i] = true;
    }
    if (fetched[i].error) continue;
    try {
      check_size(tasks[i].from, fetched[i].bytes.size(), context.terms);
      write_whole(tasks[i], fetched[i].bytes, context);
      done[i] = true;
    } catch (const failure&) {  // told one by one
    }
  }
}

/// Returns all that is in a file of this machine; nothing where that is not what was expected.
std::optional<std::vector<std::byte>> read_whole(const copy_task& task,
                                                 const copy_context& context) {
  try {
    const std::unique_ptr<copy_source> source =
        open_source(task.from, context.terms, context.clients);
    if (source->size() > small_size) return std::nullopt;
    check_size(task.from, source->size(), context.terms);
    std::vector<std::byte> bytes(static_cast<std::size_t>(source->size()));
    source->read(0, bytes);
    source->check_unchanged();
    return bytes;
  } catch (const failure&) {
    return std::nullopt;
  }
}

/// Removes what interrupted copies have left beside them: it is of no use any more.
void remove_left(client& server, const std::vector<location>& stored) {
  std::vector<std::string> names;
  for (const location& each : stored) {
    try {
      names.push_back(each.beside(partial_name(each.leaf())).remote().name());
    } catch (const std::exception&) {  // so long a name none can have
    }
  }
  std::vector<open_result> opened = open_many(server, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_there = std::exchange(opened[i].region, std::nullopt).has_value();
    // One that a store does not let this client open, with so many others, may be there.
    if (!is_there && opened[i].error != errc::too_many_client_files) continue;
    std::error_code ignored;
    server.remove(names[i], {}, ignored);
  }
}

void store_small(const std::vector<copy_task>& tasks, const copy_context& context,
                 const report& failed, copied& done) {
  std::vector<std::vector<std::byte>> contents;
  std::vector<short_file> files;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (is_partial_name(tasks[i].to.leaf())) continue;
    std::optional<std::vector<std::byte>> content = read_whole(tasks[i], context);
    if (!content) continue;
    contents.push_back(std::move(*content));
    files.push_back({.name = tasks[i].to.remote().name(), .bytes = contents.back()});
    numbers.push_back(i);
  }
  if (context.stop.stop_requested()) return;
  client& server = context.clients.of(tasks.front().to.remote());
  const std::vector<std::error_code> outcomes = write_many(server, files);
  std::vector<location> stored;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // It may be there yet: who tries again would meet it.
    const bool is_unknown = outcomes[i] == errc::timed_out;
    if (outcomes[i] && !is_unknown) continue;
    done[numbers[i]] = true;
    if (is_unknown) {
      failed(failure(exit_code_of(outcomes[i]),
                     to_string(tasks[numbers[i]].to) + ": " + outcomes[i].message()));
      continue;
    }
    if (!tasks[numbers[i]].goes_into_new) stored.push_back(tasks[numbers[i]].to);
    context.counters.bytes += files[i].bytes.size();
    ++context.counters.files;
  }
  remove_left(server, stored);
}

}  // namespace

bool is_small(const copy_task& task, const copy_context& context) noexcept {
  const copy_terms& terms = context.terms;
  return task.from.is_remote() != task.to.is_remote() && task.size <= small_size && !terms.resume &&
         !terms.verify && !terms.hash && !terms.sparse && !terms.preserve &&
         terms.source_codec == codec::none && terms.target_codec == codec::none;
}

bool is_alike(const copy_task& one, const copy_task& other) noexcept {
  if (one.from.is_remote() != other.from.is_remote()) return false;
  const location& there = one.from.is_remote() ? one.from : one.to;
  const location& other_there = other.from.is_remote() ? other.from : other.to;
  return there.remote().server() == other_there.remote().server();
}

std::vector<copy_task> copy_small(const std::vector<copy_task>& tasks, const copy_context& context,
                                  const std::function<void(const failure&)>& failed) {
  if (tasks.empty()) return {};
  std::uint64_t bytes = 0;
  for (const copy_task& each : tasks) bytes += each.size;
  copied done(tasks.size());
  try {
    context.limit.take(static_cast<std::size_t>(bytes), context.stop);
    (tasks.front().from.is_remote() ? fetch_small : store_small)(tasks, context, failed, done);
  } catch (const std::exception&) {  // one by one they tell it
  }
  std::vector<copy_task> left;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!done[i]) left.push_back(tasks[i]);
  }
  return left;
}

}  // namespace ucx::tool
