#include "ucx/pipe_broker.hpp"

#include <utility>

#include "broker_core.hpp"
#include "ucx/error.hpp"
#include "ucx/worker.hpp"

namespace ucx {
namespace {

/// Ends with its broker; the server's worker may be gone by then.
std::shared_ptr<detail::broker_core> open(server& by, const pipe_broker_options& options,
                                          std::error_code& ec) {
  const auto core = std::make_shared<detail::broker_core>(options.most_waiting);
  by.worker().on_message(
      detail::pipe_question_number, [core](message question) { core->asked(std::move(question)); },
      ec);
  if (ec) return nullptr;
  worker& driven = by.worker();
  return {core.get(), [core, &driven](detail::broker_core*) {
            std::error_code closed;
            driven.on_message(detail::pipe_question_number, {}, closed);
            core->close();
          }};
}

}  // namespace

pipe_broker::pipe_broker(server& by, const pipe_broker_options& options) {
  std::error_code ec;
  core_ = open(by, options, ec);
  if (ec) throw error(ec, "letting a server introduce the ends of pipes");
}

pipe_broker::pipe_broker(server& by, const pipe_broker_options& options, std::error_code& ec)
    : core_(open(by, options, ec)) {}

pipe_broker::pipe_broker(pipe_broker&& other) noexcept = default;
pipe_broker& pipe_broker::operator=(pipe_broker&& other) noexcept = default;
pipe_broker::~pipe_broker() = default;

std::size_t pipe_broker::waiting() const { return core_ ? core_->waiting() : 0; }

std::size_t pipe_broker::introduced() const { return core_ ? core_->introduced() : 0; }

}  // namespace ucx
