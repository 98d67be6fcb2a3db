// One connection by TLS: its handshake, and the bytes in both directions.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "carrier/carrier_failure.hpp"
#include "carrier/tls_openssl.hpp"

namespace ucx::detail {
namespace {

/// A peer's part of a handshake has some hundred bytes, and its chain of certificates.
constexpr std::size_t longest_handshake = std::size_t{16} << 10U;
constexpr std::size_t record_size = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t least_read = 4096;
constexpr unsigned most_idle_reads = 16;
constexpr std::size_t most_answers = std::size_t{64} << 10U;
/// One `send` for so much.
constexpr std::size_t most_at_a_time = std::size_t{240} << 10U;
/// The last record may begin just below that; the first piece is gathered behind it.
static_assert(most_at_a_time + SSL3_RT_MAX_ENCRYPTED_LENGTH + SSL3_RT_HEADER_LENGTH + record_size <=
              tls_context::scratch_size);

int read_bio(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  auto& session = *static_cast<openssl_session*>(BIO_get_data(bio));
  if (!session.has_input()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  return session.give_input({reinterpret_cast<std::byte*>(into), static_cast<std::size_t>(size)});
}

int write_bio(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  auto& session = *static_cast<openssl_session*>(BIO_get_data(bio));
  return session.take_output(
      {reinterpret_cast<const std::byte*>(from), static_cast<std::size_t>(size)});
}

long control_bio(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* bio_method() noexcept {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ucxs");
    if (method != nullptr) {
      BIO_meth_set_read(method, &read_bio);
      BIO_meth_set_write(method, &write_bio);
      BIO_meth_set_ctrl(method, &control_bio);
    }
    return method;
  }();
  return made;
}

}  // namespace

/// Where the next plain bytes go to, or come from.
class openssl_session::place {
 public:
  explicit place(std::span<const ::iovec> parts) noexcept : parts_(parts) {
    for (const ::iovec& each : parts) left_ += each.iov_len;
    skip_empty();
  }
  std::size_t left() const noexcept { return left_; }
  std::size_t done() const noexcept { return done_; }
  /// Returns the rest of the part that it is in.
  std::span<std::byte> here() const noexcept {
    if (parts_.empty()) return {};
    return {static_cast<std::byte*>(parts_.front().iov_base) + at_, parts_.front().iov_len - at_};
  }
  void advance(std::size_t count) noexcept {
    at_ += count;
    done_ += count;
    left_ -= count;
    skip_empty();
  }

 private:
  void skip_empty() noexcept {
    while (!parts_.empty() && at_ == parts_.front().iov_len) {
      parts_ = parts_.subspan(1);
      at_ = 0;
    }
  }

  std::span<const ::iovec> parts_;
  std::size_t at_ = 0;
  std::size_t left_ = 0;
  std::size_t done_ = 0;
};

openssl_session::openssl_session(std::shared_ptr<openssl_context> of, SSL_CTX* context,
                                 std::optional<std::string> towards, std::uint64_t records_per_key,
                                 meeting_part meeting,
                                 std::shared_ptr<const certificate_set> certificates)
    : context_(std::move(of)),
      ssl_(SSL_new(context)),
      towards_(std::move(towards)),
      records_per_key_(records_per_key),
      meeting_(std::move(meeting)),
      certificates_(std::move(certificates)) {
  owned_by_openssl<BIO> bio(bio_method() != nullptr ? BIO_new(bio_method()) : nullptr);
  if (!ssl_ || !bio) throw std::bad_alloc();
  BIO_set_data(bio.get(), this);
  BIO_set_init(bio.get(), 1);
  SSL_set_app_data(ssl_.get(), this);
  if (certificates_) take_terms();
  BIO* const both = bio.release();
  SSL_set_bio(ssl_.get(), both, both);
  if (towards_) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

void openssl_session::take_terms() {
  X509_VERIFY_PARAM* const terms = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_time(terms, context_->wall_clock());
  if (!towards_) return;
  host_ = host_in(*towards_);
  if (!expect_host(terms, host_)) throw std::bad_alloc();
}

SSL_SESSION* openssl_session::session_with(std::span<const std::byte> key) const noexcept {
  constexpr std::array<unsigned char, 2> cipher{0x13, 0x01};
  SSL_SESSION* const made = SSL_SESSION_new();
  if (made == nullptr) return nullptr;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(key.data());
  const SSL_CIPHER* const known = SSL_CIPHER_find(ssl_.get(), cipher.data());
  if (known != nullptr && SSL_SESSION_set1_master_key(made, bytes, key.size()) == 1 &&
      SSL_SESSION_set_cipher(made, known) == 1 &&
      SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1) {
    return made;
  }
  SSL_SESSION_free(made);
  return nullptr;
}

/// An unknown identity gets a key that the peer can not have: it fails where a wrong key does.
SSL_SESSION* openssl_session::find(std::span<const std::byte> identity) noexcept {
  if (meeting_.expects) return find_meeting(identity);
  const auto keys = context_->keys();
  const tls_keys::key* found = keys->accepted(identity);
  const auto invited = found == nullptr ? context_->invited(identity) : nullptr;
  has_shown_code_ = invited != nullptr;
  std::array<unsigned char, tls_keys::key_size> unknown = {};
  if (RAND_bytes(unknown.data(), unknown.size()) != 1) return nullptr;
  has_shown_token_ = true;
  if (identity.size() == identity_.size()) {
    std::copy(identity.begin(), identity.end(), identity_.begin());
  }
  try {
    peer_ = found != nullptr ? found->name : std::string();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (invited) found = invited->accepted(identity);
  return session_with(found != nullptr ? found->secret : std::as_bytes(std::span(unknown)));
}

/// Where keys of meetings are expected, tokens and invitations do not count.
SSL_SESSION* openssl_session::find_meeting(std::span<const std::byte> identity) noexcept {
  std::array<unsigned char, tls_keys::key_size> unknown = {};
  if (RAND_bytes(unknown.data(), unknown.size()) != 1) return nullptr;
  const auto met = meeting_.expects->expected(identity);
  has_shown_key_ = met.has_value();
  if (!met) return session_with(std::as_bytes(std::span(unknown)));
  identity_ = met->identity;
  return session_with(met->secret);
}

SSL_SESSION* openssl_session::use(std::span<const std::byte>& identity) noexcept {
  if (meeting_.shows) {
    identity_ = meeting_.shows->identity;
    identity = identity_;
    return session_with(meeting_.shows->secret);
  }
  const auto keys = context_->keys();
  const tls_keys::key* const used = keys->used(*towards_);
  if (used == nullptr) return nullptr;
  identity_ = used->identity;
  identity = identity_;
  try {
    peer_ = used->name;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return session_with(used->secret);
}

int openssl_session::give_input(std::span<std::byte> into) noexcept {
  const std::size_t given = std::min(into.size(), input_.size());
  std::memcpy(into.data(), input_.data(), given);
  input_ = input_.subspan(given);
  return static_cast<int>(given);
}

int openssl_session::take_output(std::span<const std::byte> bytes) noexcept {
  if (output_.size() - output_size_ >= bytes.size()) {
    std::memcpy(output_.data() + output_size_, bytes.data(), bytes.size());
    output_size_ += bytes.size();
  } else {
    // Answers to a peer that asks for new keys, and does not take them.
    if (output_.empty()) answers_ += bytes.size();
    if (answers_ > most_answers) is_broken_ = true;
    if (is_broken_ || !keep_unsent(bytes)) return -1;
  }
  return static_cast<int>(bytes.size());
}

bool openssl_session::keep_unsent(std::span<const std::byte> rest) noexcept {
  try {
    unsent_.insert(unsent_.end(), rest.begin(), rest.end());
    return true;
  } catch (const std::bad_alloc&) {
    is_broken_ = true;
    errno = ENOMEM;
    return false;
  }
}

bool openssl_session::flush(int socket) noexcept {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    const ::ssize_t written =
        ::send(socket, unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    sent += static_cast<std::size_t>(written);
  }
  if (sent == unsent_.size()) {
    unsent_ = {};  // an idle connection has no memory for that
    answers_ = 0;
    return true;
  }
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
  return false;
}

tls_session::handshake openssl_session::failed(ucs_status_t why, const char* reason) noexcept {
  why_ = why;
  reason_ = reason;
  is_broken_ = true;
  meeting_.shows.reset();
  return handshake::failed;
}

tls_session::handshake openssl_session::shake(int socket) noexcept {
  std::array<std::byte, 4096> came;
  for (;;) {
    ERR_clear_error();
    const int made = SSL_do_handshake(ssl_.get());
    const bool is_hungry =
        made != 1 && SSL_get_error(ssl_.get(), made) == SSL_ERROR_WANT_READ && !is_broken_;
    if (made != 1 && !is_hungry) {
      const handshake result = failed_in_openssl();
      [[maybe_unused]] const bool told = flush(socket);  // an alert
      return result;
    }
    // There is room in the socket: nothing else has been sent.
    if (!flush(socket)) return failed(status_ended_early, "the peer does not take bytes");
    if (made == 1) {
      if (!is_as_agreed()) return failed(status_foreign_tls, "no key or protocol was agreed on");
      if (has_shown_key_ && !meeting_.expects->spend(identity_)) {
        return failed(status_token_refused, "the key of a meeting counts no more");
      }
      meeting_ = {};
      is_open_ = keep_input();
      return is_open_ ? handshake::done : failed(UCS_ERR_NO_MEMORY, "no memory");
    }
    const ::ssize_t read = ::recv(socket, came.data(), came.size(), MSG_DONTWAIT);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return handshake::going_on;
    if (read <= 0) {
      return failed(status_ended_early, "the peer ended the connection within the handshake");
    }
    shaken_bytes_ += static_cast<std::size_t>(read);
    if (shaken_bytes_ > longest_handshake) return failed(status_foreign_tls, "it is too long");
    input_ = std::span(came).first(static_cast<std::size_t>(read));
  }
}

/// The rest points into memory of the caller.
bool openssl_session::keep_input() noexcept {
  try {
    leftover_.assign(input_.begin(), input_.end());
    input_ = {};
    return true;
  } catch (const std::bad_alloc&) {
    is_broken_ = true;
    return false;
  }
}

openssl_session::reading openssl_session::decrypt(place& into) noexcept {
  while (into.left() != 0) {
    const std::span<std::byte> here = into.here();
    std::size_t read = 0;
    ERR_clear_error();
    const int made = SSL_read_ex(ssl_.get(), here.data(), here.size(), &read);
    if (made == 1) {
      into.advance(read);
      continue;
    }
    switch (SSL_get_error(ssl_.get(), made)) {
      case SSL_ERROR_WANT_READ:
        return is_broken_ ? reading::broken : reading::hungry;
      case SSL_ERROR_ZERO_RETURN:
        return reading::ended;
      default:
        note_alert();
        ERR_clear_error();
        return reading::broken;
    }
  }
  return reading::filled;
}

bool openssl_session::may_have_more() const noexcept {
  return may_have_more_ || has_ended_ || is_broken_ || !leftover_.empty() ||
         SSL_pending(ssl_.get()) > 0;
}

::ssize_t openssl_session::read(int socket, std::span<const ::iovec> parts,
                                std::span<std::byte> scratch) noexcept {
  place into(parts);
  const std::vector<std::byte> before = std::move(leftover_);
  leftover_ = {};
  input_ = before;
  int error = EAGAIN;
  unsigned idle_reads = 0;
  std::size_t seen = 0;
  may_have_more_ = true;  // until a read has shown that there is not
  while (!is_broken_ && !has_ended_) {
    const reading made = decrypt(into);
    if (made == reading::broken) is_broken_ = true;
    if (made == reading::ended) has_ended_ = true;
    if (made != reading::hungry) break;
    // Records without content may come without end: others have their turn.
    idle_reads = into.done() == seen ? idle_reads + 1 : 0;
    seen = into.done();
    if (idle_reads > most_idle_reads) {
      may_have_more_ = true;
      break;
    }
    // As much at most as there is room for, so that little is left over.
    const std::size_t wanted = std::min(scratch.size(), std::max(into.left(), least_read));
    const ::ssize_t came = ::recv(socket, scratch.data(), wanted, MSG_DONTWAIT);
    if (came < 0 && errno == EINTR) continue;
    may_have_more_ = came == static_cast<::ssize_t>(wanted);
    if (came <= 0) {
      // An end without a word may be somebody else's.
      const bool is_dry = came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      if (!is_dry) error = came == 0 ? ECONNRESET : errno;
      is_broken_ = !is_dry;
      break;
    }
    input_ = scratch.first(static_cast<std::size_t>(came));
  }
  if (!keep_input()) error = ENOMEM;
  if (!unsent_.empty()) {
    [[maybe_unused]] const bool told = flush(socket);  // an alert, or the answer to a new key
  }
  if (into.done() != 0) return static_cast<::ssize_t>(into.done());
  if (has_ended_) return 0;
  errno = is_broken_ && error == EAGAIN ? ECONNRESET : error;
  return -1;
}

/// Makes one record of it.
bool openssl_session::seal(std::span<const std::byte> plain) noexcept {
  ERR_clear_error();
  if (records_++ == records_per_key_) {
    records_ = 1;
    ++key_changes_;
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) is_broken_ = true;
  }
  std::size_t written = 0;
  const bool made = !is_broken_ &&
                    SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) == 1 &&
                    written == plain.size();
  if (!made) {
    is_broken_ = true;
    ERR_clear_error();
  }
  return made;
}

::ssize_t openssl_session::write(int socket, std::span<const ::iovec> parts,
                                 std::span<std::byte> scratch) noexcept {
  errno = EPIPE;
  if (is_broken_ || !flush(socket)) return -1;
  const std::span<std::byte> gathered = scratch.last(record_size);
  place from(parts);
  while (from.left() != 0 && unsent_.empty()) {
    output_ = scratch.first(scratch.size() - record_size);
    output_size_ = 0;
    bool made = true;
    while (made && from.left() != 0 && output_size_ < most_at_a_time) {
      if (from.here().size() >= record_size) {
        made = seal(from.here().first(record_size));
        from.advance(record_size);
        continue;
      }
      std::size_t filled = 0;
      while (filled < record_size && from.left() != 0) {
        const std::size_t copied = std::min(record_size - filled, from.here().size());
        std::memcpy(gathered.data() + filled, from.here().data(), copied);
        filled += copied;
        from.advance(copied);
      }
      made = seal(gathered.first(filled));
    }
    const std::span<const std::byte> ready = std::exchange(output_, {}).first(output_size_);
    output_size_ = 0;
    if (!made) {
      errno = EPIPE;
      return -1;
    }
    ::ssize_t sent = 0;
    do {
      sent = ::send(socket, ready.data(), ready.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (!keep_unsent(ready.subspan(sent > 0 ? static_cast<std::size_t>(sent) : 0))) return -1;
  }
  return static_cast<::ssize_t>(from.done());
}

void openssl_session::end(int socket) noexcept {
  if (!is_open_ || is_broken_ || !unsent_.empty()) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
  [[maybe_unused]] const bool told = flush(socket);
  is_broken_ = true;
}

}  // namespace ucx::detail
