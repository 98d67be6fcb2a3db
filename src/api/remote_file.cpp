#include "ucx/remote_file.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "client/client_cache.hpp"
#include "client/client_core.hpp"
#include "client/retry_once_on_reset.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "worker/core_access.hpp"
#include "worker/outcome_of.hpp"

namespace ucx {
namespace {

using detail::client_core;
using detail::core_access;
using detail::failure;
using detail::outcome_of;
using detail::result;

}  // namespace

struct remote_file::state {
  client through;
  remote_region region;
  io_options each;  // call
  bool grows = false;
  bool is_new = false;
  bool is_named = false;
  int exceptions = std::uncaught_exceptions();

  /// Where bytes were written; from `begin` to `end`, and not known of each between them.
  struct extent {
    std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t end = 0;

    bool empty() const noexcept { return begin >= end; }
    void add(extent other) noexcept {
      if (other.empty()) return;
      begin = std::min(begin, other.begin);
      end = std::max(end, other.end);
    }
    /// Takes off what `other` has of either end.
    void remove(extent other) noexcept {
      if (other.begin <= begin && other.end > begin) begin = other.end;
      if (other.begin < end && other.end >= end) end = other.begin;
      if (empty()) *this = {};
    }
  };
  extent unsynced = {};
  extent lost = {};  // until it was written again: what has holes gets no name
  failure why_lost = {};

  /// `connect` gives the client.
  template <class Connect>
  static result<std::shared_ptr<state>> open(Connect connect, std::string_view name,
                                             const remote_file_options& options) {
    if (options.create && !includes(options.wanted, access::write)) {
      return failure{errc::invalid_argument, "making a file that is not to be written"};
    }
    return detail::retry_once_on_reset([&] { return open_once(connect(), name, options); });
  }

  static result<std::shared_ptr<state>> open(const url& name, const remote_file_options& options) {
    if (!name.name().empty()) {
      return open([&] { return detail::shared_client(name); }, name.name(), options);
    }
    return failure{errc::bad_url, "a server is not a file: its URL lacks a name"};
  }

  static result<std::shared_ptr<state>> open(client& from, std::string_view name,
                                             const remote_file_options& options) {
    using found = result<std::shared_ptr<client_core>>;
    const auto core = [&]() -> found {
      if (core_access::core(from)) return core_access::core(from);
      return failure{errc::closed, "using a client that was moved from, or not made"};
    };
    return open(core, name, options);
  }

  static result<std::shared_ptr<state>> open_once(result<std::shared_ptr<client_core>> through,
                                                  std::string_view name,
                                                  const remote_file_options& options) {
    if (!through) return through.why();
    const io_options each{options.timeout, options.verify};
    const create_options made{.mode = options.create.value_or(creation::append),
                              .readable = includes(options.wanted, access::read)};
    auto region = options.create ? (*through)->files().create(name, made, each)
                                 : (*through)->regions().open(name, options.wanted, each);
    if (!region) return region.why();
    const bool grows = region->max_size() > region->size();
    return std::make_shared<state>(
        state{.through = core_access::make_client(*std::move(through)),
              .region = *std::move(region),
              .each = each,
              .grows = grows,
              .is_new = options.create && *options.create != creation::append && grows});
  }

  /// Has a file that is open do what is `doing`. By value: a handler may destroy the file
  /// meanwhile.
  template <class Call, class... Args>
  static std::invoke_result_t<Call, state&, Args...> ask(std::shared_ptr<state> asked,
                                                         const char* doing, Call call,
                                                         Args... args) {
    if (!asked) return failure{errc::closed, std::string(doing) + " a file that is not open"};
    return (*asked.*call)(args...);
  }

  void note_lost(extent where, const failure& why) {
    if (lost.empty()) why_lost = why;
    lost.add(where);
  }

  result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) {
    // A read may overtake a write on its way to the disk.
    if (region.first_unconfirmed()) {
      if (const auto flushed = flush(); !flushed) return flushed.why();
    }
    const std::uint64_t end = region.size();
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end - std::min(offset, end)));
    // Where nothing is read the rights are looked at all the same.
    const auto done =
        outcome_of(region.start_read_at(count > 0 ? offset : 0, into.first(count), each));
    if (!done) return done.why();
    return count;
  }

  result<void> write(std::uint64_t offset, std::span<const std::byte> from) {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - offset;
    const extent written{offset, offset + std::min<std::uint64_t>(from.size(), most)};
    auto done = check_room(offset, from.size());
    if (done) done = outcome_of(region.start_write_at(offset, from, each));
    if (!done) {
      note_lost(written, done.why());
      return done;
    }
    unsynced.add(written);
    lost.remove(written);
    return done;
  }

  result<void> flush() {
    auto done = outcome_of(region.start_flush(each));
    const extent flushed = std::exchange(unsynced, {});
    if (!done) note_lost(flushed, done.why());
    return done;
  }

  result<void> resize(std::uint64_t size) {
    if (!grows) {
      if (size == region.size()) return {};
      return failure{errc::not_supported,
                     "resizing " + region.description() + ", whose size is fixed"};
    }
    if (auto flushed = flush(); !flushed) return flushed;
    auto done = core_access::core(through)->files().resize(region, size, each);
    if (done) lost.remove({size, std::numeric_limits<std::uint64_t>::max()});
    return done;
  }

  /// Gives the file its name, if it is one that grows.
  result<void> commit(bool durable, bool last) {
    if (auto flushed = flush(); !flushed || !grows) return flushed;
    if (auto whole = check_whole(); !whole) return whole;
    const auto done = core_access::core(through)->files().commit(region, durable, last, each);
    if (!done) return done.why();
    is_named = true;
    if (last) region.close();
    return {};
  }

  result<void> check_room(std::uint64_t offset, std::size_t size) const {
    const std::uint64_t end = region.max_size();
    const bool granted = includes(region.granted(), access::write);
    if (!granted || (offset <= end && size <= end - offset)) return {};
    return failure{errc::no_space, "writing " + std::to_string(size) + " bytes at offset " +
                                       std::to_string(offset) + " of " + region.description() +
                                       ", which can not be longer than " + std::to_string(end)};
  }

  /// Fails where a file would get a name that lacks bytes.
  result<void> check_whole() const {
    if (!is_new || is_named || lost.empty()) return {};
    return failure{why_lost.code, "giving " + region.description() +
                                      " a name, which lacks bytes from offset " +
                                      std::to_string(lost.begin) + " on: " + why_lost.text};
  }
};

remote_file::remote_file(const url& name, const remote_file_options& options, std::error_code& ec)
    : state_(state::open(name, options).or_end(ec)) {}

remote_file::remote_file(client& from, std::string_view name, const remote_file_options& options,
                         std::error_code& ec)
    : state_(state::open(from, name, options).or_end(ec)) {}

remote_file::remote_file(remote_file&& other) noexcept = default;

remote_file& remote_file::operator=(remote_file&& other) noexcept {
  if (this != &other) {
    const remote_file closes = std::move(*this);
    state_ = std::move(other.state_);
  }
  return *this;
}

remote_file::~remote_file() {
  if (!state_ || (state_->is_new && std::uncaught_exceptions() > state_->exceptions)) return;
  try {
    std::error_code nobody_to_tell;
    close(nobody_to_tell);
  } catch (const std::exception&) {  // nor where there is no memory
  }
}

bool remote_file::is_open() const noexcept { return state_ != nullptr; }

std::uint64_t remote_file::size() const noexcept { return state_ ? state_->region.size() : 0; }

std::size_t remote_file::read_at(std::uint64_t offset, std::span<std::byte> into,
                                 std::error_code& ec) {
  return state::ask(state_, "reading", &state::read, offset, into).or_end(ec);
}

void remote_file::write_at(std::uint64_t offset, std::span<const std::byte> from,
                           std::error_code& ec) {
  state::ask(state_, "writing", &state::write, offset, from).or_end(ec);
}

void remote_file::resize(std::uint64_t size, std::error_code& ec) {
  state::ask(state_, "resizing", &state::resize, size).or_end(ec);
}

void remote_file::sync(std::error_code& ec) {
  state::ask(state_, "syncing", &state::flush).or_end(ec);
}

void remote_file::commit(std::error_code& ec) {
  state::ask(state_, "syncing", &state::commit, true, false).or_end(ec);
}

void remote_file::close(std::error_code& ec) {
  const std::shared_ptr<state> last = std::move(state_);
  const result<void> done = last ? last->commit(false, true) : result<void>();
  done.or_end(ec);
}

std::string remote_file::description() const {
  return state_ ? state_->region.description() : "a file that is not open";
}

}  // namespace ucx
