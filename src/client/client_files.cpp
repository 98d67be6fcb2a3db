#include "client/client_files.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "base/error_text.hpp"
#include "base/store_path.hpp"
#include "client/client_questions.hpp"
#include "client/client_regions.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "wire/control_message.hpp"
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

constexpr const char* published_alone =
    ", which the server publishes by itself, and not in a writable store";

/// So much is asked for at a time, unless one hash is of more: the answer has its time-out.
constexpr std::uint64_t question_size = std::uint64_t{64} << 20U;

/// A disk that is slower than this makes a long question time out.
constexpr std::uint64_t slowest = std::uint64_t{16} << 20U;  // bytes in a second

/// How long that may be; what a server says of a size is no reason to wait for ever.
constexpr std::uint64_t longest_reading = std::uint64_t{24} * 60 * 60;  // seconds

/// Returns how many of `left` bytes go into one question.
std::uint64_t next_question(std::uint64_t left, std::uint64_t chunk) noexcept {
  const std::uint64_t chunks =
      std::clamp<std::uint64_t>(question_size / chunk, 1, digest_body::most_chunks);
  return left / chunk < chunks ? left : chunks * chunk;
}

}  // namespace

result<remote_region> client_files::create(std::string_view name, const create_options& how,
                                           const io_options& options) {
  const auto doing = questions_.server().attempt_at_store("creating", name);
  if (!doing) return doing.why();
  create_body body;
  body.name = std::string(name);
  body.wanted = how.readable ? access::read_write : access::write;
  body.mode = static_cast<create_mode>(how.mode);
  const auto answer = questions_.ask(control_type::create, control_type::opened, body,
                                     questions_.deadline_after(options), *doing);
  if (!answer) {
    failure why = explained(answer.why(), name);
    if (why.code == errc::no_such_name) why.text += ", which is in no writable store of the server";
    if (why.code == errc::not_supported) why.text += published_alone;
    return why;
  }
  return regions_.region_of(*answer, name, body.wanted, *doing);
}

/// Returns what is behind a file that this client has open, when everything that was written
/// through it has arrived.
result<std::shared_ptr<remote_region_core>> client_files::flushed(remote_region& file,
                                                                  const io_options& options,
                                                                  const std::string& doing) {
  auto core = regions_.ours(file, doing);
  if (!core) return core;
  if (const auto fit = questions_.server().check_stores(doing); !fit) return fit.why();
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

/// The server does not know a withdrawn region any more; it has told of the withdrawal before.
failure client_files::of_region(failure why, const remote_region_core& asked_about) const {
  const std::lock_guard guard(questions_.worker().lock());
  const std::error_code gone = asked_about.status();
  if (gone && why.code == errc::no_such_region) why.code = gone;
  return why;
}

result<entry> client_files::commit(remote_region& file, bool durable, bool released,
                                   const io_options& options) {
  const std::string doing = "committing " + file.description();
  const auto core = flushed(file, options, doing);
  if (!core) return core.why();
  const auto answer = questions_.ask(control_type::commit, control_type::described,
                                     commit_body{(*core)->descriptor().region, durable, released},
                                     questions_.deadline_after(options), doing);
  if (!answer) return answer.why();
  std::optional<described_body> described = decode_described(*answer);
  if (!described) return failure{errc::protocol_error, doing};
  return std::move(described->described);
}

result<entry> client_files::measure(remote_region& file, std::uint64_t known,
                                    std::chrono::nanoseconds wait, const io_options& options) {
  // A question that waits for longer would only keep the server from noticing who is gone.
  constexpr std::chrono::nanoseconds longest_question = std::chrono::seconds(30);
  const std::string doing = "measuring " + file.description();
  const auto region = regions_.ours(file, doing);
  if (!region) return region.why();
  remote_region_core& core = **region;
  if (!core.extent().measurable()) {
    return failure{errc::not_supported, doing + ": it is memory, or the server (ucxio " +
                                            questions_.server().version() + ") does not tell"};
  }
  // A server that does not wait is not asked again at once.
  constexpr std::chrono::nanoseconds rest = std::chrono::milliseconds(50);
  const clock::time_point until = after(questions_.now(), std::max(wait, wait.zero()));
  for (;;) {
    const clock::time_point asked = questions_.now();
    {
      const std::lock_guard guard(questions_.worker().lock());
      if (const std::error_code gone = core.status()) return failure{gone, doing};
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(until - questions_.now());
    const auto part = std::clamp(left, std::chrono::nanoseconds::zero(), longest_question);
    const measure_body body{core.descriptor().region, known,
                            static_cast<std::uint64_t>(part.count())};
    const auto answer = questions_.ask(control_type::measure, control_type::described, body,
                                       after(questions_.deadline_after(options), part), doing);
    if (!answer) return of_region(answer.why(), core);
    std::optional<described_body> said = decode_described(*answer);
    if (!said) return failure{errc::protocol_error, doing};
    {
      const std::lock_guard guard(questions_.worker().lock());
      core.extent().measured(said->described.size, said->described.generation);
    }
    const clock::time_point answered = questions_.now();
    if (said->described.size != known || answered >= until) return std::move(said->described);
    if (answered - asked < std::min(part, rest)) {
      questions_.worker().wait_until(std::min(after(answered, rest), until),
                                     [&] { return static_cast<bool>(core.status()); });
    }
  }
}

result<std::vector<content_digest>> client_files::digest(remote_region& file,
                                                         const digest_range& wanted,
                                                         const io_options& options) {
  const std::string doing = "hashing " + file.description();
  const auto region = regions_.ours(file, doing);
  if (!region) return region.why();
  const remote_region_core& core = **region;
  if (!questions_.server().knows(control_feature::digests)) {
    return failure{errc::not_supported, doing + ": the server (ucxio " +
                                            questions_.server().version() + ") does not hash"};
  }
  if (wanted.chunk == 0) return failure{errc::invalid_argument, doing};
  std::vector<content_digest> all;
  for (std::uint64_t offset = wanted.offset, left = wanted.length; left > 0;) {
    {
      const std::lock_guard guard(questions_.worker().lock());
      if (const std::error_code gone = core.status()) return failure{gone, doing};
    }
    const std::uint64_t length = next_question(left, wanted.chunk);
    const std::chrono::seconds reading(
        static_cast<std::int64_t>(std::min(length / slowest, longest_reading)));
    const auto answer =
        questions_.ask(control_type::digest, control_type::digested,
                       digest_body{core.descriptor().region, offset, length, wanted.chunk},
                       after(questions_.deadline_after(options), reading), doing);
    if (!answer) return of_region(answer.why(), core);
    std::optional<digested_body> said = decode_digested(*answer);
    if (!said || said->digests.size() != (length - 1) / wanted.chunk + 1) {
      return failure{errc::protocol_error, doing};
    }
    all.insert(all.end(), said->digests.begin(), said->digests.end());
    offset += length;
    left -= length;
  }
  return all;
}

result<void> client_files::remove(std::string_view name, const io_options& options) {
  const auto doing = questions_.server().attempt_at_store("removing", name);
  if (!doing) return doing.why();
  const auto answer =
      questions_.ask(control_type::remove, control_type::done, remove_body{std::string(name)},
                     questions_.deadline_after(options), *doing);
  if (answer) return {};
  failure why = explained(answer.why(), name);
  if (why.code == errc::already_exists) why.text += ", a directory that is not empty";
  if (why.code == errc::not_supported) why.text += published_alone;
  return why;
}

result<void> client_files::rename(std::string_view from, std::string_view to,
                                  const io_options& options) {
  for (const std::string_view name : {from, to}) {
    if (const auto fit = known_server::check_name(name); !fit) return fit.why();
  }
  const auto doing = questions_.server().check_stores(
      questions_.server().attempt("renaming", from) + " to \"" + std::string(to) + "\"");
  if (!doing) return doing.why();
  const auto answer = questions_.ask(control_type::rename, control_type::done,
                                     rename_body{std::string(from), std::string(to), false},
                                     questions_.deadline_after(options), *doing);
  if (!answer) return explained(answer.why(), complaint_about_path(from).empty() ? to : from);
  return {};
}

result<void> client_files::resize(remote_region& file, std::uint64_t size,
                                  const io_options& options) {
  const std::string doing = "resizing " + file.description();
  const auto core = flushed(file, options, doing);
  if (!core) return core.why();
  const auto answer = questions_.ask(control_type::resize, control_type::done,
                                     resize_body{std::string(), size, (*core)->descriptor().region},
                                     questions_.deadline_after(options), doing);
  if (!answer) return answer.why();
  const std::lock_guard guard(questions_.worker().lock());
  (*core)->extent().resized(size);
  return {};
}

result<void> client_files::resize_by_name(std::string_view name, std::uint64_t size,
                                          const io_options& options) {
  const auto doing = questions_.server().attempt_at_store("resizing", name);
  if (!doing) return doing.why();
  const auto answer =
      questions_.ask(control_type::resize, control_type::done, resize_body{std::string(name), size},
                     questions_.deadline_after(options), *doing);
  if (!answer) return explained(answer.why(), name);
  return {};
}

}  // namespace ucx::detail
