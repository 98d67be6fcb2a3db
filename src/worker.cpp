#include "ucx/worker.hpp"

#include <utility>

#include "detail/core_access.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

std::shared_ptr<detail::worker_core> make_core(const std::shared_ptr<detail::context_core>& parent,
                                               const worker_options& options, std::string& what,
                                               std::error_code& ec) {
  ec.clear();
  if (!parent) {
    what = "making a worker of a context that was moved from, or not made";
    ec = errc::closed;
    return nullptr;
  }
  return detail::worker_core::make(parent, options, what, ec);
}

/// How long run() sleeps at most before it looks at its stop token again, were a wake-up lost.
constexpr std::chrono::milliseconds longest_rest{100};

}  // namespace

worker::worker(const context& parent, const worker_options& options) {
  std::string what;
  std::error_code ec;
  core_ = make_core(detail::core_access::core(parent), options, what, ec);
  if (ec) throw error(ec, what);
}

worker::worker(const context& parent, const worker_options& options, std::error_code& ec) {
  std::string what;
  core_ = make_core(detail::core_access::core(parent), options, what, ec);
}

worker::worker(worker&& other) noexcept = default;
worker& worker::operator=(worker&& other) noexcept = default;
worker::~worker() = default;

worker_address worker::address() const {
  std::error_code ec;
  worker_address made = address(ec);
  if (ec) throw error(ec, "asking for a worker's address");
  return made;
}

worker_address worker::address(std::error_code& ec) const { return core_->address(ec); }

bool worker::progress() { return core_->progress(); }
int worker::event_fd() const noexcept { return core_->event_fd(); }
bool worker::arm() { return core_->arm(); }
std::chrono::nanoseconds worker::next_deadline() const { return core_->until_next_deadline(); }
void worker::signal() noexcept { core_->signal(); }
void worker::post(move_only_handler<> function) { core_->post(std::move(function)); }
progress_mode worker::mode() const noexcept { return core_->options().progress; }

void worker::run(std::stop_token stop) {
  if (core_->driven_elsewhere()) {
    throw error(make_error_code(errc::invalid_argument),
                "running a worker that a thread of its own drives");
  }
  if (core_->in_handler()) {
    throw error(make_error_code(errc::would_deadlock), "running a worker inside its own handler");
  }
  const std::stop_callback wake(stop, [core = core_.get()] { core->signal(); });
  unsigned idle = 0;
  while (!stop.stop_requested()) {
    core_->progress_or_rest(idle, core_->api().now() + longest_rest);
  }
}

}  // namespace ucx
