// The peer's process, where it is of this host: UCX says nothing of its end over shared memory.
#include <memory>
#include <optional>
#include <utility>

#include "base/handed_work.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "wire/process_identity.hpp"
#include "worker/process_watcher.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Bounds the reading of what the process has sent before its end among what others send.
constexpr int rounds_to_hear = 1000;

/// What the thread that sees the process's end leaves for the connection's worker.
class end_of_process final : public handed_work {
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

bool endpoint_core::tells_process() const noexcept {
  return !detects_failure_ && worker_.api().may_share_memory();
}

void endpoint_core::watch_process() {
  if (!theirs_.process || !tells_process()) return;
  process_ = worker_.context().processes().watch(
      *theirs_.process, worker_, std::make_shared<end_of_process>(weak_from_this()));
}

void endpoint_core::process_ended() {
  losing_ = true;  // nobody is there to be told
  if (leaving_) return fail(leaving_why_, leaving_words_);
  fail(make_error_code(errc::connection_reset), if_there_is_memory("the peer's process has ended"));
}

}  // namespace ucx::detail
