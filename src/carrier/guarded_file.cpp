#include "carrier/guarded_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/owned_descriptor.hpp"
#include "ucp/status.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t longest_guarded_file = std::size_t{1} << 20U;
constexpr int longest_wait_ms = 5000;

result<void> check_owner(const struct ::stat& facts, file_guard guard, const std::string& doing) {
  const bool is_of_user = facts.st_uid == ::geteuid();
  if (!is_of_user && (guard == file_guard::secret || facts.st_uid != 0)) {
    return failure{errc::not_secure, doing + ": it belongs to user " +
                                         std::to_string(facts.st_uid) + ", and not to " +
                                         std::to_string(::geteuid())};
  }
  const unsigned forbidden = guard == file_guard::secret ? 0077U : 0022U;
  if ((facts.st_mode & forbidden) == 0) return {};
  std::array<char, 8> mode = {};
  std::snprintf(mode.data(), mode.size(), "%04o", facts.st_mode & 07777U);
  return failure{errc::not_secure, doing + ": its mode is " + mode.data() +
                                       (guard == file_guard::secret
                                            ? ", so others may see or change it; `chmod 600` it"
                                            : ", so others may change it; `chmod go-w` it")};
}

bool is_descriptor(const std::filesystem::path& file) {
  const std::string folder = file.parent_path().string();
  return folder == "/dev/fd" || folder == "/proc/self/fd";
}

/// A user that may write a folder can put other files in it, of those that this side would trust.
result<void> check_folder_of(const std::filesystem::path& file, const std::string& doing) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  struct ::stat facts = {};
  if (::stat(folder.c_str(), &facts) != 0) return failure_of_file(doing);
  const bool is_foreign = facts.st_uid != ::geteuid() && facts.st_uid != 0;
  const bool is_open = (facts.st_mode & 0022U) != 0 && (facts.st_mode & S_ISVTX) == 0;
  if (!is_foreign && !is_open) return {};
  return failure{errc::not_secure,
                 doing + ": others may replace it, in the folder " + folder.string() +
                     (is_foreign ? ", which belongs to user " + std::to_string(facts.st_uid)
                                 : "; `chmod go-w` that")};
}

/// A link counts by its own folder and by that of what it leads to.
result<void> check_folders(const std::filesystem::path& file, const std::string& doing) {
  if (is_descriptor(file)) return {};
  if (const auto checked = check_folder_of(file, doing); !checked) return checked.why();
  std::error_code ec;
  const std::filesystem::path real = std::filesystem::canonical(file, ec);
  if (ec) return failure{from_errno(ec.value()), doing + ": " + ec.message()};
  return check_folder_of(real, doing);
}

/// A named pipe has a writer that may never come; one that this process has been given may be slow.
result<void> check_kind(const struct ::stat& facts, const std::filesystem::path& file,
                        const std::string& doing) {
  if (S_ISDIR(facts.st_mode)) return failure{errc::not_supported, doing + ": it is a directory"};
  if (S_ISREG(facts.st_mode) || is_descriptor(file)) return {};
  return failure{errc::not_supported, doing + ": it is no regular file"};
}

/// Waits until there is more to read, a while at most.
result<void> wait_for_more(int descriptor, const std::string& doing) {
  ::pollfd waited{descriptor, POLLIN, 0};
  const int found = ::poll(&waited, 1, longest_wait_ms);
  if (found > 0 || (found < 0 && errno == EINTR)) return {};
  if (found < 0) return failure_of_file(doing);
  return failure{errc::timed_out, doing + ": the other end has written nothing for 5 s"};
}

}  // namespace

failure failure_of_file(const std::string& doing) {
  const int number = errno;
  const errc code = number == ENOENT ? errc::no_such_name : from_errno(number);
  return failure{code, doing + ": " + std::generic_category().message(number)};
}

result<file_text> read_guarded(const std::filesystem::path& file, file_guard guard,
                               std::size_t room, const std::string& doing) {
  const owned_descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened) return failure_of_file(doing);
  struct ::stat facts = {};
  if (::fstat(opened.get(), &facts) != 0) return failure_of_file(doing);
  if (const auto checked = check_kind(facts, file, doing); !checked) return checked.why();
  if (const auto checked = check_owner(facts, guard, doing); !checked) return checked.why();
  if (guard == file_guard::trusted) {
    if (const auto checked = check_folders(file, doing); !checked) return checked.why();
  }
  file_text made{locked_memory(longest_guarded_file + 1 + room)};
  while (made.size <= longest_guarded_file) {
    const auto rest = made.memory.bytes().subspan(made.size, longest_guarded_file + 1 - made.size);
    const ::ssize_t read = ::read(opened.get(), rest.data(), rest.size());
    if (read < 0 && errno == EINTR) continue;
    if (read < 0 && errno == EAGAIN) {
      if (const auto more = wait_for_more(opened.get(), doing); !more) return more.why();
      continue;
    }
    if (read < 0) return failure_of_file(doing);
    if (read == 0) return made;
    made.size += static_cast<std::size_t>(read);
  }
  return failure{errc::bad_configuration, doing + ": it has more than 1 MiB"};
}

}  // namespace ucx::detail
