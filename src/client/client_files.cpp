// What a client asks of the stores of its server.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/deadline.hpp"
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
void explain_bad_name(std::string_view name, std::string& what, std::error_code ec) {
  if (ec != errc::bad_name) return;
  const std::string_view complaint = complaint_about_path(name);
  what += complaint.empty() ? std::string(", which is a symbolic link, or too long a path there")
                            : ", which is no path in a store: " + std::string(complaint);
}

}  // namespace

void client_core::check_stores(std::string& what, std::error_code& ec) const {
  if ((features_ & control_feature::stores) != 0) return;
  what += ": the server (ucxio " + server_version_ + ") knows no stores";
  ec = errc::not_supported;
}

std::uint64_t client_core::list_pages(list_body page, const entry_visitor& visit,
                                      const std::function<clock::time_point()>& deadline,
                                      std::string& what, std::error_code& ec) {
  std::uint64_t unserved = 0;
  for (bool more = true, first = true; more; first = false) {
    const auto answer = ask(control_type::list, control_type::listed, page, deadline(), what, ec);
    if (!answer) return unserved;
    std::optional<listed_body> listed = decode_listed(*answer);
    if (!listed || !continues(page, *listed)) {
      ec = errc::protocol_error;
      return unserved;
    }
    if (first) unserved = listed->unserved;
    if (!listed->entries.empty()) page.after = listed->entries.back().name;
    more = visit(std::move(listed->entries)) && listed->more;
  }
  return unserved;
}

/// A server says how much there is, and may never end: of that not all is kept.
directory_listing client_core::list_all(list_body page, clock::time_point deadline,
                                        std::string& what, std::error_code& ec) {
  constexpr std::size_t most = std::size_t{512} << 20U;
  directory_listing found;
  std::size_t taken = 0;
  const auto take = [&](std::vector<entry>&& some) {
    for (const entry& each : some) taken += sizeof each + each.name.size();
    if (taken > most) return false;
    std::move(some.begin(), some.end(), std::back_inserter(found.entries));
    return true;
  };
  found.unserved = list_pages(
      std::move(page), take, [deadline] { return deadline; }, what, ec);
  if (!ec && taken > most) {
    what += ": the list takes more than " + std::to_string(most >> 20U) + " MiB";
    ec = errc::no_memory;
  }
  if (ec) return {};
  return found;
}

void client_core::visit_names(const entry_visitor& visit, const io_options& options,
                              std::string& what, std::error_code& ec) {
  what = "listing what " + place() + " publishes";
  list_pages(
      {}, visit, [&] { return deadline_after(options); }, what, ec);
}

/// Returns whether the server can be asked what is in a directory.
bool client_core::ask_about(std::string_view directory, list_body& page, std::string& what,
                            std::error_code& ec) const {
  if (!directory.empty()) check_name(directory, what, ec);
  if (ec) return false;
  what = attempt("listing the directory", directory);
  check_stores(what, ec);
  page.directory = std::string(directory);
  return !ec;
}

std::uint64_t client_core::visit_directory(std::string_view directory, const entry_visitor& visit,
                                           const io_options& options, std::string& what,
                                           std::error_code& ec) {
  list_body page;
  if (!ask_about(directory, page, what, ec)) return 0;
  const std::uint64_t unserved = list_pages(
      std::move(page), visit, [&] { return deadline_after(options); }, what, ec);
  if (ec == errc::permission_denied) what += ", which the server may not read";
  return unserved;
}

directory_listing client_core::read_directory(std::string_view directory, const io_options& options,
                                              std::string& what, std::error_code& ec) {
  list_body page;
  if (!ask_about(directory, page, what, ec)) return {};
  directory_listing found = list_all(std::move(page), deadline_after(options), what, ec);
  if (ec == errc::permission_denied) what += ", which the server may not read";
  return found;
}

remote_region client_core::create(std::string_view name, const create_options& how,
                                  const io_options& options, std::string& what,
                                  std::error_code& ec) {
  remote_region none = core_access::empty_region();
  check_name(name, what, ec);
  if (ec) return none;
  what = attempt("creating", name);
  check_stores(what, ec);
  if (ec) return none;
  create_body body;
  body.name = std::string(name);
  body.wanted = how.readable ? access::read_write : access::write;
  body.mode = static_cast<create_mode>(how.mode);
  const auto answer =
      ask(control_type::create, control_type::opened, body, deadline_after(options), what, ec);
  explain_bad_name(name, what, ec);
  return answer ? region_of(*answer, name, body.wanted, ec) : std::move(none);
}

/// Returns what is behind a file that this client has open, when everything that was written
/// through it has arrived; nothing, with an error, where it has not.
std::shared_ptr<remote_region_core> client_core::flushed(remote_region& file,
                                                         const io_options& options,
                                                         std::string& what, std::error_code& ec) {
  const std::shared_ptr<remote_region_core>& core = core_access::core(file);
  if (!is_ours(core)) {
    ec = core ? errc::no_such_region : errc::closed;
    return nullptr;
  }
  check_stores(what, ec);
  if (ec || (ec = core->spoiled())) return nullptr;
  try {
    file.flush(options);
  } catch (const error& failed) {
    // Told once: a second attempt would find nothing that waits, and give a name to what has holes.
    core->spoil(failed.code());
    ec = failed.code();
    what = failed.what();
    return nullptr;
  }
  return core;
}

entry client_core::commit(remote_region& file, bool durable, bool released,
                          const io_options& options, std::string& what, std::error_code& ec) {
  what = "committing " + file.description();
  const std::shared_ptr<remote_region_core> core = flushed(file, options, what, ec);
  if (!core) return {};
  const auto answer = ask(control_type::commit, control_type::described,
                          commit_body{core->descriptor().region, durable, released},
                          deadline_after(options), what, ec);
  if (!answer) return {};
  std::optional<described_body> described = decode_described(*answer);
  if (described) return std::move(described->described);
  ec = errc::protocol_error;
  return {};
}

bool client_core::is_ours(const std::shared_ptr<remote_region_core>& region) const noexcept {
  return region && &region->endpoint() == &*core_access::core(*endpoint_);
}

entry client_core::measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                           const io_options& options, std::string& what, std::error_code& ec) {
  // A question that waits for longer would only keep the server from noticing who is gone.
  constexpr std::chrono::nanoseconds longest_question = std::chrono::seconds(30);
  what = "measuring " + file.description();
  const std::shared_ptr<remote_region_core>& core = core_access::core(file);
  if (!is_ours(core)) {
    ec = core ? errc::no_such_region : errc::closed;
    return {};
  }
  if (!core->measurable()) {
    what += ": it is memory, or the server (ucxio " + server_version_ + ") does not tell";
    ec = errc::not_supported;
    return {};
  }
  // A server that does not wait is not asked again at once.
  constexpr std::chrono::nanoseconds rest = std::chrono::milliseconds(50);
  const clock::time_point until = after(now(), std::max(wait, wait.zero()));
  for (;;) {
    const clock::time_point asked = now();
    {
      const std::lock_guard guard(core_access::core(worker_)->lock());
      if ((ec = core->status())) return {};
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - now());
    const auto part = std::clamp(left, std::chrono::nanoseconds::zero(), longest_question);
    const measure_body body{core->descriptor().region, known,
                            static_cast<std::uint64_t>(part.count())};
    const auto answer = ask(control_type::measure, control_type::described, body,
                            after(deadline_after(options), part), what, ec);
    if (!answer) {
      // What was withdrawn is not known to the server any more; that it was is told before.
      const std::lock_guard guard(core_access::core(worker_)->lock());
      const std::error_code gone = core->status();
      if (gone && ec == errc::no_such_region) ec = gone;
      return {};
    }
    std::optional<described_body> said = decode_described(*answer);
    if (!said) {
      ec = errc::protocol_error;
      return {};
    }
    {
      const std::lock_guard guard(core_access::core(worker_)->lock());
      core->measured(said->described.size, said->described.generation);
    }
    const clock::time_point answered = now();
    if (said->described.size != known || answered >= until) return std::move(said->described);
    if (answered - asked < std::min(part, rest)) {
      core_access::core(worker_)->wait_until(std::min(after(answered, rest), until),
                                             [&] { return static_cast<bool>(core->status()); });
    }
  }
}

void client_core::remove(std::string_view name, const io_options& options, std::string& what,
                         std::error_code& ec) {
  check_name(name, what, ec);
  if (ec) return;
  what = attempt("removing", name);
  check_stores(what, ec);
  if (ec) return;
  ask(control_type::remove, control_type::done, remove_body{std::string(name)},
      deadline_after(options), what, ec);
  explain_bad_name(name, what, ec);
}

void client_core::rename(std::string_view from, std::string_view to, const io_options& options,
                         std::string& what, std::error_code& ec) {
  check_name(from, what, ec);
  if (!ec) check_name(to, what, ec);
  if (ec) return;
  what = attempt("renaming", from) + " to \"" + std::string(to) + "\"";
  check_stores(what, ec);
  if (ec) return;
  ask(control_type::rename, control_type::done,
      rename_body{std::string(from), std::string(to), false}, deadline_after(options), what, ec);
  explain_bad_name(complaint_about_path(from).empty() ? to : from, what, ec);
}

void client_core::resize(remote_region& file, std::uint64_t size, const io_options& options,
                         std::string& what, std::error_code& ec) {
  what = "resizing " + file.description();
  const std::shared_ptr<remote_region_core> core = flushed(file, options, what, ec);
  if (!core) return;
  ask(control_type::resize, control_type::done,
      resize_body{std::string(), size, core->descriptor().region}, deadline_after(options), what,
      ec);
  if (ec) return;
  const std::lock_guard guard(core_access::core(worker_)->lock());
  core->resized(size);
}

void client_core::resize(std::string_view name, std::uint64_t size, const io_options& options,
                         std::string& what, std::error_code& ec) {
  check_name(name, what, ec);
  if (ec) return;
  what = attempt("resizing", name);
  check_stores(what, ec);
  if (ec) return;
  ask(control_type::resize, control_type::done, resize_body{std::string(name), size},
      deadline_after(options), what, ec);
  explain_bad_name(name, what, ec);
}

}  // namespace ucx::detail
