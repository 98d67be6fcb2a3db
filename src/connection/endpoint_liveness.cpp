#include "connection/endpoint_liveness.hpp"

#include <string>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "base/inbox_task.hpp"
#include "connection/endpoint_core.hpp"
#include "wire/process_identity.hpp"
#include "worker/process_watcher.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Bounds the reading of what the process has sent before its end among what others send.
constexpr int rounds_to_hear = 1000;

/// The thread that sees the process's end leaves this for the connection's worker.
class end_of_process final : public inbox_task {
 public:
  explicit end_of_process(std::weak_ptr<endpoint_core> connection) noexcept
      : connection_(std::move(connection)) {}

  void run(worker_core& by) override {
    for (int i = 0; i < rounds_to_hear && by.progress_ucx() != 0; ++i) {
    }
    by.defer([lost = connection_] {  // behind what that has left to do
      if (const std::shared_ptr<endpoint_core> kept = lost.lock()) kept->process_ended();
    });
  }

 private:
  std::weak_ptr<endpoint_core> connection_;
};

}  // namespace

endpoint_liveness::endpoint_liveness(endpoint_core& connection, std::chrono::nanoseconds interval,
                                     std::chrono::nanoseconds timeout) noexcept
    : connection_(connection), heartbeat_(interval, timeout) {}

endpoint_liveness::~endpoint_liveness() = default;

void endpoint_liveness::expect_control() noexcept {
  ++controls_expected_;
  worker_core& worker = connection_.worker();
  worker.tick_by(worker.api().now() + heartbeat_.step());
}

void endpoint_liveness::ask() {
  frame ping;
  ping.code = opcode::ping;
  ping.session = connection_.session().number();
  connection_.send(ping);
}

clock::time_point endpoint_liveness::look(clock::time_point now, bool awaits_peer) {
  if (!awaits_peer && controls_expected_ == 0) {
    heartbeat_.rest();
    return clock::time_point::max();
  }
  switch (heartbeat_.look(now)) {
    case heartbeat::verdict::quiet:
      break;
    case heartbeat::verdict::ask:
      ask();
      break;
    case heartbeat::verdict::dead:
      connection_.fail(make_error_code(errc::connection_reset), if_there_is_memory([this] {
                         using std::chrono::milliseconds;
                         const auto limit =
                             std::chrono::duration_cast<milliseconds>(heartbeat_.timeout());
                         return "no sign of life for " + std::to_string(limit.count()) + " ms";
                       }));
      return clock::time_point::max();
  }
  return heartbeat_.next_look();
}

bool endpoint_liveness::tells_process() const noexcept {
  return !connection_.detects_failure() && connection_.worker().api().may_share_memory();
}

void endpoint_liveness::watch_process(const std::optional<process_identity>& theirs) {
  if (!theirs || !tells_process()) return;
  process_ = connection_.worker().context().processes().watch(
      *theirs, connection_.worker(),
      std::make_shared<end_of_process>(connection_.weak_from_this()));
}

void endpoint_liveness::stop() noexcept { process_.reset(); }

}  // namespace ucx::detail
