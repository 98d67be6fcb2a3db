#include "ucx/access_rules.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"
#include "os/account_number.hpp"
#include "server/rule_list.hpp"
#include "ucp/status.hpp"

namespace ucx {
namespace {

using detail::failure;
using detail::number_of_account;
using detail::result;
using detail::rule_list;

failure of_file(const std::string& doing) {
  const int number = errno;
  const errc code = number == ENOENT ? errc::no_such_name : detail::from_errno(number);
  return failure{code, doing + ": " + std::generic_category().message(number)};
}

/// A user that may write the file decides over all rights.
result<void> check_rules_file(int descriptor, const std::string& doing) {
  struct ::stat facts = {};
  if (::fstat(descriptor, &facts) != 0) return of_file(doing);
  if (!S_ISREG(facts.st_mode)) return failure{errc::not_supported, doing + ": it is no file"};
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0) {
    return failure{errc::not_secure,
                   doing + ": it belongs to user " + std::to_string(facts.st_uid)};
  }
  if ((facts.st_mode & 0022U) != 0) {
    return failure{errc::not_secure, doing + ": others may write it; `chmod go-w` it"};
  }
  return {};
}

result<std::string> rules_text_of(const std::filesystem::path& file, const std::string& doing) {
  const detail::owned_descriptor opened(
      ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened) return of_file(doing);
  if (const auto checked = check_rules_file(opened.get(), doing); !checked) return checked.why();
  std::string text;
  while (text.size() <= rule_list::longest_text) {
    const std::size_t had = text.size();
    text.resize(had + (std::size_t{64} << 10U));
    const ::ssize_t read = ::read(opened.get(), text.data() + had, text.size() - had);
    text.resize(had + static_cast<std::size_t>(read > 0 ? read : 0));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return of_file(doing);
    if (read == 0) break;
  }
  return text;
}

using rule_lines = std::shared_ptr<const rule_list>;

result<rule_lines> shared_lines(result<rule_list> made) {
  if (!made) return made.why();
  return rule_lines(std::make_shared<const rule_list>(*std::move(made)));
}

result<rule_lines> read_lines(const std::filesystem::path& file) {
  const auto text = rules_text_of(file, "reading the rules of " + file.string());
  if (!text) return text.why();
  return shared_lines(rule_list::parse(*text, file.string(), &number_of_account));
}

result<rule_lines> with_line(const rule_list& before, bool allows, std::string_view who,
                             access_right rights, std::string_view names) {
  rule_list more = before;
  if (const auto added = more.add(allows, who, rights, names, &number_of_account); !added) {
    return failure{added.why().code, "adding a rule: " + added.why().text};
  }
  return shared_lines(std::move(more));
}

}  // namespace

std::string to_string(const peer_identity& value) {
  std::string text = value.is_owner ? "owner" : "";
  const auto add = [&](const std::string& more) { text += text.empty() ? more : ", " + more; };
  if (!value.token.empty()) add("token \"" + value.token + "\"");
  if (!value.certificate.empty()) add("certificate \"" + value.certificate + "\"");
  if (value.user) add("user " + std::to_string(*value.user));
  return text.empty() ? "anybody" : text;
}

access_rules::access_rules() : lines_(std::make_shared<const rule_list>()) {}

access_rules::access_rules(std::shared_ptr<const detail::rule_list> made)
    : lines_(made ? std::move(made) : std::make_shared<const rule_list>()) {}

access_rules access_rules::parse(std::string_view text, std::error_code& ec) {
  return access_rules(shared_lines(rule_list::parse(text, "rules", &number_of_account)).or_end(ec));
}

access_rules access_rules::read(const std::filesystem::path& file, std::error_code& ec) {
  return access_rules(read_lines(file).or_end(ec));
}

access_rules access_rules::allow(std::string_view who, access_right rights, std::string_view names,
                                 std::error_code& ec) const {
  return access_rules(with_line(*lines_, true, who, rights, names).or_end(ec));
}

access_rules access_rules::deny(std::string_view who, access_right rights, std::string_view names,
                                std::error_code& ec) const {
  return access_rules(with_line(*lines_, false, who, rights, names).or_end(ec));
}

bool access_rules::allows(const peer_identity& who, access_right wanted,
                          std::string_view name) const noexcept {
  return lines_->allows(who, wanted, name);
}

}  // namespace ucx
