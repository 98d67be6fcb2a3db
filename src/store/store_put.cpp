// Files of a store that come whole.
#include <algorithm>
#include <new>
#include <utility>

#include "store/store_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

std::size_t room_for(const whole_file& file) noexcept {
  return file.bytes.size() + file.path.size() + store_core::room_of_file;
}

}  // namespace

/// The names and the room that one `put` takes, until it is answered.
class store_core::put_claim {
 public:
  put_claim(std::weak_ptr<store_core> store, std::size_t files) : store_(std::move(store)) {
    paths_.reserve(files);
    refusals_.resize(files);
  }
  put_claim(const put_claim&) = delete;
  put_claim& operator=(const put_claim&) = delete;
  ~put_claim() { release(); }

  void add(const std::string& path, std::size_t bytes) {
    const std::shared_ptr<store_core> store = store_.lock();
    paths_.push_back(path);
    store->written_.insert(path);
    store->put_bytes_ += bytes;
    bytes_ += bytes;
  }
  void release() noexcept {
    if (const std::shared_ptr<store_core> store = store_.lock()) {
      store->put_bytes_ -= bytes_;
      for (const std::string& each : paths_) store->written_.erase(each);
    }
    bytes_ = 0;
    paths_.clear();
  }
  bool empty() const noexcept { return paths_.empty(); }
  /// Returns the same answer for each, without needing memory for it.
  std::vector<std::error_code> refusals(std::error_code why) noexcept {
    std::fill(refusals_.begin(), refusals_.end(), why);
    return std::move(refusals_);
  }

 private:
  const std::weak_ptr<store_core> store_;
  std::vector<std::string> paths_;
  std::size_t bytes_ = 0;
  std::vector<std::error_code> refusals_;
};

std::error_code store_core::claim(const whole_file& file, put_claim& claimed) {
  if (!is_open()) return errc::no_such_name;
  if (const std::error_code refused = check_change(file.path)) return refused;
  if (file.bytes.size() > largest_file()) return errc::no_space;
  claimed.add(file.path, room_for(file));
  return {};
}

bool store_core::has_room(const std::vector<whole_file>& files) const noexcept {
  std::size_t room = most_put - put_bytes_;
  for (const whole_file& each : files) {
    const std::size_t taken = room_for(each);
    if (taken > room) return false;
    room -= taken;
  }
  return true;
}

void store_core::put(std::vector<whole_file> files, bool exclusive, bool durable, stored answer) {
  const auto claimed = std::make_shared<put_claim>(weak_from_this(), files.size());
  for (whole_file& each : files) {
    each.outcome = claim(each, *claimed);
    if (each.outcome) each.bytes = std::vector<std::byte>();
  }
  if (claimed->empty()) {
    std::vector<std::error_code> outcomes;
    for (const whole_file& each : files) outcomes.push_back(each.outcome);
    return answer(std::move(outcomes));
  }
  put_job job{.files = std::move(files),
              .exclusive = exclusive,
              .durable = durable || options_.sync_on_commit,
              .directory = directory_,
              .quota = quota_,
              .by = queue(lane::putting)};
  const auto end = [claimed, answer = std::move(answer)](std::error_code ec,
                                                         std::vector<std::error_code> outcomes) {
    claimed->release();
    answer(ec ? claimed->refusals(ec) : std::move(outcomes));
  };
  // Bounded by their room. On a thread of its own: of so many files each may take the device a
  // while, and other writers wait for none of them.
  ask<std::vector<std::error_code>>(lane::putting, std::move(job), end, true);
}

}  // namespace ucx::detail
