#include "ucx/remote_file.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "base/or_code.hpp"
#include "client/twice_where_lost.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/io_options.hpp"
#include "ucx/remote_region.hpp"

namespace ucx {

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
  std::error_code why_lost = {};
  std::string text_lost = {};

  void note_lost(extent where, const error& failed) {
    if (lost.empty()) {
      why_lost = failed.code();
      text_lost = failed.what();
    }
    lost.add(where);
  }

  void write(std::uint64_t offset, std::span<const std::byte> from) {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - offset;
    const extent written{offset, offset + std::min<std::uint64_t>(from.size(), most)};
    try {
      check_room(offset, from.size());
      region.write_at(offset, from, each);
    } catch (const error& failed) {
      note_lost(written, failed);
      throw;
    }
    unsynced.add(written);
    lost.remove(written);
  }

  void flush() {
    try {
      region.flush(each);
    } catch (const error& failed) {
      note_lost(std::exchange(unsynced, {}), failed);
      throw;
    }
    unsynced = {};
  }

  void check_room(std::uint64_t offset, std::size_t size) const {
    const std::uint64_t end = region.limit();
    const bool granted = includes(region.granted(), access::write);
    if (!granted || (offset <= end && size <= end - offset)) return;
    throw error(errc::no_space, "writing " + std::to_string(size) + " bytes at offset " +
                                    std::to_string(offset) + " of " + region.description() +
                                    ", which can not be longer than " + std::to_string(end));
  }

  /// Throws where a file would get a name that lacks bytes.
  void check_whole() const {
    if (!is_new || is_named || lost.empty()) return;
    throw error(why_lost, "giving " + region.description() +
                              " a name, which lacks bytes from offset " +
                              std::to_string(lost.begin) + " on: " + text_lost);
  }
};

namespace {

[[noreturn]] void throw_closed(const char* doing) {
  throw error(errc::closed, std::string(doing) + " a file that is not open");
}

}  // namespace

/// `connect` gives the client and the name.
template <class Connect>
void remote_file::open(Connect&& connect, const remote_file_options& options) {
  const io_options each{options.timeout, options.verify};
  const bool writes = includes(options.wanted, access::write);
  if (options.make && !writes) {
    throw error(errc::invalid_argument, "making a file that is not to be written");
  }
  detail::twice_where_lost([&] {
    auto [through, name] = connect();
    const create_options made{.mode = options.make.value_or(creation::append),
                              .readable = includes(options.wanted, access::read)};
    remote_region region =
        options.make ? through.create(name, made, each) : through.open(name, options.wanted, each);
    const bool grows = region.limit() > region.size();
    state_ = std::make_unique<state>(
        state{.through = std::move(through),
              .region = std::move(region),
              .each = each,
              .grows = grows,
              .is_new = options.make && *options.make != creation::append && grows});
  });
}

remote_file::remote_file(const url& name, const remote_file_options& options) {
  if (name.name().empty()) {
    throw error(errc::bad_url, "a server is not a file: its URL lacks a name");
  }
  open([&] { return std::pair(client::shared(name), std::string_view(name.name())); }, options);
}

remote_file::remote_file(const url& name, const remote_file_options& options, std::error_code& ec) {
  detail::or_code(ec, [&] { *this = remote_file(name, options); });
}

remote_file::remote_file(client& from, std::string_view name, const remote_file_options& options) {
  open([&] { return std::pair(from.share(), name); }, options);
}

remote_file::remote_file(client& from, std::string_view name, const remote_file_options& options,
                         std::error_code& ec) {
  detail::or_code(ec, [&] { *this = remote_file(from, name, options); });
}

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
    close();
  } catch (const std::exception&) {  // nobody to tell
  }
}

bool remote_file::is_open() const noexcept { return state_ != nullptr; }

std::uint64_t remote_file::size() const noexcept { return state_ ? state_->region.size() : 0; }

std::size_t remote_file::read_at(std::uint64_t offset, std::span<std::byte> into) {
  if (!state_) throw_closed("reading");
  remote_region& region = state_->region;
  // A read may overtake a write on its way to the disk.
  if (region.unconfirmed() > 0 || region.first_unconfirmed()) state_->flush();
  const std::uint64_t end = region.size();
  const std::size_t count =
      static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end - std::min(offset, end)));
  // Where nothing is read the rights are looked at all the same.
  region.read_at(count > 0 ? offset : 0, into.first(count), state_->each);
  return count;
}

std::size_t remote_file::read_at(std::uint64_t offset, std::span<std::byte> into,
                                 std::error_code& ec) {
  std::size_t count = 0;
  detail::or_code(ec, [&] { count = read_at(offset, into); });
  return count;
}

void remote_file::write_at(std::uint64_t offset, std::span<const std::byte> from) {
  if (!state_) throw_closed("writing");
  state_->write(offset, from);
}

void remote_file::write_at(std::uint64_t offset, std::span<const std::byte> from,
                           std::error_code& ec) {
  detail::or_code(ec, [&] { write_at(offset, from); });
}

void remote_file::resize(std::uint64_t size) {
  if (!state_) throw_closed("resizing");
  if (state_->grows) {
    state_->flush();
    state_->through.resize(state_->region, size, state_->each);
    state_->lost.remove({size, std::numeric_limits<std::uint64_t>::max()});
    return;
  }
  if (size != this->size()) {
    throw error(errc::not_supported, "resizing " + description() + ", whose size is fixed");
  }
}

void remote_file::resize(std::uint64_t size, std::error_code& ec) {
  detail::or_code(ec, [&] { resize(size); });
}

void remote_file::sync() {
  if (!state_) throw_closed("syncing");
  state_->flush();
}

void remote_file::sync(std::error_code& ec) {
  detail::or_code(ec, [&] { sync(); });
}

void remote_file::commit() {
  sync();
  if (!state_->grows) return;
  state_->check_whole();
  state_->through.commit(state_->region, true, state_->each);
  state_->is_named = true;
}

void remote_file::commit(std::error_code& ec) {
  detail::or_code(ec, [&] { commit(); });
}

void remote_file::close() {
  if (!state_) return;
  const std::unique_ptr<state> last = std::move(state_);
  last->flush();
  if (last->grows) {
    last->check_whole();
    last->through.commit(std::move(last->region), false, last->each);
  }
}

void remote_file::close(std::error_code& ec) {
  detail::or_code(ec, [&] { close(); });
}

std::string remote_file::description() const {
  return state_ ? state_->region.description() : "a file that is not open";
}

}  // namespace ucx
