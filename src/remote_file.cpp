#include "ucx/remote_file.hpp"

#include <algorithm>
#include <exception>
#include <utility>

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
  int exceptions = std::uncaught_exceptions();
};

namespace {

/// Runs `call`, and tells by `ec` what it throws.
template <class Call>
void or_code(std::error_code& ec, Call&& call) {
  ec.clear();
  try {
    call();
  } catch (const error& failed) {
    ec = failed.code();
  }
}

[[noreturn]] void throw_closed(const char* doing) {
  throw error(errc::closed, std::string(doing) + " a file that is not open");
}

}  // namespace

/// `connect` gives the client and the name. Where a shared connection was lost before anybody
/// looked at it, the server may be there again.
template <class Connect>
void remote_file::open(Connect&& connect, const remote_file_options& options) {
  const io_options each{options.timeout, options.verify};
  const bool writes = includes(options.wanted, access::write);
  if (options.make && !writes) {
    throw error(errc::invalid_argument, "making a file that is not to be written");
  }
  const auto attempt = [&] {
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
  };
  try {
    return attempt();
  } catch (const error& failed) {
    if (failed.code() != std::errc::connection_reset) throw;
  }
  attempt();
}

remote_file::remote_file(const url& name, const remote_file_options& options) {
  if (name.name().empty()) {
    throw error(errc::bad_url, "a server is not a file: its URL lacks a name");
  }
  open([&] { return std::pair(client::shared(name), std::string_view(name.name())); }, options);
}

remote_file::remote_file(const url& name, const remote_file_options& options, std::error_code& ec) {
  or_code(ec, [&] { *this = remote_file(name, options); });
}

remote_file::remote_file(client& from, std::string_view name, const remote_file_options& options) {
  open([&] { return std::pair(from.share(), name); }, options);
}

remote_file::remote_file(client& from, std::string_view name, const remote_file_options& options,
                         std::error_code& ec) {
  or_code(ec, [&] { *this = remote_file(from, name, options); });
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
  if (region.unconfirmed() > 0 || region.first_unconfirmed()) region.flush(state_->each);
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
  or_code(ec, [&] { count = read_at(offset, into); });
  return count;
}

void remote_file::write_at(std::uint64_t offset, std::span<const std::byte> from) {
  if (!state_) throw_closed("writing");
  const std::uint64_t end = state_->region.limit();
  const bool granted = includes(state_->region.granted(), access::write);
  if (granted && (offset > end || from.size() > end - offset)) {
    throw error(errc::no_space, "writing " + std::to_string(from.size()) + " bytes at offset " +
                                    std::to_string(offset) + " of " + description() +
                                    ", which can not be longer than " + std::to_string(end));
  }
  state_->region.write_at(offset, from, state_->each);
}

void remote_file::write_at(std::uint64_t offset, std::span<const std::byte> from,
                           std::error_code& ec) {
  or_code(ec, [&] { write_at(offset, from); });
}

void remote_file::resize(std::uint64_t size) {
  if (!state_) throw_closed("resizing");
  if (state_->grows) return state_->through.resize(state_->region, size, state_->each);
  if (size != this->size()) {
    throw error(errc::not_supported, "resizing " + description() + ", whose size is fixed");
  }
}

void remote_file::resize(std::uint64_t size, std::error_code& ec) {
  or_code(ec, [&] { resize(size); });
}

void remote_file::sync() {
  if (!state_) throw_closed("syncing");
  state_->region.flush(state_->each);
}

void remote_file::sync(std::error_code& ec) {
  or_code(ec, [&] { sync(); });
}

void remote_file::commit() {
  if (!state_ || !state_->grows) return sync();
  state_->through.commit(state_->region, true, state_->each);
}

void remote_file::commit(std::error_code& ec) {
  or_code(ec, [&] { commit(); });
}

void remote_file::close() {
  if (!state_) return;
  const std::unique_ptr<state> last = std::move(state_);
  if (last->grows) {
    last->through.commit(std::move(last->region), false, last->each);
  } else {
    last->region.flush(last->each);
  }
}

void remote_file::close(std::error_code& ec) {
  or_code(ec, [&] { close(); });
}

std::string remote_file::description() const {
  return state_ ? state_->region.description() : "a file that is not open";
}

}  // namespace ucx
