#include "process/bounded_connect.hpp"

#include <chrono>
#include <optional>

#include "output/exit_code.hpp"
#include "process/connect_watch.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

/// How long the library may take to tell that its own deadline has passed.
constexpr std::chrono::seconds longest_way_back{2};

}  // namespace

client bounded_connect(const client_settings& settings, const url& any,
                       const client_options& chosen,
                       const std::function<client(const url&, const client_options&)>& connect) {
  std::optional<connect_watch> watch;
  if (settings.may_end_process) {
    watch.emplace(to_string(any), chosen.worker.connect_timeout + longest_way_back);
  }
  try {
    return connect(any, chosen);
  } catch (const error& why) {
    if (why.code() != errc::busy) throw;
    throw failure(exit_code::no_connection, why.what());
  }
}

}  // namespace ucx::tool
