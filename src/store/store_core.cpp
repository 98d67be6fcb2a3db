#include "store/store_core.hpp"

#include <mutex>
#include <system_error>
#include <utility>

#include "base/disk_thread.hpp"
#include "store/store_host.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

store_core::store_core(const std::shared_ptr<store_host>& server,
                       std::shared_ptr<context_core> context,
                       std::shared_ptr<store_directory> directory, const store_options& options,
                       std::uint64_t used)
    : server_(server),
      home_(server->home()),
      context_(std::move(context)),
      directory_(std::move(directory)),
      options_(store_admission::decided(options)),
      quota_(std::make_shared<store_quota>(options.quota, used)),
      disk_(*this, server),
      admission_(*this, server->open_files_of_stores(), options.max_open_files == 0) {
  described_.name = options.prefix;
  described_.type = entry_type::directory;
  described_.granted = options.writable ? access::read_write : access::read;
}

result<std::shared_ptr<store_core>> store_core::make(const std::shared_ptr<store_host>& server,
                                                     std::shared_ptr<context_core> context,
                                                     const std::filesystem::path& directory,
                                                     const store_options& options) {
  auto top = store_directory::open(directory, options.writable);
  if (!top) return top.why();
  if (!context->has(feature::am)) {
    return failure{errc::feature_disabled,
                   "publishing a store: its context was made without feature::am"};
  }
  result<std::uint64_t> used = std::uint64_t{0};
  if (options.quota != store_options().quota) used = (*top)->listing().total_size();
  if (!used) {
    return failure{used.why().code,
                   "counting what is in the directory \"" + directory.string() + "\""};
  }
  return std::shared_ptr<store_core>(
      new store_core(server, std::move(context), *std::move(top), options, *used));
}

std::string store_core::url() const {
  const std::shared_ptr<store_host> server = server_.lock();
  return server ? server->url(described_.name) : std::string();
}

std::string store_core::name_of(std::string_view path) const {
  if (path.empty()) return options_.prefix;
  return options_.prefix.empty() ? std::string(path) : options_.prefix + '/' + std::string(path);
}

entry store_core::describe(std::string name, const file_facts& facts) const {
  entry made = described_;
  made.name = std::move(name);
  made.type = facts.is_directory ? entry_type::directory : entry_type::file;
  tell(made, facts);
  return made;
}

void store_core::close(clock::time_point until) noexcept {
  if (begin_close(until)) {
    end_close(std::chrono::steady_clock::now() + disk_thread::longest_farewell);
  }
}

bool store_core::begin_close(clock::time_point until) noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return false;
  const std::shared_ptr<store_host> server = server_.lock();
  if (!server) return false;
  server->withdraw(*this);
  files_.withdraw(*server, until);
  // From here on no thread is made.
  files_.discard_unnamed(*server->home());
  disk_.begin_stop();
  return true;
}

/// No client is told anything any more, and a disk that hangs is left behind.
void store_core::end_close(std::chrono::steady_clock::time_point farewell) noexcept {
  const std::shared_ptr<store_host> server = server_.lock();
  if (!server) return;
  disk_.stop(farewell);
  memory_.reset();  // nothing writes there any more
  // The directory may be published again at once, although this publication still exists.
  const std::lock_guard guard(server->home()->lock());
  directory_.reset();
  disk_.end_questions(*server->home());
}

}  // namespace ucx::detail
