#include "ucx/async_pipe.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "files/kept_for_parent.hpp"
#include "pipes/async_pipe_core.hpp"
#include "pipes/pipe_opening.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/request_source.hpp"

namespace ucx {
namespace {

using detail::async_output_kind;
using detail::async_pipe_core;

request refused(const error& why) {
  std::string text = why.what();
  const std::string words = ": " + why.code().message();
  if (text.ends_with(words)) text.resize(text.size() - words.size());
  return request_source::failed(why.code(), std::move(text));
}

request of_nothing() {
  return request_source::failed(errc::closed, "using a pipe that is not open");
}

request output(const std::shared_ptr<async_pipe_core>& core, async_output_kind what,
               std::span<const std::byte> from = {}) {
  if (!core) return what == async_output_kind::close ? request() : of_nothing();
  const std::shared_ptr<async_pipe_core> kept = core;  // a handler may destroy the pipe
  return kept->start_output(what, from);
}

}  // namespace

async_pipe::async_pipe() noexcept = default;
async_pipe::async_pipe(std::shared_ptr<async_pipe_core> core) noexcept : core_(std::move(core)) {}

request async_pipe::start_open(worker& driven, endpoint connection, std::ios_base::openmode mode,
                               async_pipe& made, const pipe_options& options) {
  made = async_pipe();
  auto path = detail::path_over(driven, std::move(connection), mode, options);
  if (const auto* const why = std::get_if<error>(&path)) return refused(*why);
  auto over = std::get<std::unique_ptr<detail::pipe_path>>(std::move(path));
  const auto core = std::make_shared<async_pipe_core>(driven, over->name, mode, options);
  return core->start_open(made, std::move(over));
}

request async_pipe::start_open(worker& driven, const url& where, std::ios_base::openmode mode,
                               async_pipe& made, const pipe_options& options) {
  made = async_pipe();
  if (const auto why = detail::complaint_about(where, mode, options)) return refused(*why);
  if (detail::reads(mode) && !where.address_file().empty()) {
    return request_source::failed(errc::not_supported,
                                  "reading a pipe at " + to_string(where) +
                                      ", a server without an IP address, without a thread");
  }
  const auto core = std::make_shared<async_pipe_core>(driven, to_string(where), mode, options);
  return core->start_open(made, where);
}

async_pipe::async_pipe(async_pipe&& other) noexcept = default;

async_pipe& async_pipe::operator=(async_pipe&& other) noexcept {
  async_pipe before(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

async_pipe::~async_pipe() {
  if (!core_ || detail::keep_for_parent(core_)) return;
  const std::shared_ptr<async_pipe_core> kept = std::move(core_);
  kept->leave();
}

bool async_pipe::is_open() const noexcept { return core_ && core_->is_open(); }

request async_pipe::start_read(std::span<std::byte> into, std::size_t& count) {
  if (!core_) return of_nothing();
  const std::shared_ptr<async_pipe_core> kept = core_;  // a handler may destroy the pipe
  return kept->start_read(into, count);
}

request async_pipe::start_write(std::span<const std::byte> from) {
  return output(core_, async_output_kind::write, from);
}

request async_pipe::start_flush() { return output(core_, async_output_kind::flush); }

request async_pipe::start_close_output() { return output(core_, async_output_kind::close_output); }

request async_pipe::start_close() { return output(core_, async_output_kind::close); }

void async_pipe::abort() noexcept {
  if (!core_ || core_->is_inherited()) return;
  const std::shared_ptr<async_pipe_core> kept = core_;
  kept->abort();
}

std::uint64_t async_pipe::received() const noexcept { return core_ ? core_->received() : 0; }
std::uint64_t async_pipe::sent() const noexcept { return core_ ? core_->sent() : 0; }

}  // namespace ucx
