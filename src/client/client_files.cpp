#include "client/client_files.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "base/error_text.hpp"
#include "base/store_path.hpp"
#include "client/client_call.hpp"
#include "client/client_questions.hpp"
#include "client/client_regions.hpp"
#include "client/file_turns.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "wire/control_message.hpp"
#include "worker/failed_operation.hpp"
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

/// A change of names: the answer says whether it was made.
template <class Body>
request start_change(client_questions& by, const io_options& options, std::string doing,
                     control_type type, Body body, const std::function<failure(failure)>& explain) {
  const auto take = [](std::span<const std::byte>) { return result<void>(); };
  return client_call::start(by, options, std::move(doing),
                            std::make_unique<one_question<Body>>(type, control_type::done,
                                                                 std::move(body), take, explain));
}

/// Asks about a file that this client has open. The core alone is kept: it ends with its
/// connection.
class file_conversation : public conversation {
 public:
  file_conversation(client_questions& questions, const std::shared_ptr<remote_region_core>& core,
                    std::string doing)
      : questions_(questions), core_(core->shared_from_this()), doing_(std::move(doing)) {}

  void not_begun(std::error_code why) noexcept override { core_->extent().spoil(why); }
  /// The server does not know a withdrawn region any more; it has told of the withdrawal before.
  failure explain(failure why, std::span<const std::byte>) const override {
    const std::error_code gone = core_->status();
    if (gone && why.code == errc::no_such_region) why.code = gone;
    return why;
  }

 protected:
  /// Returns what is wrong with the file; nothing, so that there may be another question.
  result<bool> unless_gone() const {
    if (const std::error_code gone = core_->status()) return failure{gone, doing_};
    return false;
  }
  failure damaged() const { return {errc::protocol_error, doing_}; }

  client_questions& questions_;
  const std::shared_ptr<remote_region_core> core_;
  const std::string doing_;
};

/// Closes the region, if that is asked for, in a round: that may end what UCX has.
class committing final : public file_conversation {
 public:
  committing(client_questions& questions, const std::shared_ptr<remote_region_core>& core,
             std::string doing, const commit_options& how, entry& described)
      : file_conversation(questions, core, std::move(doing)), how_(how), described_(described) {}

  void ask(client_session& session, client_session::question& asked) override {
    asked.answer_type = control_type::described;
    session.ask(asked, control_type::commit,
                commit_body{core_->descriptor().region, how_.durable, how_.close});
  }
  bool takes_in_round() const noexcept override { return how_.close; }
  result<bool> take(std::span<const std::byte> answer) override {
    std::optional<described_body> said = decode_described(answer);
    if (!said) return damaged();
    described_ = std::move(said->described);
    if (how_.close) core_->close();
    return true;
  }

 private:
  const commit_options how_;
  entry& described_;
};

/// Asks until the length is another one.
class measuring final : public file_conversation {
 public:
  measuring(client_questions& questions, const std::shared_ptr<remote_region_core>& core,
            std::string doing, std::uint64_t known, std::chrono::nanoseconds wait, entry& described)
      : file_conversation(questions, core, std::move(doing)),
        known_(known),
        until_(after(questions.now(), std::max(wait, wait.zero()))),
        described_(described) {}

  std::optional<clock::duration> extra_time() override {
    // A question that waits for longer would only keep the server from noticing who is gone.
    constexpr clock::duration longest_question = std::chrono::seconds(30);
    asked_at_ = questions_.now();
    part_ = std::clamp(until_ - asked_at_, clock::duration::zero(), longest_question);
    return part_;
  }
  void ask(client_session& session, client_session::question& asked) override {
    asked.answer_type = control_type::described;
    const measure_body body{core_->descriptor().region, known_,
                            static_cast<std::uint64_t>(std::chrono::nanoseconds(part_).count())};
    session.ask(asked, control_type::measure, body);
  }
  result<bool> take(std::span<const std::byte> answer) override {
    std::optional<described_body> said = decode_described(answer);
    if (!said) return damaged();
    core_->extent().measured(said->described.size, said->described.generation);
    const clock::time_point answered = questions_.now();
    if (said->described.size != known_ || answered >= until_) {
      described_ = std::move(said->described);
      return true;
    }
    // A server that does not wait is not asked again at once.
    constexpr clock::duration rest = std::chrono::milliseconds(50);
    pause_ = answered - asked_at_ < std::min(part_, rest) ? std::min(rest, until_ - answered)
                                                          : clock::duration::zero();
    return unless_gone();
  }
  clock::duration pause() const noexcept override { return pause_; }

 private:
  const std::uint64_t known_;
  const clock::time_point until_;
  entry& described_;
  clock::time_point asked_at_;
  clock::duration part_ = {};
  clock::duration pause_ = {};
};

/// Asks for the hashes of some chunks at a time. `found` gets all at the end.
class hashing final : public file_conversation {
 public:
  hashing(client_questions& questions, const std::shared_ptr<remote_region_core>& core,
          std::string doing, const digest_range& wanted, std::vector<content_digest>& found)
      : file_conversation(questions, core, std::move(doing)),
        chunk_(wanted.chunk),
        offset_(wanted.offset),
        left_(wanted.length),
        found_(found) {}

  std::optional<clock::duration> extra_time() override {
    length_ = next_question(left_, chunk_);
    return std::chrono::seconds(
        static_cast<std::int64_t>(std::min(length_ / slowest, longest_reading)));
  }
  void ask(client_session& session, client_session::question& asked) override {
    asked.answer_type = control_type::digested;
    session.ask(asked, control_type::digest,
                digest_body{core_->descriptor().region, offset_, length_, chunk_});
  }
  result<bool> take(std::span<const std::byte> answer) override {
    std::optional<digested_body> said = decode_digested(answer);
    if (!said || said->digests.size() != (length_ - 1) / chunk_ + 1) return damaged();
    all_.insert(all_.end(), said->digests.begin(), said->digests.end());
    offset_ += length_;
    left_ -= length_;
    if (left_ > 0) return unless_gone();
    found_ = std::move(all_);
    return true;
  }

 private:
  const std::uint64_t chunk_;
  std::uint64_t offset_;
  std::uint64_t left_;
  std::uint64_t length_ = 0;  // of the question
  std::vector<content_digest>& found_;
  std::vector<content_digest> all_;
};

class resizing final : public file_conversation {
 public:
  resizing(client_questions& questions, const std::shared_ptr<remote_region_core>& core,
           std::string doing, std::uint64_t size, std::shared_ptr<file_turn> turn)
      : file_conversation(questions, core, std::move(doing)), size_(size), turn_(std::move(turn)) {}
  ~resizing() override {
    if (turn_) turn_->leave();
  }

  void ask(client_session& session, client_session::question& asked) override {
    if (turn_) turn_->asked();
    asked.answer_type = control_type::done;
    session.ask(asked, control_type::resize,
                resize_body{std::string(), size_, core_->descriptor().region});
  }
  result<bool> take(std::span<const std::byte>) override {
    core_->extent().resized(size_);
    return true;
  }

 private:
  const std::uint64_t size_;
  const std::shared_ptr<file_turn> turn_;
};

}  // namespace

request client_files::start_create(std::string_view name, const create_options& how,
                                   remote_region& made, const io_options& options) {
  auto doing = questions_.server().attempt_at_store("creating", name);
  if (!doing) return failed_request(std::move(doing.why()));
  create_body body;
  body.name = std::string(name);
  body.wanted = how.readable ? access::read_write : access::write;
  body.mode = static_cast<create_mode>(how.mode);
  const auto explain = [name = body.name](failure why) {
    why = explained(std::move(why), name);
    if (why.code == errc::no_such_name) why.text += ", which is in no writable store of the server";
    if (why.code == errc::not_supported) why.text += published_alone;
    return why;
  };
  return regions_.start_making(control_type::create, std::move(body), *std::move(doing), made,
                               explain, options);
}

/// Returns what is behind a file that this client has open.
result<std::shared_ptr<remote_region_core>> client_files::usable(const remote_region& file,
                                                                 const std::string& doing) const {
  if (questions_.worker().is_inherited()) return failure{errc::forked_child, doing};
  auto core = regions_.ours(file, doing);
  if (!core) return core;
  const std::lock_guard guard(questions_.worker().lock());
  if (const std::error_code gone = (*core)->status()) return failure{gone, doing};
  return core;
}

/// Likewise, of a file of a store, of which no write is missing.
result<std::shared_ptr<remote_region_core>> client_files::of_store(const remote_region& file,
                                                                   const std::string& doing) const {
  if (questions_.worker().is_inherited()) return failure{errc::forked_child, doing};
  auto core = regions_.ours(file, doing);
  if (!core) return core;
  if (const auto fit = questions_.server().check_stores(doing); !fit) return fit.why();
  const std::lock_guard guard(questions_.worker().lock());
  if (const std::error_code spoiled = (*core)->extent().spoiled()) return failure{spoiled, doing};
  return core;
}

/// Asks when everything that was written through the file has arrived. A failure of that is told
/// once: a second attempt would find nothing that waits, and give a name to what has holes.
request client_files::start_behind_writes(remote_region& file, std::string doing,
                                          std::unique_ptr<conversation> what,
                                          const io_options& options) {
  // The call gives it up in time: what is not known yet does not spoil the file.
  request flushed = file.start_flush({.timeout = std::chrono::nanoseconds::max()});
  return client_call::start(questions_, options, std::move(doing), std::move(what),
                            std::move(flushed));
}

request client_files::start_commit(remote_region& file, const commit_options& how, entry& described,
                                   const io_options& options) {
  std::string doing = "committing " + file.description();
  auto core = of_store(file, doing);
  if (!core) return failed_request(std::move(core.why()));
  auto asks = std::make_unique<committing>(questions_, *core, doing, how, described);
  return start_behind_writes(file, std::move(doing), std::move(asks), options);
}

request client_files::start_measure(remote_region& file, std::uint64_t known,
                                    std::chrono::nanoseconds wait, entry& described,
                                    const io_options& options) {
  std::string doing = "measuring " + file.description();
  auto core = usable(file, doing);
  if (!core) return failed_request(std::move(core.why()));
  if (!(*core)->extent().measurable()) {
    return failed_request(errc::not_supported, doing + ": it is memory, or the server (ucxio " +
                                                   questions_.server().version() +
                                                   ") does not tell");
  }
  auto asks = std::make_unique<measuring>(questions_, *core, doing, known, wait, described);
  return client_call::start(questions_, options, std::move(doing), std::move(asks));
}

request client_files::start_digest(remote_region& file, const digest_range& wanted,
                                   std::vector<content_digest>& found, const io_options& options) {
  std::string doing = "hashing " + file.description();
  auto core = usable(file, doing);
  if (!core) return failed_request(std::move(core.why()));
  if (!questions_.server().knows(control_feature::digests)) {
    return failed_request(
        errc::not_supported,
        doing + ": the server (ucxio " + questions_.server().version() + ") does not hash");
  }
  if (wanted.chunk == 0) return failed_request(errc::invalid_argument, std::move(doing));
  if (wanted.length == 0) {
    found.clear();
    return {};
  }
  auto asks = std::make_unique<hashing>(questions_, *core, doing, wanted, found);
  return client_call::start(questions_, options, std::move(doing), std::move(asks));
}

request client_files::start_resize_in_turn(remote_region& file, std::uint64_t size,
                                           const io_options& options,
                                           std::shared_ptr<file_turn> turn) {
  std::string doing = "resizing " + file.description();
  auto core = of_store(file, doing);
  if (!core) return failed_request(std::move(core.why()));
  auto asks = std::make_unique<resizing>(questions_, *core, doing, size, std::move(turn));
  return start_behind_writes(file, std::move(doing), std::move(asks), options);
}

request client_files::start_make_directory(std::string_view name, const io_options& options) {
  auto doing = questions_.server().attempt_at_store("making the directory", name);
  if (!doing) return failed_request(std::move(doing.why()));
  if (!questions_.server().knows(control_feature::directories)) {
    return failed_request(errc::not_supported, *doing + ": the server (ucxio " +
                                                   questions_.server().version() +
                                                   ") makes none by themselves");
  }
  const auto explain = [name = std::string(name)](failure why) {
    return explained(std::move(why), name);
  };
  return start_change(questions_, options, *std::move(doing), control_type::make_directory,
                      make_directory_body{std::string(name)}, explain);
}

request client_files::start_remove(std::string_view name, const io_options& options) {
  auto doing = questions_.server().attempt_at_store("removing", name);
  if (!doing) return failed_request(std::move(doing.why()));
  const auto explain = [name = std::string(name)](failure why) {
    why = explained(std::move(why), name);
    if (why.code == errc::already_exists) why.text += ", a directory that is not empty";
    if (why.code == errc::not_supported) why.text += published_alone;
    return why;
  };
  return start_change(questions_, options, *std::move(doing), control_type::remove,
                      remove_body{std::string(name)}, explain);
}

request client_files::start_rename(std::string_view from, std::string_view to,
                                   const io_options& options) {
  for (const std::string_view name : {from, to}) {
    if (auto fit = known_server::check_name(name); !fit)
      return failed_request(std::move(fit.why()));
  }
  auto doing = questions_.server().check_stores(questions_.server().attempt("renaming", from) +
                                                " to \"" + std::string(to) + "\"");
  if (!doing) return failed_request(std::move(doing.why()));
  const auto explain = [at_fault = std::string(complaint_about_path(from).empty() ? to : from)](
                           failure why) { return explained(std::move(why), at_fault); };
  return start_change(questions_, options, *std::move(doing), control_type::rename,
                      rename_body{std::string(from), std::string(to), false}, explain);
}

request client_files::start_resize(std::string_view name, std::uint64_t size,
                                   const io_options& options) {
  auto doing = questions_.server().attempt_at_store("resizing", name);
  if (!doing) return failed_request(std::move(doing.why()));
  const auto explain = [name = std::string(name)](failure why) {
    return explained(std::move(why), name);
  };
  return start_change(questions_, options, *std::move(doing), control_type::resize,
                      resize_body{std::string(name), size}, explain);
}

result<remote_region> client_files::create(std::string_view name, const create_options& how,
                                           const io_options& options) {
  remote_region made;
  const auto done = questions_.wait_for([&] { return start_create(name, how, made, options); });
  if (!done) return done.why();
  return made;
}

result<entry> client_files::commit(remote_region& file, const commit_options& how,
                                   const io_options& options) {
  entry described;
  const auto done =
      questions_.wait_for([&] { return start_commit(file, how, described, options); });
  if (!done) return done.why();
  return described;
}

result<entry> client_files::measure(remote_region& file, std::uint64_t known,
                                    std::chrono::nanoseconds wait, const io_options& options) {
  entry described;
  const auto done =
      questions_.wait_for([&] { return start_measure(file, known, wait, described, options); });
  if (!done) return done.why();
  return described;
}

result<std::vector<content_digest>> client_files::digest(remote_region& file,
                                                         const digest_range& wanted,
                                                         const io_options& options) {
  std::vector<content_digest> found;
  const auto done = questions_.wait_for([&] { return start_digest(file, wanted, found, options); });
  if (!done) return done.why();
  return found;
}

result<void> client_files::resize_file(remote_region& file, std::uint64_t size,
                                       const io_options& options) {
  return questions_.wait_for([&] { return start_resize_file(file, size, options); });
}

result<void> client_files::make_directory(std::string_view name, const io_options& options) {
  return questions_.wait_for([&] { return start_make_directory(name, options); });
}

result<void> client_files::remove(std::string_view name, const io_options& options) {
  return questions_.wait_for([&] { return start_remove(name, options); });
}

result<void> client_files::rename(std::string_view from, std::string_view to,
                                  const io_options& options) {
  return questions_.wait_for([&] { return start_rename(from, to, options); });
}

result<void> client_files::resize(std::string_view name, std::uint64_t size,
                                  const io_options& options) {
  return questions_.wait_for([&] { return start_resize(name, size, options); });
}

}  // namespace ucx::detail
