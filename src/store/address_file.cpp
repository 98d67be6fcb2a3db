#include "store/address_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "store/store_directory.hpp"
#include "ucx/error.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

constexpr std::string_view local_word = " local";
/// Two digits a byte, and some words, of which later versions may have more.
constexpr std::size_t longest_file = 2 * (longest_worker_address + envelope::overhead) + 256;

/// Returns what is in a regular file, as far as it may be an address.
result<std::string> content_of(const std::filesystem::path& path) {
  const owned_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct ::stat about = {};
  if (!file || ::fstat(file.get(), &about) != 0) return failure{store_error(errno)};
  if (!S_ISREG(about.st_mode)) return failure{errc::not_supported};
  std::string text(longest_file + 1, '\0');
  std::size_t count = 0;
  while (count < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + count, text.size() - count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure{store_error(errno)};
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  text.resize(count);
  return text;
}

result<server_location> location_in(std::string_view text) {
  if (!text.ends_with('\n')) return failure{errc::bad_address};  // cut off
  text.remove_suffix(1);
  const std::string_view digits = text.substr(0, text.find(' '));
  server_location made;
  std::error_code ec;
  made.address = parse_worker_address(digits, ec);
  if (ec) return failure{ec};
  made.local = text.substr(digits.size()).starts_with(local_word);
  return made;
}

std::string text_of(const server_location& where) {
  std::string text = to_string(where.address);
  if (where.local) text += local_word;
  return text + '\n';
}

bool write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

result<std::unique_ptr<address_file>> address_file::write(const std::filesystem::path& path,
                                                          const server_location& where) {
  const std::string doing = "writing the server's address into \"" + path.string() + "\"";
  std::error_code ec;
  const std::filesystem::path whole = std::filesystem::absolute(path, ec);
  if (ec) return failure{errc::io_error, doing};
  if (!whole.has_filename()) return failure{errc::not_supported, doing};
  const result<std::string> old = content_of(whole);
  if (!old && old.why().code != errc::no_such_name) return failure{old.why().code, doing};
  if (old) {
    const result<server_location> there = location_in(*old);
    if (!there && there.why().code != errc::version_mismatch) {
      return failure{errc::already_exists, doing + ": there is a file, which no server wrote"};
    }
  }
  std::unique_ptr<address_file> made(new address_file(whole));
  std::string made_as = whole.string() + ".XXXXXX";
  made->file_ = owned_descriptor(::mkostemp(made_as.data(), O_CLOEXEC));  // mode 0600
  const int file = made->file_.get();
  if (file < 0) return failure{store_error(errno), doing};
  if (!write_all(file, text_of(where)) || ::fsync(file) != 0 ||
      ::rename(made_as.c_str(), whole.c_str()) != 0) {
    ec = store_error(errno);
    ::unlink(made_as.c_str());
    made->file_ = owned_descriptor();  // it never had the name
    return failure{ec, doing};
  }
  return made;
}

result<server_location> address_file::read(const std::filesystem::path& path) {
  const std::string doing = "reading the address file \"" + path.string() + "\"";
  const result<std::string> text = content_of(path);
  if (text) {
    result<server_location> found = location_in(*text);
    if (!found) found.why().text = doing;
    return found;
  }
  const std::error_code why = text.why().code;
  if (why == errc::no_such_name) {
    return failure{errc::connection_refused,
                   doing + ", which a server writes when it begins and removes when it ends"};
  }
  return failure{why == errc::not_supported ? make_error_code(errc::bad_address) : why, doing};
}

address_file::~address_file() {
  struct ::stat ours = {};
  struct ::stat there = {};
  if (!file_ || ::fstat(file_.get(), &ours) != 0 || ::stat(path_.c_str(), &there) != 0) return;
  if (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) ::unlink(path_.c_str());
}

}  // namespace ucx::detail
