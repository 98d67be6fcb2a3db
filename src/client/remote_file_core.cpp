#include "client/remote_file_core.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "client/client_core.hpp"
#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void remote_file_core::extent::add(extent other) noexcept {
  if (other.empty()) return;
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
}

void remote_file_core::extent::remove(extent other) noexcept {
  if (other.begin <= begin && other.end > begin) begin = other.end;
  if (other.begin < end && other.end >= end) end = other.begin;
  if (empty()) *this = {};
}

remote_file_core::remote_file_core(const std::shared_ptr<client_core>& through,
                                   const remote_file_options& options)
    : through_(core_access::make_client(through)),
      each_{.timeout = options.timeout, .verify = options.verify} {}

remote_file_core::~remote_file_core() {
  const auto& tracker = core_access::tracker(region_);
  if (!tracker || worker().is_inherited()) return;
  const std::lock_guard guard(worker().lock());
  tracker->set_observer(nullptr);
}

client_core& remote_file_core::core() const noexcept { return *core_access::core(through_); }
worker_core& remote_file_core::worker() const noexcept { return core().connection()->worker(); }

result<void> remote_file_core::may_wait() const {
  if (worker().is_inherited() || !worker().in_handler()) return {};
  return failure{errc::would_deadlock, "waiting for " + description() + " in a handler"};
}

request remote_file_core::start_open(const std::shared_ptr<client_core>& through,
                                     std::string_view name, const remote_file_options& options,
                                     std::function<void(std::shared_ptr<remote_file_core>)> then) {
  if (options.create && !includes(options.wanted, access::write)) {
    return failed_request(errc::invalid_argument, "making a file that is not to be written");
  }
  auto made = std::make_shared<remote_file_core>(through, options);
  const step opening{
      .begin = [made, name = std::string(name), options]() -> result<request> {
        if (!options.create) {
          return made->core().regions().start_open(name, options.wanted, made->region_,
                                                   made->each_);
        }
        const create_options how{.mode = *options.create,
                                 .readable = includes(options.wanted, access::read)};
        return made->core().files().start_create(name, how, made->region_, made->each_);
      },
      .end =
          [made, how = options.create, then = std::move(then)](const result<void>& outcome) {
            if (!outcome) return;
            made->opened(how);
            then(made);
          }};
  return made->start("opening " + std::string(name), {opening});
}

void remote_file_core::opened(std::optional<creation> how) {
  grows_ = region_.max_size() > region_.size();
  is_new_ = how && *how != creation::append && grows_;
  core_access::tracker(region_)->set_observer(this);
}

request remote_file_core::start(std::string doing, std::vector<step> steps,
                                std::function<void()> at_end) {
  return serial_operation::start(*core().connection(), each_, std::move(doing), std::move(steps),
                                 std::move(at_end));
}

request remote_file_core::start_in_turn(file_change what, std::string doing,
                                        std::vector<step> steps) {
  return start_in_turn(std::make_shared<file_turn>(turns_, what), std::move(doing),
                       std::move(steps));
}

/// Where the server was asked for what others have to wait for, its answer ends the turn. `end` is
/// told how the wait for the turn has ended.
request remote_file_core::start_in_turn(const std::shared_ptr<file_turn>& turn, std::string doing,
                                        std::vector<step> steps,
                                        std::function<void(const result<void>&)> end) {
  const auto wait = [self = shared_from_this(), turn]() -> result<request> {
    return turn->wait(self->worker());
  };
  steps.insert(steps.begin(), step{.begin = wait, .end = std::move(end)});
  return start(std::move(doing), std::move(steps), [turn] {
    if (!turn->is_asked()) turn->leave();
  });
}

/// Those of the writes that were started before.
remote_file_core::step remote_file_core::flushing() {
  return {.begin = [self = shared_from_this()]() -> result<request> {
    return self->region_.start_flush(self->each_);
  }};
}

void remote_file_core::confirmed(std::uint64_t number, std::uint64_t offset,
                                 std::uint64_t length) noexcept {
  if (number >= written_again_from_) lost_.remove({offset, offset + length});
}

void remote_file_core::failed(std::uint64_t number, std::uint64_t offset, std::uint64_t length,
                              std::error_code why, const std::string& what) noexcept {
  note_lost({offset, offset + length}, number + 1, why, what);
}

/// Writes with lower numbers than `next` were started before the one that is lost.
void remote_file_core::note_lost(extent where, std::uint64_t next, std::error_code why,
                                 const std::string& text) noexcept {
  if (lost_.empty()) why_lost_ = {why, if_there_is_memory([&] { return text; })};
  lost_.add(where);
  written_again_from_ = std::max(written_again_from_, next);
}

void remote_file_core::note_not_begun(extent where, std::error_code why,
                                      const std::string& text) noexcept {
  note_lost(where, core_access::tracker(region_)->last_number(), why, text);
}

request remote_file_core::start_read(std::uint64_t offset, std::span<std::byte> into,
                                     std::size_t& count) {
  if (worker().is_inherited()) return failed_request(errc::forked_child, "reading a file");
  const auto read = [self = shared_from_this(), offset, into, &count]() -> result<request> {
    const std::uint64_t end = self->region_.size();
    count =
        static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end - std::min(offset, end)));
    // Where nothing is read the rights are looked at all the same.
    return self->region_.start_read_at(count > 0 ? offset : 0, into.first(count), self->each_);
  };
  const std::lock_guard guard(worker().lock());
  // A read may overtake a write on its way to the disk.
  if (turns_->are_taken(file_change::none) || region_.first_unconfirmed()) {
    return start_in_turn(file_change::none, "reading " + description(), {flushing(), {read}});
  }
  return *read();
}

remote_file_core::extent remote_file_core::extent::of(std::uint64_t offset, std::size_t size) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - offset;
  return {offset, offset + std::min<std::uint64_t>(size, most)};
}

request remote_file_core::start_write(std::uint64_t offset, std::span<const std::byte> from) {
  if (worker().is_inherited()) return failed_request(errc::forked_child, "writing a file");
  const std::lock_guard guard(worker().lock());
  if (!turns_->are_taken(file_change::none)) return write_now(offset, from);
  const auto write = [self = shared_from_this(), offset, from]() -> result<request> {
    return self->write_now(offset, from);
  };
  const auto end = [self = shared_from_this(), offset, from](const result<void>& turn_came) {
    if (turn_came) return;
    const failure& why = turn_came.why();
    self->note_not_begun(extent::of(offset, from.size()), why.code, why.text);
  };
  return start_in_turn(std::make_shared<file_turn>(turns_, file_change::none),
                       "writing " + description(), {{write}}, end);
}

request remote_file_core::write_now(std::uint64_t offset, std::span<const std::byte> from) {
  const extent written = extent::of(offset, from.size());
  request writing;
  if (auto room = check_room(offset, from.size()); !room) {
    writing = failed_request(std::move(room.why()));
  } else {
    keep_order(written);
    writing = region_.start_write_at(offset, from, each_);
  }
  // The tracker has no write that was not begun.
  if (writing.done() && writing.error()) {
    note_not_begun(written, writing.error(),
                   if_there_is_memory([&] { return writing.description(); }));
  }
  return writing;
}

/// Messages to one owner take effect in their order, what UCX writes does not.
void remote_file_core::keep_order(extent written) noexcept {
  if (region_.transfer_method() != transfer_method::rma) return;
  if (unordered_.overlaps(written)) {
    core().connection()->operations().fence();
    unordered_ = {};
  }
  unordered_.add(written);
}

request remote_file_core::start_flush() {
  if (worker().is_inherited()) return failed_request(errc::forked_child, "syncing a file");
  const std::lock_guard guard(worker().lock());
  if (!turns_->are_taken(file_change::none)) return region_.start_flush(each_);
  return start_in_turn(file_change::none, "syncing " + description(), {flushing()});
}

request remote_file_core::start_resize(std::uint64_t size) {
  if (!grows_) {
    if (size == region_.size()) return {};
    return failed_request(errc::not_supported,
                          "resizing " + description() + ", whose size is fixed");
  }
  const auto turn = std::make_shared<file_turn>(turns_, file_change::size);
  const step resizing{.begin = [self = shared_from_this(), turn, size]() -> result<request> {
                        // It has the server's answer, or goes with the connection.
                        return self->core().files().start_resize_in_turn(
                            self->region_, size, {.timeout = std::chrono::nanoseconds::max()},
                            turn);
                      },
                      .end =
                          [self = shared_from_this(), size](const result<void>& outcome) {
                            if (outcome)
                              self->lost_.remove({size, std::numeric_limits<std::uint64_t>::max()});
                          },
                      .goes_on = [turn] { return turn->is_asked(); }};
  return start_in_turn(turn, "resizing " + description(), {flushing(), resizing});
}

request remote_file_core::start_commit(bool durable, bool last) {
  std::vector<step> steps{flushing()};
  if (grows_) {
    auto described = std::make_shared<entry>();
    steps.push_back(
        {.begin = [self = shared_from_this(), durable, last, described]() -> result<request> {
           if (auto whole = self->check_whole(); !whole) return std::move(whole.why());
           return self->core().files().start_commit(
               self->region_, {.durable = durable, .close = last}, *described, self->each_);
         },
         .end =
             [self = shared_from_this(), described](const result<void>& outcome) {
               if (outcome) self->is_named_ = true;
             }});
  }
  return start_in_turn(file_change::name, "committing " + description(), std::move(steps));
}

result<void> remote_file_core::check_room(std::uint64_t offset, std::size_t size) const {
  const std::uint64_t end = region_.max_size();
  const bool granted = includes(region_.granted(), access::write);
  if (!granted || (offset <= end && size <= end - offset)) return {};
  return failure{errc::no_space, "writing " + std::to_string(size) + " bytes at offset " +
                                     std::to_string(offset) + " of " + description() +
                                     ", which can not be longer than " + std::to_string(end)};
}

/// Fails where a file would get a name that lacks bytes.
result<void> remote_file_core::check_whole() const {
  if (!is_new_ || is_named_ || lost_.empty()) return {};
  return failure{why_lost_.code, "giving " + description() +
                                     " a name, which lacks bytes from offset " +
                                     std::to_string(lost_.begin) + " on: " + why_lost_.text};
}

}  // namespace ucx::detail
