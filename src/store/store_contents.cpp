#include "store/store_contents.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "file/file_source.hpp"
#include "store/store_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

std::size_t room_for(const whole_file& file) noexcept {
  return file.bytes.size() + file.path.size() + store_contents::room_of_file;
}

}  // namespace

/// The names and the room that one `put` takes, until it is answered.
class store_contents::put_claim {
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
    store->admission().take_name(path);
    store->contents().put_bytes_ += bytes;
    bytes_ += bytes;
  }
  void release() noexcept {
    if (const std::shared_ptr<store_core> store = store_.lock()) {
      store->contents().put_bytes_ -= bytes_;
      for (const std::string& each : paths_) store->admission().free_name(each);
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

std::optional<store_contents::content> store_contents::content_now(const std::string& path,
                                                                   std::size_t most) const {
  if (!store_.is_open() || !store_.names().is_path(path)) return std::nullopt;
  const std::optional<opened_file> file = store_.directory()->open_now(path);
  if (!file || file->facts.size > most) return std::nullopt;
  content made;
  made.facts = file->facts;
  made.bytes.resize(static_cast<std::size_t>(made.facts.size));
  const auto source = open_file::adopt(file->descriptor.get());
  if (source->read_now(0, made.bytes) < made.bytes.size()) return std::nullopt;
  // Changed meanwhile, it is a matter for who opens it.
  const std::optional<file_facts> now = known_facts(file->descriptor.get());
  if (!now || now->generation != made.facts.generation) return std::nullopt;
  return made;
}

std::error_code store_contents::claim(const whole_file& file, put_claim& claimed) {
  if (!store_.is_open()) return errc::no_such_name;
  if (const std::error_code refused = store_.admission().check_change(file.path)) return refused;
  if (file.bytes.size() > store_.admission().largest_file()) return errc::no_space;
  claimed.add(file.path, room_for(file));
  return {};
}

bool store_contents::has_room(const std::vector<whole_file>& files) const noexcept {
  std::size_t room = most_put - put_bytes_;
  for (const whole_file& each : files) {
    const std::size_t taken = room_for(each);
    if (taken > room) return false;
    room -= taken;
  }
  return true;
}

void store_contents::put(std::vector<whole_file> files, bool exclusive, bool durable,
                         stored answer) {
  const auto claimed = std::make_shared<put_claim>(store_.weak_from_this(), files.size());
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
              .durable = durable || store_.options().sync_on_commit,
              .directory = store_.directory(),
              .quota = store_.quota(),
              .by = store_.disk().queue(store_disk::lane::putting)};
  const auto end = [claimed, answer = std::move(answer)](std::error_code ec,
                                                         std::vector<std::error_code> outcomes) {
    claimed->release();
    answer(ec ? claimed->refusals(ec) : std::move(outcomes));
  };
  // Bounded by their room. They have a separate thread: each of so many files may take the device a
  // while, and other writers wait for none of them.
  store_.disk().ask<std::vector<std::error_code>>(store_disk::lane::putting, std::move(job), end,
                                                  true);
}

}  // namespace ucx::detail
