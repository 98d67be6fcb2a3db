// Whom a server of TLS lets in, beside who is in its files: invitations, and other certificates.
#include "base/error_text.hpp"
#include "base/logger.hpp"
#include "carrier/tls.hpp"
#include "carrier/token_store.hpp"
#include "carrier/token_text.hpp"
#include "os/locked_memory.hpp"
#include "server/server_core.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {

result<std::string> server_core::invite(std::string_view name) {
  const auto& tls = core_access::core(context_)->tls();
  if (!tls) return failure{errc::not_supported, "inviting a client: the server has no TLS"};
  const locked_memory memory(token_size);
  const auto code = memory.bytes().first<token_size>();
  if (const auto drawn = draw_token(code); !drawn) return drawn.why();
  if (const auto invited = tls->invite(name, code); !invited) return invited.why();
  return code_text(code);
}

result<void> server_core::reload_certificates() {
  context_core& context = *core_access::core(context_);
  const auto& tls = context.tls();
  if (!tls || !tls->has_certificates()) {
    return failure{errc::not_supported, "reading the certificates again: the server has none"};
  }
  if (const auto read = tls->reload_certificates(); !read) {
    context.log().write(log_level::warning, read.why().text);
    return read.why();
  }
  context.log().write(log_level::info, "the files of certificates were read again");
  return {};
}

}  // namespace ucx::detail
