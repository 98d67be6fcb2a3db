#include "copying/local_ends.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "copying/local_file.hpp"
#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

/// Only a file longer than this is read ahead for.
constexpr ::off_t longest_at_once = ::off_t{128} << 10U;

bool same(const ::timespec& a, const ::timespec& b) noexcept {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

class local_source final : public copy_source {
 public:
  explicit local_source(const std::filesystem::path& path)
      : file_(path, O_RDONLY | O_NONBLOCK), before_(file_.status()) {
    if (S_ISDIR(before_.st_mode)) {
      throw failure(exit_code::usage, path.string() + " is a directory: -r copies it");
    }
    if (!S_ISREG(before_.st_mode)) {
      throw failure(exit_code::usage, path.string() + " is no regular file");
    }
    std::byte first{};
    if (before_.st_size == 0 && file_.read_at(0, {&first, 1}) > 0) {
      throw failure(exit_code::usage,
                    path.string() + " does not tell how long it is: use cat, or put");
    }
    if (before_.st_size > longest_at_once) {
      ::posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
    }
  }

  std::uint64_t size() const noexcept override {
    return static_cast<std::uint64_t>(before_.st_size);
  }
  void read(std::uint64_t offset, std::span<std::byte> into) override {
    if (file_.read_at(offset, into) < into.size()) fail_changed("it was cut off meanwhile");
  }
  std::uint64_t next_data(std::uint64_t offset) override {
    const ::off_t found = ::lseek(file_.descriptor(), static_cast<::off_t>(offset), SEEK_DATA);
    if (found >= 0) return std::min(static_cast<std::uint64_t>(found), size());
    return errno == ENXIO ? size() : offset;
  }
  std::vector<content_digest> digests(const digest_range& wanted) override {
    return file_.digests(wanted);
  }
  source_facts facts() override { return facts_of(before_); }
  void check_unchanged() override {
    const struct ::stat now = file_.status();
    if (now.st_size != before_.st_size || !same(now.st_mtim, before_.st_mtim) ||
        !same(now.st_ctim, before_.st_ctim)) {
      fail_changed("it was changed while it was copied");
    }
  }

 private:
  [[noreturn]] void fail_changed(const char* how) const {
    throw failure(exit_code::content_changed, file_.path().string() + ": " + how);
  }

  local_file file_;
  const struct ::stat before_;
};

/// Returns whether the file still has the name under which it was opened.
bool has_name(const local_file& file) {
  struct ::stat named = {};
  const struct ::stat mine = file.status();
  return ::lstat(file.path().c_str(), &named) == 0 && named.st_ino == mine.st_ino &&
         named.st_dev == mine.st_dev;
}

/// Keeps other copies away from it. Returns whether it still is the partial file. It may have got
/// its name since it was opened, and then it is a whole file of somebody's.
bool lock(const local_file& partial) {
  if (::flock(partial.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    throw failure(exit_code::failure,
                  partial.path().string() + ": another copy writes it just now");
  }
  if (!S_ISREG(partial.status().st_mode)) fail_at(partial.path(), "no regular file", EEXIST);
  return has_name(partial);
}

constexpr int partial_flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK;

/// Opens a partial file that did not exist; one that an earlier copy has left goes.
local_file open_new(const std::filesystem::path& partial) {
  for (;;) {
    if (const auto left = local_file::open_unless(ENOENT, partial, partial_flags)) {
      if (lock(*left) && ::unlink(partial.c_str()) != 0) {
        fail_at(partial, "cannot remove it", errno);
      }
    }
    auto made = local_file::open_unless(EEXIST, partial, partial_flags | O_CREAT | O_EXCL);
    if (made && lock(*made)) return std::move(*made);
  }
}

/// Opens what an earlier copy has left, if there is any.
local_file open_left(const std::filesystem::path& partial) {
  for (;;) {
    local_file opened(partial, partial_flags | O_CREAT);
    if (!lock(opened)) continue;
    const struct ::stat about = opened.status();
    if (about.st_uid == ::geteuid() && about.st_nlink == 1) return opened;
    throw failure(exit_code::permission,
                  partial.string() +
                      ": it is somebody else's, or has another name, too: without "
                      "--resume it is replaced");
  }
}

/// Throws where `size` bytes more do not fit: a server's word about a size fills no disk. A file
/// larger than the whole file system says nothing of other files. Zeros that become holes need no
/// room. A server's zeros are read all the same, and there may be no end of them.
void check_room(const local_file& file, std::uint64_t size, const copy_terms& terms) {
  const bool is_bounded = !terms.is_from_server || terms.largest != copy_terms().largest;
  if (terms.sparse && is_bounded) return;
  struct ::statvfs about = {};
  if (::fstatvfs(file.descriptor(), &about) != 0 || about.f_blocks == 0)
    return;  // it tells nothing
  const std::uint64_t block = about.f_frsize;
  const std::uint64_t free = block * (::geteuid() == 0 ? about.f_bfree : about.f_bavail);
  const std::uint64_t whole = block * about.f_blocks;
  const bool fits_never = size > whole;
  if (size <= free || (terms.sparse && !fits_never)) return;
  const std::string advice =
      terms.sparse ? fmt::format(
                         "the whole file system has {}: --max-size SIZE lets a server's "
                         "file of holes be so large",
                         whole)
                   : fmt::format("{} are free: {} (--sparse does not look, and writes no zeros)",
                                 free, std::error_code(ENOSPC, std::generic_category()).message());
  throw failure(exit_code::no_space,
                fmt::format("{}: {} bytes do not fit where {}", file.path().string(), size, advice),
                fits_never ? failure::reach::one_file : failure::reach::by_code);
}

void preserve(const local_file& of, const std::filesystem::path& path, const source_facts& like) {
  if (like.mode && ::fchmod(of.descriptor(), *like.mode) != 0) {
    fail_at(path, "cannot set its mode", errno);
  }
  if (!like.modified) return;
  const ::timespec at = {like.modified->seconds, like.modified->nanoseconds};
  const ::timespec times[2] = {at, at};
  if (::futimens(of.descriptor(), times) != 0) fail_at(path, "cannot set its time", errno);
}

/// A new file beside the one that it replaces.
class local_target final : public copy_target {
 public:
  local_target(const std::filesystem::path& path, std::uint64_t size, const copy_terms& terms)
      : path_(path),
        size_(size),
        terms_(terms),
        partial_(path.parent_path() / partial_name(path.filename().string())),
        file_(terms.resume ? open_left(partial_) : open_new(partial_)) {
    end_ = present_ = static_cast<std::uint64_t>(file_.status().st_size);
    is_kept_ = present_ > 0;
  }
  ~local_target() override { clean_up(); }

  std::uint64_t present() const noexcept override { return present_; }
  std::vector<content_digest> digests(const digest_range& wanted) override {
    return file_.digests(wanted);
  }
  void begin(std::uint64_t present) override {
    set_end(present);  // first: what goes makes room
    if (size_ > present) check_room(file_, size_ - present, terms_);
  }
  bool may_have_holes() const noexcept override { return true; }
  void write(std::uint64_t offset, std::span<const std::byte> from) override {
    file_.write_at(offset, from);
    end_ = std::max(end_, offset + from.size());
  }
  void complete(std::uint64_t size) override {
    set_end(size);
    if (!terms_.verify) return;
    // Bytes that are read back then come from the disk, as far as the system does as it is told.
    if (::fdatasync(file_.descriptor()) != 0) fail_at(partial_, "cannot write", errno);
    ::posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  void commit(const source_facts& like) override {
    if (terms_.preserve) preserve(file_, path_, like);
    file_.settle();
    if (!has_name(file_)) {
      throw failure(exit_code::failure,
                    partial_.string() + ": something else has taken its place meanwhile");
    }
    if (::rename(partial_.c_str(), path_.c_str()) != 0) {
      fail_at(path_, "cannot give it its name", errno);
    }
    is_ours_ = false;
    file_.close();
  }
  bool keep(bool is_good) noexcept override { return is_kept_ = is_good; }

 private:
  void set_end(std::uint64_t size) {
    if (end_ != size) file_.resize(size);
    end_ = size;
  }
  void clean_up() noexcept {
    try {
      if (is_ours_ && !is_kept_ && has_name(file_)) ::unlink(partial_.c_str());
    } catch (const failure&) {  // then it stays
    }
    is_ours_ = false;
  }

  const std::filesystem::path path_;
  const std::uint64_t size_;
  const copy_terms terms_;
  const std::filesystem::path partial_;
  std::uint64_t end_ = 0;  // how long it is
  local_file file_;
  bool is_ours_ = true;
  bool is_kept_ = false;
  std::uint64_t present_ = 0;
};

/// A device or a pipe: it gets the bytes one behind the other.
class device_target final : public copy_target {
 public:
  device_target(const std::filesystem::path& path, const copy_terms& terms)
      : file_(path, O_WRONLY) {
    if (!terms.resume && !terms.verify) return;
    throw failure(exit_code::usage,
                  path.string() + " is no regular file: it can not be resumed or verified");
  }
  std::uint64_t present() const noexcept override { return 0; }
  std::vector<content_digest> digests(const digest_range&) override { return {}; }
  void begin(std::uint64_t) override {}
  bool may_have_holes() const noexcept override { return false; }
  void write(std::uint64_t, std::span<const std::byte> from) override { file_.append(from); }
  void complete(std::uint64_t) override {}
  void commit(const source_facts&) override { file_.close(); }
  bool keep(bool) noexcept override { return false; }

 private:
  local_file file_;
};

}  // namespace

void preserve(const std::filesystem::path& directory, const source_facts& like) {
  const local_file opened(directory, O_RDONLY | O_DIRECTORY);
  preserve(opened, directory, like);
}

source_facts facts_of(const struct ::stat& about) {
  return {.modified =
              file_time{about.st_mtim.tv_sec, static_cast<std::uint32_t>(about.st_mtim.tv_nsec)},
          .mode = about.st_mode & 0777U};
}

std::unique_ptr<copy_source> open_local_source(const std::filesystem::path& path) {
  return std::make_unique<local_source>(path);
}

std::unique_ptr<copy_target> open_local_target(const std::filesystem::path& path,
                                               std::uint64_t size, const copy_terms& terms) {
  std::error_code ec;
  const std::filesystem::file_status itself = std::filesystem::symlink_status(path, ec);
  if (!is_symlink(itself) && (is_regular_file(itself) || !exists(itself))) {
    return std::make_unique<local_target>(path, size, terms);
  }
  const std::filesystem::file_status there = std::filesystem::status(path, ec);
  if (is_directory(there)) fail_at(path, "cannot replace it", EISDIR);
  const bool is_special = exists(there) && !is_regular_file(there);
  if (is_special) return std::make_unique<device_target>(path, terms);
  // The target of a link is replaced, and not the link.
  const std::filesystem::path meant = std::filesystem::weakly_canonical(path, ec);
  if (ec) fail_at(path, "cannot follow the link", ec.value());
  return std::make_unique<local_target>(meant, size, terms);
}

}  // namespace ucx::tool
