#include "ucx/pipe_broker.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "files/kept_for_parent.hpp"
#include "pipes/broker_core.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/worker.hpp"

namespace ucx {
namespace {

/// Ends with its broker; the server's worker may be gone by then.
std::shared_ptr<detail::broker_core> open(server& by, const pipe_broker_options& options,
                                          std::error_code& ec) {
  const auto core = std::make_shared<detail::broker_core>(options.max_waiting);
  std::vector<worker*> heard;
  heard.reserve(by.workers());
  const auto hear_no_more = [](const std::vector<worker*>& all) {
    std::error_code closed;
    for (worker* each : all) each->on_message(detail::pipe_question_number, {}, closed);
  };
  for (std::size_t i = 0; i < by.workers(); ++i) {
    by.worker(i).on_message(
        detail::pipe_question_number,
        [core, i](message question) { core->asked(i, std::move(question)); }, ec);
    if (ec) {
      hear_no_more(heard);
      return nullptr;
    }
    heard.push_back(&by.worker(i));
  }
  return {core.get(), [core, heard = std::move(heard), hear_no_more](detail::broker_core*) {
            hear_no_more(heard);
            core->close();
          }};
}

}  // namespace

pipe_broker::pipe_broker(server& by, const pipe_broker_options& options, std::error_code& ec) {
  std::error_code outcome;
  core_ = open(by, options, outcome);
  if (&ec != &throws) {
    ec = outcome;
  } else if (outcome) {
    throw error(outcome, "letting a server introduce the ends of pipes");
  }
}

pipe_broker::pipe_broker(pipe_broker&& other) noexcept = default;
pipe_broker& pipe_broker::operator=(pipe_broker&& other) noexcept {
  const pipe_broker before(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}
pipe_broker::~pipe_broker() { detail::keep_for_parent(core_); }

std::size_t pipe_broker::waiting() const {
  return core_ && !core_->is_inherited() ? core_->waiting() : 0;
}

std::size_t pipe_broker::introduced() const {
  return core_ && !core_->is_inherited() ? core_->introduced() : 0;
}

}  // namespace ucx
