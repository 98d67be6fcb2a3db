#include "store/put_job.hpp"

#include <new>
#include <utility>

#include "store/commit_job.hpp"
#include "store/store_file.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Removes the file, and what is counted for it, unless it gets its name.
class unnamed_file {
 public:
  unnamed_file(const store_directory& directory, file_account& account) noexcept
      : directory_(directory), account_(account) {}
  unnamed_file(const unnamed_file&) = delete;
  unnamed_file& operator=(const unnamed_file&) = delete;
  ~unnamed_file() {
    if (!kept_ && !spooled_.empty()) directory_.discard(spooled_);
    if (!kept_) account_.abandon();
  }

  std::string& spooled() noexcept { return spooled_; }
  void keep() noexcept { kept_ = true; }

 private:
  const store_directory& directory_;
  file_account& account_;
  std::string spooled_;
  bool kept_ = false;
};

}  // namespace

std::vector<std::error_code> put_job::operator()() const {
  std::vector<std::error_code> outcomes;
  outcomes.reserve(files.size());
  last_parent last;
  for (const whole_file& each : files) {
    try {
      outcomes.push_back(each.outcome ? each.outcome : write(each, last));
    } catch (const std::bad_alloc&) {
      outcomes.push_back(errc::no_memory);
    }
  }
  return outcomes;
}

std::error_code put_job::write(const whole_file& file, last_parent& last) const {
  if (by && by->is_left_behind()) return errc::revoked;
  std::error_code ec;
  const auto account = std::make_shared<file_account>(quota, 0);
  if ((ec = account->take(file.bytes.size()))) return ec;
  unnamed_file unnamed(*directory, *account);
  result<spooled_file> made = directory->create_unnamed();
  if (!made) return made.why().code;
  unnamed.spooled() = std::move(made->name);
  // Closed here: this is a thread that may wait for the disk.
  const auto opened = std::make_shared<store_file>(std::move(made->descriptor), nullptr);
  if (!file.bytes.empty()) ec = opened->write(0, file.bytes);
  account->wrote(*opened, ec);
  if (ec) return ec;
  const commit_job naming{.file = opened,
                          .spooled = unnamed.spooled(),
                          .path = file.path,
                          .exclusive = exclusive,
                          .durable = durable,
                          .directory = directory,
                          .quota = quota,
                          .account = account,
                          .by = by};
  unnamed.keep();
  // A durable file looks its directory up anew: sync_name() syncs where the path leads to.
  return naming.give_name(durable ? nullptr : &last).why;
}

}  // namespace ucx::detail
