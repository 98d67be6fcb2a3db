#include "ucx/remote_file.hpp"

#include <exception>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "client/client_cache.hpp"
#include "client/client_core.hpp"
#include "client/remote_file_core.hpp"
#include "client/retry_once_on_reset.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/outcome_of.hpp"
#include "worker/start_blocking.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::client_core;
using detail::core_access;
using detail::failed_request;
using detail::failure;
using detail::remote_file_core;
using detail::result;

constexpr const char* no_client = "using a client that was moved from, or not made";

request not_open(const char* doing) {
  return failed_request(errc::closed, std::string(doing) + " a file that is not open");
}

}  // namespace

struct remote_file::state {
  std::shared_ptr<remote_file_core> file;
  int exceptions = std::uncaught_exceptions();

  static std::shared_ptr<state> of(std::shared_ptr<remote_file_core> opened) {
    return std::make_shared<state>(state{std::move(opened)});
  }
  template <class Start>
  static request begin(const std::shared_ptr<state>& open, const Start& start) {
    return open ? detail::start_blocking(open->file->worker(), start) : start();
  }
  /// Waits for what `start` returns; where nothing may wait, nothing starts. By value: what goes
  /// with the last user of the file goes without the lock.
  template <class Start>
  static void wait_for(const std::shared_ptr<state> open, const Start& start, std::error_code& ec) {
    if (open) {
      if (auto may = open->file->may_wait(); !may) return std::move(may).or_end(ec);
    }
    begin(open, start).wait(ec);
  }
  /// `connect` gives the client.
  template <class Connect>
  static result<std::shared_ptr<state>> open(Connect connect, std::string_view name,
                                             const remote_file_options& options) {
    return detail::retry_once_on_reset([&]() -> result<std::shared_ptr<state>> {
      const result<std::shared_ptr<client_core>> through = connect();
      if (!through) return through.why();
      const detail::worker_core& worker = (*through)->connection()->worker();
      if (!worker.is_inherited() && worker.in_handler()) {
        return failure{errc::would_deadlock, "opening " + std::string(name) + " in a handler"};
      }
      std::shared_ptr<remote_file_core> made;
      const auto start = [&] {
        return remote_file_core::start_open(
            *through, name, options,
            [&](std::shared_ptr<remote_file_core> whole) { made.swap(whole); });
      };
      const auto opened =
          detail::outcome_of(detail::start_blocking((*through)->connection()->worker(), start));
      if (!opened) return opened.why();
      return of(std::move(made));
    });
  }
};

remote_file::remote_file() noexcept = default;

remote_file::remote_file(const url& name, const remote_file_options& options, std::error_code& ec) {
  const auto open = [&]() -> result<std::shared_ptr<state>> {
    if (!name.name().empty()) {
      return state::open([&] { return detail::shared_client(name); }, name.name(), options);
    }
    return failure{errc::bad_url, "a server is not a file: its URL lacks a name"};
  };
  state_ = open().or_end(ec);
}

remote_file::remote_file(client& from, std::string_view name, const remote_file_options& options,
                         std::error_code& ec) {
  const auto core = [&]() -> result<std::shared_ptr<client_core>> {
    if (core_access::core(from)) return core_access::core(from);
    return failure{errc::closed, no_client};
  };
  state_ = state::open(core, name, options).or_end(ec);
}

request remote_file::start_open(client& from, std::string_view name,
                                const remote_file_options& options, remote_file& made) {
  if (!core_access::core(from)) return failed_request(errc::closed, no_client);
  if (made.is_open()) {
    return failed_request(errc::invalid_argument,
                          "opening " + std::string(name) + " in place of a file that is open");
  }
  return remote_file_core::start_open(
      core_access::core(from), name, options,
      [&made, into = std::make_shared<state>()](std::shared_ptr<remote_file_core> opened) {
        into->file = std::move(opened);
        made.state_ = into;
      });
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
  if (!state_ || (state_->file->is_new() && std::uncaught_exceptions() > state_->exceptions)) {
    return;
  }
  try {
    std::error_code nobody_to_tell;
    close(nobody_to_tell);
  } catch (const std::exception&) {  // nor where there is no memory
  }
}

bool remote_file::is_open() const noexcept { return state_ != nullptr; }

std::uint64_t remote_file::size() const noexcept { return state_ ? state_->file->size() : 0; }

std::size_t remote_file::read_at(std::uint64_t offset, std::span<std::byte> into,
                                 std::error_code& ec) {
  std::size_t count = 0;
  request reading = state::begin(state_, [&] { return start_read_at(offset, into, count); });
  reading.wait(ec);
  return reading.error() ? 0 : count;
}

request remote_file::start_read_at(std::uint64_t offset, std::span<std::byte> into,
                                   std::size_t& count) {
  return state_ ? state_->file->start_read(offset, into, count) : not_open("reading");
}

void remote_file::write_at(std::uint64_t offset, std::span<const std::byte> from,
                           std::error_code& ec) {
  state::wait_for(
      state_, [&] { return start_write_at(offset, from); }, ec);
}

request remote_file::start_write_at(std::uint64_t offset, std::span<const std::byte> from) {
  return state_ ? state_->file->start_write(offset, from) : not_open("writing");
}

void remote_file::resize(std::uint64_t size, std::error_code& ec) {
  state::wait_for(
      state_, [&] { return start_resize(size); }, ec);
}

request remote_file::start_resize(std::uint64_t size) {
  return state_ ? state_->file->start_resize(size) : not_open("resizing");
}

void remote_file::sync(std::error_code& ec) {
  state::wait_for(
      state_, [&] { return start_sync(); }, ec);
}

request remote_file::start_sync() {
  return state_ ? state_->file->start_flush() : not_open("syncing");
}

void remote_file::commit(std::error_code& ec) {
  state::wait_for(
      state_, [&] { return start_commit(); }, ec);
}

request remote_file::start_commit() {
  return state_ ? state_->file->start_commit(true, false) : not_open("syncing");
}

void remote_file::close(std::error_code& ec) {
  state::wait_for(
      state_, [&] { return start_close(); }, ec);
}

request remote_file::start_close() {
  const std::shared_ptr<state> last = std::move(state_);
  return last ? last->file->start_commit(false, true) : request();
}

std::string remote_file::description() const {
  return state_ ? state_->file->description() : "a file that is not open";
}

}  // namespace ucx
