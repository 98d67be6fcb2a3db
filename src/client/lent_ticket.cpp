#include "client/lent_ticket.hpp"

#include <memory>
#include <string>
#include <utility>

#include "client/client_call.hpp"
#include "client/client_questions.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

result<void> lend_ticket(client_questions& by, const ticket_secret& secret,
                         const io_options& options) {
  std::string doing = by.server().place() + ": lending a ticket";
  if (!by.server().knows(control_feature::tickets)) {
    return failure{errc::not_supported, doing + ": the server is of a version that knows none"};
  }
  return by.wait_for([&] {
    return client_call::start(by, options, std::move(doing),
                              std::make_unique<one_question<lend_body>>(
                                  control_type::lend, control_type::done, lend_body{secret},
                                  [](std::span<const std::byte>) { return result<void>(); },
                                  [](failure why) { return why; }));
  });
}

}  // namespace ucx::detail
