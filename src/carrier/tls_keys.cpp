#include "carrier/tls_keys.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace ucx::detail {
namespace {

// The role is that of the side that connects: nothing else is derived from a token.
constexpr std::string_view key_label = "ucxs/1 psk of a client towards its server";
constexpr std::string_view identity_label = "ucxs/1 identity of a client towards its server";

struct release {
  void operator()(EVP_KDF* kdf) const noexcept { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const noexcept { EVP_KDF_CTX_free(context); }
};

result<token_list> read_one(std::string_view text) {
  token_list made;
  made.secrets = locked_memory(token_size);
  const token_verdict verdict = read_token(text, made.secrets.bytes().first<token_size>());
  if (verdict != token_verdict::intact) {
    return failure{errc::bad_configuration,
                   std::string(token_variable) + ": its value " + std::string(words_of(verdict))};
  }
  made.entries.push_back({true, token_variable});
  return made;
}

failure no_token(const std::string& file) {
  return failure{errc::permission_denied,
                 "there is no token: " + file +
                     " has none, and UCXIO_TOKEN is not set; `ucxio token new NAME` makes one that "
                     "servers of this user accept, `ucxio token add HOST:PORT` takes that of "
                     "another one's server"};
}

}  // namespace

std::string_view host_in(std::string_view towards) noexcept {
  std::string_view host = towards.substr(0, towards.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

bool derive(std::span<const std::byte> secret, std::string_view label,
            std::span<std::byte> into) noexcept {
  const std::unique_ptr<EVP_KDF, release> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::unique_ptr<EVP_KDF_CTX, release> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  if (!context) return false;
  char digest[] = "SHA256";
  const std::array<OSSL_PARAM, 4> asked{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<std::byte*>(secret.data()),
                                        secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<char*>(label.data()),
                                        label.size()),
      OSSL_PARAM_construct_end()};
  return EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(into.data()), into.size(),
                        asked.data()) == 1;
}

result<std::shared_ptr<const tls_keys>> tls_keys::make(const tls_settings& settings) {
  auto made = read(settings);
  if (!made || !(*made)->keys_.empty()) return made;
  const std::string file = (*made)->file_.string();
  if (file.empty()) return no_token("without $HOME no file");
  if (settings.tokens.empty() || (*made)->version_) return no_token("the file " + file);
  return failure{errc::permission_denied, "there is no token: the file " + file +
                                              " has none, or does not exist; `ucxio token new NAME "
                                              "--token-file " +
                                              file + "` makes one"};
}

result<std::shared_ptr<const tls_keys>> tls_keys::read(const tls_settings& settings) {
  const auto made = std::make_shared<tls_keys>();
  const char* const text = settings.tokens.empty() ? token_of_environment() : nullptr;
  result<token_list> tokens = token_list();
  if (text != nullptr) {
    tokens = read_one(text);
  } else {
    made->file_ = settings.tokens.empty() ? own_token_file() : settings.tokens;
    made->version_ = version_of(made->file_);
    if (!made->file_.empty()) tokens = read_tokens(made->file_);
    if (!tokens && tokens.why().code == errc::no_such_name) tokens = token_list();
  }
  if (!tokens) return tokens.why();
  if (const auto filled = made->fill(*tokens); !filled) return filled.why();
  made->is_only_ = text != nullptr;
  return std::shared_ptr<const tls_keys>(made);
}

result<std::shared_ptr<const tls_keys>> tls_keys::of_code(
    std::span<const std::byte, token_size> code) {
  token_list one;
  one.secrets = locked_memory(token_size);
  std::copy(code.begin(), code.end(), one.secrets.bytes().begin());
  one.entries.push_back({true, "invitation"});
  const auto made = std::make_shared<tls_keys>();
  if (const auto filled = made->fill(one); !filled) return filled.why();
  made->is_only_ = true;
  return std::shared_ptr<const tls_keys>(made);
}

std::size_t tls_keys::count_accepted(std::string_view name) const noexcept {
  return static_cast<std::size_t>(std::count_if(keys_.begin(), keys_.end(), [&](const key& each) {
    return each.is_accepted && each.name == name;
  }));
}

result<void> tls_keys::fill(const token_list& tokens) {
  secrets_ = locked_memory(key_size * tokens.entries.size());
  for (std::size_t i = 0; i < tokens.entries.size(); ++i) {
    const auto secret = secrets_.bytes().subspan(i * key_size, key_size);
    key& added = keys_.emplace_back();
    added.is_accepted = tokens.entries[i].is_accepted;
    added.name = tokens.entries[i].name;
    added.secret = secret;
    if (!derive(tokens.secret(i), key_label, secret) ||
        !derive(tokens.secret(i), identity_label, added.identity)) {
      return failure{errc::not_supported, "OpenSSL derives no keys by HKDF with SHA-256"};
    }
  }
  return {};
}

const tls_keys::key* tls_keys::find(bool is_accepted, std::string_view name) const noexcept {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const key& each) {
    return each.is_accepted == is_accepted && each.name == name;
  });
  return found != keys_.end() ? &*found : nullptr;
}

/// The narrowest name counts, and else the user's own token. A client that was given another one
/// could play the server by it.
const tls_keys::key* tls_keys::used(std::string_view towards) const noexcept {
  if (is_only_) return keys_.data();
  const std::string_view host = towards.substr(0, towards.rfind(':'));
  const key* chosen = towards.empty() ? nullptr : find(false, towards);
  if (chosen == nullptr && !host.empty()) chosen = find(false, host);
  return chosen != nullptr ? chosen : find(true, own_token_name);
}

bool tls_keys::has_line_for(std::string_view towards) const noexcept {
  if (is_only_ || towards.empty()) return false;
  const std::string_view host = towards.substr(0, towards.rfind(':'));
  return find(false, towards) != nullptr || (!host.empty() && find(false, host) != nullptr);
}

bool tls_keys::has_just_for(std::string_view towards) const noexcept {
  return is_only_ || (!towards.empty() && find(false, towards) != nullptr);
}

const tls_keys::key* tls_keys::accepted(std::span<const std::byte> identity) const noexcept {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const key& each) {
    return each.is_accepted &&
           std::equal(each.identity.begin(), each.identity.end(), identity.begin(), identity.end());
  });
  return found != keys_.end() ? &*found : nullptr;
}

bool tls_keys::accepts_any() const noexcept {
  return std::any_of(keys_.begin(), keys_.end(), [](const key& each) { return each.is_accepted; });
}

std::optional<tls_keys::version> tls_keys::version_of(const std::filesystem::path& file) noexcept {
  const std::string_view name = file.native();
  if (name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/")) return std::nullopt;
  struct ::stat facts = {};
  if (::stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return version{facts.st_dev, facts.st_ino, facts.st_size, facts.st_ctim};
}

}  // namespace ucx::detail
