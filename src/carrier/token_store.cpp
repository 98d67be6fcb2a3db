#include "carrier/token_store.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "carrier/guarded_file.hpp"
#include "os/folder_lock.hpp"
#include "ucp/status.hpp"

namespace ucx::detail {
namespace {

constexpr std::string_view accept_word = "accept ";
constexpr std::string_view use_word = "use ";

/// The file of tokens, with room for so many bytes more.
result<file_text> read_whole(const std::filesystem::path& file, std::size_t room) {
  return read_guarded(file, file_guard::secret, room, "reading the tokens of " + file.string());
}

struct line_parts {
  bool is_accepted = true;
  std::string_view name;
  std::string_view token;
};

/// Returns nothing for a line that is empty, or a comment; `wrong` where it is something else.
std::optional<line_parts> parse_line(std::string_view line, std::string_view& wrong) noexcept {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_not_of(" \t") == line.npos || line.starts_with('#')) return std::nullopt;
  line_parts parts;
  parts.is_accepted = line.starts_with(accept_word);
  if (!parts.is_accepted && !line.starts_with(use_word)) {
    wrong = "begins with neither \"accept\" nor \"use\"";
    return std::nullopt;
  }
  line.remove_prefix(parts.is_accepted ? accept_word.size() : use_word.size());
  parts.name = line.substr(0, line.find(' '));
  parts.token = line.substr(std::min(parts.name.size() + 1, line.size()));
  wrong = complaint_about_token_name(parts.name);
  if (!wrong.empty()) return std::nullopt;
  return parts;
}

/// Calls `with` for each line, with its end.
template <class With>
void each_line(std::string_view text, With with) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t taken = end == text.npos ? text.size() : end + 1;
    with(line, text.substr(0, taken));
    text.remove_prefix(taken);
  }
}

result<token_list> parse(std::string_view text, const std::string& file) {
  token_list made;
  made.secrets = locked_memory(
      token_size * static_cast<std::size_t>(1 + std::count(text.begin(), text.end(), '\n')));
  std::size_t number = 0;
  std::string complaint;
  each_line(text, [&](std::string_view line, std::string_view) {
    ++number;
    std::string_view wrong;
    const auto parts = parse_line(line, wrong);
    if (parts) {
      const auto into =
          made.secrets.bytes().subspan(made.entries.size() * token_size).first<token_size>();
      const token_verdict verdict = read_token(parts->token, into);
      if (verdict == token_verdict::intact) {
        made.entries.push_back({parts->is_accepted, std::string(parts->name)});
      } else {
        wrong = words_of(verdict);
      }
    }
    if (!wrong.empty() && complaint.empty()) {
      complaint = file + ", line " + std::to_string(number) + ": the token or its name " +
                  std::string(wrong);
    }
  });
  if (!complaint.empty()) return failure{errc::bad_configuration, complaint};
  return made;
}

result<void> write_whole(int descriptor, std::string_view text, const std::string& doing) {
  while (!text.empty()) {
    const ::ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure_of_file(doing);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(descriptor) != 0) return failure_of_file(doing);
  return {};
}

/// A reader sees the old text or the new one. A link stays, and what it leads to is replaced.
result<void> replace(const std::filesystem::path& named, std::string_view text) {
  const std::string doing = "writing the tokens of " + named.string();
  std::error_code is_none;
  std::filesystem::path file = std::filesystem::canonical(named, is_none);
  if (is_none) file = named;
  std::string beside = file.string() + ".XXXXXX";
  const owned_descriptor made(::mkostemp(beside.data(), O_CLOEXEC));
  if (!made) return failure_of_file(doing);
  auto written = write_whole(made.get(), text, doing);
  if (written && ::rename(beside.c_str(), file.c_str()) != 0) written = failure_of_file(doing);
  if (!written) ::unlink(beside.c_str());
  return written;
}

/// One program at a time changes the files of a folder.
result<owned_descriptor> lock_folder_of(const std::filesystem::path& file) {
  const std::string doing = "changing the tokens of " + file.string();
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code ignored;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), ignored);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failure_of_file(doing);
  owned_descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return failure_of_file(doing);
  const std::error_code ec = lock_folder(opened.get());
  if (ec == errc::busy)
    return failure{ec, doing + ": another process holds the lock of its folder"};
  if (ec && !has_no_locks(ec)) {
    return failure{from_errno(ec.value()), doing + ": " + ec.message()};
  }
  return opened;
}

constexpr std::size_t longest_line = longest_token_name + token_text_size + 16;

/// Reads the file, or begins one that is not there, with room for one line more.
result<file_text> read_or_begin(const std::filesystem::path& file) {
  auto whole = read_whole(file, longest_line);
  if (!whole && whole.why().code == errc::no_such_name) {
    whole = file_text{locked_memory(longest_line)};
  }
  return whole;
}

void append_line(file_text& whole, const token_entry& entry,
                 std::span<const std::byte, token_size> secret) {
  locked_memory text(token_text_size);
  const std::span<char, token_text_size> letters(reinterpret_cast<char*>(text.bytes().data()),
                                                 token_text_size);
  write_token(secret, letters);
  if (whole.size != 0 && !whole.text().ends_with('\n')) whole.append("\n");
  whole.append(entry.is_accepted ? accept_word : use_word);
  whole.append(entry.name);
  whole.append(" ");
  whole.append({letters.data(), letters.size()});
  whole.append("\n");
}

}  // namespace

std::filesystem::path own_token_file() {
  const char* const config = ::secure_getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return std::filesystem::path(config) / "ucxio/tokens";
  const char* const home = ::secure_getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".config/ucxio/tokens";
}

const char* token_of_environment() noexcept {
  const char* const text = ::secure_getenv(token_variable);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

result<token_list> read_tokens(const std::filesystem::path& file) {
  const auto whole = read_whole(file, 1);
  if (!whole) return whole.why();
  return parse(whole->text(), file.string());
}

result<void> add_token(const std::filesystem::path& file, const token_entry& entry,
                       std::span<const std::byte, token_size> secret) {
  if (const auto wrong = complaint_about_token_name(entry.name); !wrong.empty()) {
    return failure{errc::bad_name, "the name of a token " + std::string(wrong)};
  }
  const auto locked = lock_folder_of(file);
  if (!locked) return locked.why();
  auto whole = read_or_begin(file);
  if (!whole) return whole.why();
  const auto present = parse(whole->text(), file.string());
  if (!present) return present.why();
  const auto alike =
      std::count_if(present->entries.begin(), present->entries.end(), [&](const token_entry& each) {
        return each.is_accepted == entry.is_accepted && each.name == entry.name;
      });
  if (alike >= 2) {
    return failure{errc::already_exists, "two tokens named " + entry.name + " are in " +
                                             file.string() + "; remove the older one first"};
  }
  append_line(*whole, entry, secret);
  return replace(file, whole->text());
}

result<bool> ensure_own_token(const std::filesystem::path& file) {
  const auto has_one = [](const token_list& list) {
    return std::any_of(list.entries.begin(), list.entries.end(),
                       [](const token_entry& each) { return each.is_own(); });
  };
  if (const auto present = read_tokens(file)) {
    if (has_one(*present)) return false;
  } else if (present.why().code != errc::no_such_name) {
    return present.why();
  }
  const auto locked = lock_folder_of(file);
  if (!locked) {
    const auto others = read_tokens(file);
    if (others && has_one(*others)) return false;  // made by who has the lock
    return locked.why();
  }
  auto whole = read_or_begin(file);
  if (!whole) return whole.why();
  const auto present = parse(whole->text(), file.string());
  if (!present) return present.why();
  if (has_one(*present)) return false;  // made meanwhile
  const locked_memory memory(token_size);
  const auto secret = memory.bytes().first<token_size>();
  if (const auto drawn = draw_token(secret); !drawn) return drawn.why();
  append_line(*whole, {true, std::string(own_token_name)}, secret);
  if (const auto written = replace(file, whole->text()); !written) return written.why();
  return true;
}

result<void> draw_token(std::span<std::byte, token_size> secret) {
  ::ssize_t drawn = 0;
  do {
    drawn = ::getrandom(secret.data(), secret.size(), 0);
  } while (drawn < 0 && errno == EINTR);
  if (drawn == static_cast<::ssize_t>(secret.size())) return {};
  return failure{errc::io_error, "the system gives no random bytes for a token"};
}

result<std::size_t> remove_tokens(const std::filesystem::path& file, std::string_view name,
                                  bool oldest_only) {
  const auto locked = lock_folder_of(file);
  if (!locked) return locked.why();
  const auto whole = read_whole(file, 1);
  if (!whole) return whole.why();
  file_text left{locked_memory(whole->size + 1)};
  std::size_t removed = 0;
  // The oldest is one of those that are accepted, where there are some.
  bool is_accepted = false;
  each_line(whole->text(), [&](std::string_view line, std::string_view) {
    std::string_view wrong;
    const auto parts = parse_line(line, wrong);
    is_accepted = is_accepted || (parts && parts->name == name && parts->is_accepted);
  });
  each_line(whole->text(), [&](std::string_view line, std::string_view with_end) {
    std::string_view wrong;
    const auto parts = parse_line(line, wrong);
    const bool is_oldest = parts && removed == 0 && parts->is_accepted == is_accepted;
    const bool goes = parts && parts->name == name && (!oldest_only || is_oldest);
    if (!goes) return left.append(with_end);
    ++removed;
  });
  if (removed == 0) return removed;
  if (const auto written = replace(file, left.text()); !written) return written.why();
  return removed;
}

}  // namespace ucx::detail
