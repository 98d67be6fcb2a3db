// A directory that a server publishes: its life, and the parts that know the rest of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "file/file_facts.hpp"
#include "store/file_account.hpp"
#include "store/memory_directory.hpp"
#include "store/published.hpp"
#include "store/store_admission.hpp"
#include "store/store_contents.hpp"
#include "store/store_directory.hpp"
#include "store/store_disk.hpp"
#include "store/store_files.hpp"
#include "store/store_names.hpp"
#include "store/store_writing.hpp"
#include "ucx/entry.hpp"
#include "ucx/publication.hpp"

namespace ucx::detail {

class context_core;
class store_host;
class worker_core;

/// The parts of a store share this: the directory, what was decided of it, and its end. Under the
/// worker's lock, but for what `published` has, what never changes, and what closes it. Threads of
/// the store do what waits for a disk (`store_disk`).
class store_core final : public published, public std::enable_shared_from_this<store_core> {
 public:
  static result<std::shared_ptr<store_core>> make(const std::shared_ptr<store_host>& server,
                                                  std::shared_ptr<context_core> context,
                                                  const std::filesystem::path& directory,
                                                  const store_options& options);

  /// Has the directory removed when the store is closed.
  void keep(std::unique_ptr<memory_directory> memory) noexcept { memory_ = std::move(memory); }

  const entry& described() const noexcept override { return described_; }
  std::span<std::byte> bytes() const noexcept override { return {}; }
  std::string url() const override;
  bool is_open() const noexcept override { return !closed_.load(std::memory_order_acquire); }
  void close(clock::time_point until = clock::time_point::max()) noexcept override;
  /// The two halves of that, so that several stores share the time that their disks may take. The
  /// first withdraws the store, and has its threads end. The second waits for them until
  /// `farewell`; only the caller that got true from the first may call it.
  bool begin_close(clock::time_point until) noexcept;
  void end_close(std::chrono::steady_clock::time_point farewell) noexcept;

  const store_options& options() const noexcept { return options_; }
  /// Returns the worker whose lock it is under: the server's first.
  const std::weak_ptr<worker_core>& home() const noexcept { return home_; }
  /// Returns the name of a file of this store.
  std::string name_of(std::string_view path) const;
  /// Describes a file or directory as `name`.
  entry describe(std::string name, const file_facts& facts) const;

  // Its parts.
  store_admission& admission() noexcept { return admission_; }
  store_names& names() noexcept { return names_; }
  store_files& files() noexcept { return files_; }
  store_writing& writing() noexcept { return writing_; }
  store_contents& contents() noexcept { return contents_; }

  // For those.
  store_disk& disk() noexcept { return disk_; }
  const std::shared_ptr<context_core>& context() const noexcept { return context_; }
  /// Nothing any more where it is closed.
  const std::shared_ptr<store_directory>& directory() const noexcept { return directory_; }
  const std::shared_ptr<store_quota>& quota() const noexcept { return quota_; }

 private:
  store_core(const std::shared_ptr<store_host>& server, std::shared_ptr<context_core> context,
             std::shared_ptr<store_directory> directory, const store_options& options,
             std::uint64_t used);

  const std::weak_ptr<store_host> server_;
  const std::weak_ptr<worker_core> home_;
  const std::shared_ptr<context_core> context_;
  std::shared_ptr<store_directory> directory_;  // until it is closed
  std::unique_ptr<memory_directory> memory_;    // likewise, of one in memory
  const store_options options_;
  const std::shared_ptr<store_quota> quota_;
  entry described_;
  std::atomic<bool> closed_{false};
  store_disk disk_;
  store_admission admission_;
  store_names names_{*this};
  store_files files_{*this};
  store_writing writing_{*this};
  store_contents contents_{*this};
};

}  // namespace ucx::detail
