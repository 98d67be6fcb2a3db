// Invitations: a secret of one use, by which a client gets a token.
// docs/reference/wire-format.md, "Invitations".
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/segment.hpp"
#include "carrier/socket_status.hpp"
#include "carrier/tls_openssl.hpp"
#include "carrier/token_store.hpp"
#include "os/dialled_socket.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using deadline = std::chrono::steady_clock::time_point;

constexpr std::string_view export_label = "EXPORTER-ucxs/1 token";

ucs_status_t shake(tls_session& session, int socket, deadline until) noexcept {
  for (;;) {
    switch (session.shake(socket)) {
      case tls_session::handshake::done:
        return UCS_OK;
      case tls_session::handshake::failed:
        return session.why();
      case tls_session::handshake::going_on:
        break;
    }
    if (const int why = await_socket(socket, POLLIN, until); why != 0) return socket_status(why);
  }
}

/// Both sides say their preambles. That of the server says that it has kept the token.
ucs_status_t greet(tls_session& session, int socket, deadline until) {
  std::vector<std::byte> scratch(tls_context::scratch_size);
  const ::iovec said{const_cast<std::byte*>(preamble::encoded.data()), preamble::size};
  if (session.write(socket, {&said, 1}, scratch) != static_cast<::ssize_t>(preamble::size)) {
    return status_ended_early;
  }
  std::array<std::byte, preamble::size> heard = {};
  std::size_t come = 0;
  while (come < heard.size()) {
    const ::iovec rest{heard.data() + come, heard.size() - come};
    const ::ssize_t read = session.read(socket, {&rest, 1}, scratch);
    if (read > 0) {
      come += static_cast<std::size_t>(read);
    } else if (read == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      return status_token_refused;
    } else if (const int why = await_socket(socket, POLLIN, until); why != 0) {
      return socket_status(why);
    }
  }
  session.end(socket);
  return preamble::look_at(heard) == preamble::verdict::ours ? UCS_OK : UCS_ERR_UNSUPPORTED;
}

failure failure_of_status(ucs_status_t status) {
  if (status == status_token_refused) {
    return failure{errc::permission_denied,
                   "the server refused the code: it was used, is older than ten minutes, or is of "
                   "another server"};
  }
  if (const auto known = carrier_failure_of(status)) {
    return failure{known->code, std::string(known->words)};
  }
  return failure{status == UCS_ERR_REJECTED ? errc::connection_refused : make_error(status)};
}

}  // namespace

tls_session::handshake openssl_session::redeem() noexcept {
  if (!addition_) addition_ = context_->redeem(*this, identity_);
  if (!addition_) return failed(status_token_refused, "the code of an invitation counts no more");
  switch (addition_->now()) {
    case token_addition::state::going_on:
      return handshake::going_on;
    case token_addition::state::done:
      return handshake::done;
    case token_addition::state::failed:
      break;
  }
  return failed(status_token_refused, "its token could not be kept");
}

bool openssl_session::derive_token(std::span<std::byte, token_size> into) noexcept {
  return SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(into.data()),
                                    into.size(), export_label.data(), export_label.size(), nullptr,
                                    0, 0) == 1;
}

result<void> openssl_context::invite(std::string_view name,
                                     std::span<const std::byte, token_size> code) {
  const std::filesystem::path file = keys()->file();
  if (file.empty() || !keys()->version_now()) {
    return failure{errc::not_supported,
                   "inviting a client: the server's tokens are not in a file, to which that of the "
                   "client could be added"};
  }
  if (const auto wrong = complaint_about_token_name(name); !wrong.empty()) {
    return failure{errc::bad_name, "inviting a client: the name of a token " + std::string(wrong)};
  }
  if (name == own_token_name) {
    return failure{errc::bad_name,
                   "inviting a client: the token \"own\" is that of this user, for no other"};
  }
  refresh();
  if (keys()->count_accepted(name) >= 2) {
    return failure{errc::already_exists, "inviting a client: two tokens named " +
                                             std::string(name) + " are in " + file.string()};
  }
  auto made = tls_keys::of_code(code);
  if (!made) return made.why();
  const std::lock_guard guard(mutex_);
  invited_ = {std::string(name), *std::move(made),
              std::chrono::steady_clock::now() + settings_.longest_invitation};
  return {};
}

std::shared_ptr<const tls_keys> openssl_context::invited(
    std::span<const std::byte> identity) const noexcept {
  const std::lock_guard guard(mutex_);
  return invited_.has(identity) ? invited_.keys : nullptr;
}

/// Of two clients with one code the first gets a token. There may be another invitation since.
std::shared_ptr<const token_addition> openssl_context::redeem(
    tls_session& by, std::span<const std::byte> identity) noexcept {
  try {
    std::string name;
    {
      const std::lock_guard guard(mutex_);
      if (!invited_.has(identity)) return nullptr;
      name = std::move(invited_.name);
      invited_ = {};
    }
    locked_memory secret(token_size);
    if (!by.derive_token(secret.bytes().first<token_size>())) return nullptr;
    const auto made = std::make_shared<token_addition>(name, std::move(secret));
    tokens_.add_token(made);
    return made;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

result<void> accept_invitation(const socket_address& server,
                               std::span<const std::byte, token_size> code,
                               std::span<std::byte, token_size> token,
                               std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  auto keys = tls_keys::of_code(code);
  if (!keys) return keys.why();
  const auto context = std::make_shared<openssl_context>(tls_settings(), *std::move(keys));
  if (!context->open()) return failure{errc::not_supported, "OpenSSL has no TLS 1.3"};
  const auto session = context->connect({});
  const owned_descriptor socket = dial(server, until);
  if (!socket) return failure_of_status(socket_status(errno));
  ucs_status_t made = shake(*session, socket.get(), until);
  if (made == UCS_OK && !session->derive_token(token)) made = UCS_ERR_IO_ERROR;
  if (made == UCS_OK) made = greet(*session, socket.get(), until);
  if (made != UCS_OK) return failure_of_status(made);
  return {};
}

}  // namespace ucx::detail
