// Files of a store that come whole.
#include <algorithm>
#include <new>
#include <utility>

#include "detail/store_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

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
  const std::size_t taken = file.bytes.size() + file.path.size();
  if (taken > most_put - put_bytes_) return errc::busy;
  claimed.add(file.path, taken);
  return {};
}

void store_core::put(std::vector<whole_file> files, bool exclusive, bool durable, stored answer) {
  const auto claimed = std::make_shared<put_claim>(weak_from_this(), files.size());
  for (whole_file& each : files) {
    each.outcome = claim(each, *claimed);
    if (each.outcome) each.bytes = {};
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
              .freeing = queue(lane::writing)};
  const auto end = [claimed, answer = std::move(answer)](std::error_code ec,
                                                         std::vector<std::error_code> outcomes) {
    claimed->release();
    answer(ec ? claimed->refusals(ec) : std::move(outcomes));
  };
  ask<std::vector<std::error_code>>(lane::writing, std::move(job), end);
}

}  // namespace ucx::detail
