// What a client asks of the stores of its server.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/deadline.hpp"
#include "base/error_text.hpp"
#include "base/store_path.hpp"
#include "client/client_core.hpp"
#include "connection/endpoint_core.hpp"
#include "region/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// The server says only that `name` is none; why it is none shows here.
failure explained(failure why, std::string_view name) {
  if (why.code != errc::bad_name) return why;
  const std::string_view complaint = complaint_about_path(name);
  why.text +=
      complaint.empty()
          ? std::string(", which is a store itself, a symbolic link, or too long a path there")
          : ", which is no path in a store: " + std::string(complaint);
  return why;
}

failure unlisted(failure why) {
  if (why.code == errc::permission_denied) why.text += ", which the server may not read";
  return why;
}

list_body entries_of(std::string_view directory) {
  list_body page;
  page.directory = std::string(directory);
  return page;
}

}  // namespace

result<std::string> client_core::check_stores(std::string doing) const {
  if ((features_ & control_feature::stores) != 0) return doing;
  return failure{errc::not_supported,
                 doing + ": the server (ucxio " + server_version_ + ") knows no stores"};
}

result<std::string> client_core::attempt_at_store(std::string_view doing,
                                                  std::string_view name) const {
  if (const auto fit = check_name(name); !fit) return fit.why();
  return check_stores(attempt(doing, name));
}

result<std::string> client_core::attempt_at_directory(std::string_view directory) const {
  constexpr const char* doing = "listing the directory";
  return directory.empty() ? check_stores(attempt(doing, directory))
                           : attempt_at_store(doing, directory);
}

result<std::uint64_t> client_core::list_pages(list_body page, const entry_visitor& visit,
                                              const std::function<clock::time_point()>& deadline,
                                              const std::string& doing) {
  std::uint64_t unserved = 0;
  for (bool more = true, first = true; more; first = false) {
    const auto answer = ask(control_type::list, control_type::listed, page, deadline(), doing);
    if (!answer) return answer.why();
    std::optional<listed_body> listed = decode_listed(*answer);
    if (!listed || !continues(page, *listed)) return failure{errc::protocol_error, doing};
    if (first) unserved = listed->unserved;
    if (!listed->entries.empty()) page.after = listed->entries.back().name;
    more = visit(std::move(listed->entries)) && listed->more;
  }
  return unserved;
}

/// A server says how much there is, and may never end: of that not all is kept.
result<directory_listing> client_core::list_all(list_body page, clock::time_point deadline,
                                                const std::string& doing) {
  constexpr std::size_t most = std::size_t{512} << 20U;
  directory_listing found;
  std::size_t taken = 0;
  const auto take = [&](std::vector<entry>&& some) {
    for (const entry& each : some) taken += sizeof each + each.name.size();
    if (taken > most) return false;
    std::move(some.begin(), some.end(), std::back_inserter(found.entries));
    return true;
  };
  const auto unserved = list_pages(
      std::move(page), take, [deadline] { return deadline; }, doing);
  if (!unserved) return unserved.why();
  if (taken > most) {
    return failure{errc::no_memory,
                   doing + ": the list takes more than " + std::to_string(most >> 20U) + " MiB"};
  }
  found.unserved = *unserved;
  return found;
}

result<void> client_core::visit_names(const entry_visitor& visit, const io_options& options) {
  const auto listed = list_pages(
      {}, visit, [&] { return deadline_after(options); }, "listing what " + place() + " publishes");
  if (!listed) return listed.why();
  return {};
}

result<std::uint64_t> client_core::visit_directory(std::string_view directory,
                                                   const entry_visitor& visit,
                                                   const io_options& options) {
  const auto doing = attempt_at_directory(directory);
  if (!doing) return doing.why();
  auto listed = list_pages(
      entries_of(directory), visit, [&] { return deadline_after(options); }, *doing);
  if (!listed) return unlisted(listed.why());
  return listed;
}

result<directory_listing> client_core::read_directory(std::string_view directory,
                                                      const io_options& options) {
  const auto doing = attempt_at_directory(directory);
  if (!doing) return doing.why();
  auto found = list_all(entries_of(directory), deadline_after(options), *doing);
  if (!found) return unlisted(found.why());
  return found;
}

result<remote_region> client_core::create(std::string_view name, const create_options& how,
                                          const io_options& options) {
  const auto doing = attempt_at_store("creating", name);
  if (!doing) return doing.why();
  create_body body;
  body.name = std::string(name);
  body.wanted = how.readable ? access::read_write : access::write;
  body.mode = static_cast<create_mode>(how.mode);
  const auto answer =
      ask(control_type::create, control_type::opened, body, deadline_after(options), *doing);
  if (!answer) return explained(answer.why(), name);
  return region_of(*answer, name, body.wanted, *doing);
}

/// Returns what is behind a region of this client's.
result<std::shared_ptr<remote_region_core>> client_core::ours(const remote_region& file,
                                                              const std::string& doing) const {
  const std::shared_ptr<remote_region_core>& core = core_access::core(file);
  if (core && &core->endpoint() == &*core_access::core(*endpoint_)) return core;
  return failure{core ? errc::no_such_region : errc::closed, doing};
}

/// Returns what is behind a file that this client has open, when everything that was written
/// through it has arrived.
result<std::shared_ptr<remote_region_core>> client_core::flushed(remote_region& file,
                                                                 const io_options& options,
                                                                 const std::string& doing) {
  auto core = ours(file, doing);
  if (!core) return core;
  if (const auto fit = check_stores(doing); !fit) return fit.why();
  if (const std::error_code spoiled = (*core)->extent().spoiled()) return failure{spoiled, doing};
  try {
    file.flush(options);
  } catch (const error& failed) {
    // Told once: a second attempt would find nothing that waits, and give a name to what has holes.
    (*core)->extent().spoil(failed.code());
    return failure_of(failed);
  }
  return core;
}

/// What was withdrawn is not known to the server any more; that it was is told before.
failure client_core::of_region(failure why, const remote_region_core& asked_about) {
  const std::lock_guard guard(core_access::core(worker_)->lock());
  const std::error_code gone = asked_about.status();
  if (gone && why.code == errc::no_such_region) why.code = gone;
  return why;
}

result<entry> client_core::commit(remote_region& file, bool durable, bool released,
                                  const io_options& options) {
  const std::string doing = "committing " + file.description();
  const auto core = flushed(file, options, doing);
  if (!core) return core.why();
  const auto answer = ask(control_type::commit, control_type::described,
                          commit_body{(*core)->descriptor().region, durable, released},
                          deadline_after(options), doing);
  if (!answer) return answer.why();
  std::optional<described_body> described = decode_described(*answer);
  if (!described) return failure{errc::protocol_error, doing};
  return std::move(described->described);
}

result<entry> client_core::measure(remote_region& file, std::uint64_t known,
                                   std::chrono::nanoseconds wait, const io_options& options) {
  // A question that waits for longer would only keep the server from noticing who is gone.
  constexpr std::chrono::nanoseconds longest_question = std::chrono::seconds(30);
  const std::string doing = "measuring " + file.description();
  const auto region = ours(file, doing);
  if (!region) return region.why();
  remote_region_core& core = **region;
  if (!core.extent().measurable()) {
    return failure{errc::not_supported, doing + ": it is memory, or the server (ucxio " +
                                            server_version_ + ") does not tell"};
  }
  // A server that does not wait is not asked again at once.
  constexpr std::chrono::nanoseconds rest = std::chrono::milliseconds(50);
  const clock::time_point until = after(now(), std::max(wait, wait.zero()));
  for (;;) {
    const clock::time_point asked = now();
    {
      const std::lock_guard guard(core_access::core(worker_)->lock());
      if (const std::error_code gone = core.status()) return failure{gone, doing};
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - now());
    const auto part = std::clamp(left, std::chrono::nanoseconds::zero(), longest_question);
    const measure_body body{core.descriptor().region, known,
                            static_cast<std::uint64_t>(part.count())};
    const auto answer = ask(control_type::measure, control_type::described, body,
                            after(deadline_after(options), part), doing);
    if (!answer) return of_region(answer.why(), core);
    std::optional<described_body> said = decode_described(*answer);
    if (!said) return failure{errc::protocol_error, doing};
    {
      const std::lock_guard guard(core_access::core(worker_)->lock());
      core.extent().measured(said->described.size, said->described.generation);
    }
    const clock::time_point answered = now();
    if (said->described.size != known || answered >= until) return std::move(said->described);
    if (answered - asked < std::min(part, rest)) {
      core_access::core(worker_)->wait_until(std::min(after(answered, rest), until),
                                             [&] { return static_cast<bool>(core.status()); });
    }
  }
}

result<void> client_core::remove(std::string_view name, const io_options& options) {
  const auto doing = attempt_at_store("removing", name);
  if (!doing) return doing.why();
  const auto answer = ask(control_type::remove, control_type::done, remove_body{std::string(name)},
                          deadline_after(options), *doing);
  if (answer) return {};
  failure why = explained(answer.why(), name);
  if (why.code == errc::already_exists) why.text += ", a directory that is not empty";
  return why;
}

result<void> client_core::rename(std::string_view from, std::string_view to,
                                 const io_options& options) {
  for (const std::string_view name : {from, to}) {
    if (const auto fit = check_name(name); !fit) return fit.why();
  }
  const auto doing = check_stores(attempt("renaming", from) + " to \"" + std::string(to) + "\"");
  if (!doing) return doing.why();
  const auto answer =
      ask(control_type::rename, control_type::done,
          rename_body{std::string(from), std::string(to), false}, deadline_after(options), *doing);
  if (!answer) return explained(answer.why(), complaint_about_path(from).empty() ? to : from);
  return {};
}

result<void> client_core::resize(remote_region& file, std::uint64_t size,
                                 const io_options& options) {
  const std::string doing = "resizing " + file.description();
  const auto core = flushed(file, options, doing);
  if (!core) return core.why();
  const auto answer = ask(control_type::resize, control_type::done,
                          resize_body{std::string(), size, (*core)->descriptor().region},
                          deadline_after(options), doing);
  if (!answer) return answer.why();
  const std::lock_guard guard(core_access::core(worker_)->lock());
  (*core)->extent().resized(size);
  return {};
}

result<void> client_core::resize_by_name(std::string_view name, std::uint64_t size,
                                         const io_options& options) {
  const auto doing = attempt_at_store("resizing", name);
  if (!doing) return doing.why();
  const auto answer = ask(control_type::resize, control_type::done,
                          resize_body{std::string(name), size}, deadline_after(options), *doing);
  if (!answer) return explained(answer.why(), name);
  return {};
}

}  // namespace ucx::detail
