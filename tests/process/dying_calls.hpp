// Functions of the other process, one of which ends it.
#pragma once

#include <csignal>
#include <string>

#include "ucx/call_server.hpp"
#include "ucx/call_table.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

class dying_calls {
 public:
  explicit dying_calls(const worker& driven) {
    calls_.add("add", [](int a, int b) { return a + b; });
    calls_.add("die", [] { std::raise(SIGKILL); });
    serves_ = call_server(driven, calls_);
  }

  std::string names() const { return "add die"; }

 private:
  call_table calls_;
  call_server serves_;
};

}  // namespace ucx::test
