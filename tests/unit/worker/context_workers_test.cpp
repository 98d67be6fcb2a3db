#include "worker/context_workers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "support/fake_ucp/callback_scope.hpp"
#include "support/replaced/shortage.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"
#include "worker/counted_region.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using detail::core_access;

/// Somebody reads it as long as this is there.
class read_region final : public detail::counted_region {
 public:
  read_region() : counted_region(1) { begin_access(); }
};

/// Where there is no memory for a list of the workers, each is found by its place.
TEST(ContextWorkers, AreAllAskedToEndTheirAnswersWhileOthersAreMade) {
  simulated_pair pair;
  detail::context_workers workers;
  std::optional<worker> gone(std::in_place, pair.owner_context);
  const worker second(pair.owner_context);
  const worker third(pair.owner_context);
  const worker late(pair.owner_context);
  workers.add(core_access::core(*gone));
  gone.reset();  // and makes room for the next one that is added, but not now
  workers.add(core_access::core(second));
  workers.add(core_access::core(third));
  bool third_was_asked = false;
  bool late_was_asked = false;
  core_access::core(second)->post_work([&] {
    const callback_scope has_memory(false);
    workers.add(core_access::core(late));
  });
  core_access::core(third)->post_work([&] { third_was_asked = true; });
  core_access::core(late)->post_work([&] { late_was_asked = true; });
  read_region region;
  {
    const lasting_shortage begun;
    workers.drain(region, detail::clock::time_point::max());
  }
  EXPECT_TRUE(third_was_asked);
  EXPECT_TRUE(late_was_asked);
}

}  // namespace
}  // namespace ucx::test
