#include "detail/catalogue.hpp"

#include <utility>

#include "detail/control_message.hpp"
#include "detail/published_name.hpp"

namespace ucx::detail {

bool catalogue::reserve(const std::string& name) {
  const std::unique_lock guard(mutex_);
  return names_.try_emplace(name).second;
}

void catalogue::fill(std::shared_ptr<published_name> made) {
  const std::unique_lock guard(mutex_);
  names_[made->described().name] = std::move(made);
}

void catalogue::give_up(const std::string& name) noexcept {
  const std::unique_lock guard(mutex_);
  const auto found = names_.find(name);
  if (found != names_.end() && !found->second) names_.erase(found);
}

void catalogue::remove(const published_name& gone) noexcept {
  std::shared_ptr<published_name> last;  // outlives the lock
  const std::unique_lock guard(mutex_);
  const auto found = names_.find(gone.described().name);
  if (found == names_.end() || found->second.get() != &gone) return;
  last = std::move(found->second);
  names_.erase(found);
}

std::shared_ptr<published_name> catalogue::find(std::string_view name) const {
  const std::shared_lock guard(mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<published_name>> catalogue::all() const {
  const std::shared_lock guard(mutex_);
  std::vector<std::shared_ptr<published_name>> found;
  found.reserve(names_.size());
  for (const auto& [name, published] : names_) {
    if (published) found.push_back(published);
  }
  return found;
}

std::size_t catalogue::size() const {
  const std::shared_lock guard(mutex_);
  return names_.size();
}

catalogue::page catalogue::list(std::string_view after, std::size_t budget) const {
  const std::shared_lock guard(mutex_);
  page made;
  std::size_t used = 0;
  for (auto at = names_.upper_bound(after); at != names_.end(); ++at) {
    if (!at->second) continue;
    const entry& described = at->second->described();
    used += encoded_size(described);
    if (used > budget && !made.entries.empty()) {
      made.more = true;
      break;
    }
    made.entries.push_back(described);
  }
  return made;
}

}  // namespace ucx::detail
