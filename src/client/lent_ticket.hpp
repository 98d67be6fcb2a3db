// A ticket that a client lends.
#pragma once

#include "base/result.hpp"
#include "ucx/request.hpp"
#include "wire/ticket_secret.hpp"

namespace ucx::detail {

class client_questions;

/// Has the server take a ticket for the client. Errors: not_supported (a server of a version that
/// knows no tickets), permission_denied, busy, already_exists; those of a question.
result<void> lend_ticket(client_questions& by, const ticket_secret& secret,
                         const io_options& options);

}  // namespace ucx::detail
