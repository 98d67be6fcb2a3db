#include "copying/remote_ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "output/exit_code.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::tool {
namespace {

/// Calls `what`; its ucx::error becomes a failure that says of which URL.
template <class Call>
auto told_of(const url& of, Call&& what) {
  try {
    return what();
  } catch (const error& failed) {
    const std::string name = ucx::to_string(of);
    const std::string text = failed.what();
    throw failure(exit_code_of(failed.code()),
                  text.find(name) == std::string::npos ? fmt::format("{}: {}", name, text) : text);
  }
}

/// Has the owner hash a range; where it is of a version that does not, or has memory, the bytes
/// are fetched and hashed here.
std::vector<content_digest> digests_of(const url& of, server_clients& clients,
                                       remote_region& region, const digest_range& wanted) {
  std::error_code ec;
  std::vector<content_digest> all = clients.digest(of, region, wanted, ec);
  if (!ec) return all;
  if (ec != errc::not_supported) throw error(ec, "hashing " + region.description());
  std::vector<std::byte> piece(std::min<std::uint64_t>(digest_chunk, wanted.length));
  std::uint64_t offset = wanted.offset;
  for (std::uint64_t left = wanted.length; left > 0;) {
    content_hasher hasher;
    for (std::uint64_t of_chunk = std::min(wanted.chunk, left); of_chunk > 0;) {
      const std::span<std::byte> into(piece.data(),
                                      std::min<std::uint64_t>(piece.size(), of_chunk));
      region.read_at(offset, into);
      hasher.update(into);
      offset += into.size();
      left -= into.size();
      of_chunk -= into.size();
    }
    all.push_back(hasher.digest());
  }
  return all;
}

class remote_source final : public copy_source {
 public:
  remote_source(const url& from, const copy_terms& terms, server_clients& clients)
      : from_(from),
        clients_(clients),
        client_(clients.of(from)),
        region_(client_.open(from.name())),
        is_checked_(terms.verify && region_.kind() == memory_kind::host),
        size_(region_.size()),
        before_(region_.content()) {}

  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> into) override {
    told_of(from_, [&] { handle().read_at(offset, into, {.verify = is_checked_}); });
  }
  std::uint64_t next_data(std::uint64_t offset) override { return offset; }
  std::vector<content_digest> digests(const digest_range& wanted) override {
    return told_of(from_, [&] {
      remote_region mine = handle();
      return digests_of(from_, clients_, mine, wanted);
    });
  }
  source_facts facts() override {
    return told_of(from_, [&]() -> source_facts {
      const entry described = client_.stat(from_.name());
      if (described.type != entry_type::file) return {};
      return {.modified = described.modified};
    });
  }
  void check_unchanged() override {
    if (!region_.can_refresh_size()) return;
    const bool is_same = told_of(from_, [&] {
      remote_region mine = handle();
      return client_.refresh_size(mine).size == size_ && mine.content() == before_;
    });
    if (is_same) return;
    throw failure(exit_code::content_changed,
                  ucx::to_string(from_) + ": it was changed while it was copied");
  }

 private:
  /// A handle serves one thread at a time.
  remote_region handle() {
    const std::lock_guard guard(mutex_);
    return region_.share();
  }

  const url from_;
  server_clients& clients_;
  client& client_;
  std::mutex mutex_;
  remote_region region_;
  const bool is_checked_;  // as it comes: of a device's memory only the whole can be
  const std::uint64_t size_;
  const content_id before_;
};

class remote_target final : public copy_target {
 public:
  remote_target(const url& to, std::uint64_t size, const copy_terms& terms, server_clients& clients)
      : to_(to),
        clients_(clients),
        client_(clients.of(to)),
        may_resume_(terms.resume),
        is_compared_(terms.verify),
        written_(to) {
    if (terms.resume) {
      written_ = partial_of(to);
      region_.emplace(open_partial());
      present_ = region_->size();
      is_kept_ = present_ > 0;
      return;
    }
    region_.emplace(open(terms.verify));
    grows_ = region_->max_size() > region_->size();
    check_room(size);
  }
  ~remote_target() override {
    // A file without a name goes with the region.
    if (written_ != to_ && !is_kept_ && !is_gone_) remove_partial();
  }

  std::uint64_t present() const noexcept override { return present_; }
  std::vector<content_digest> digests(const digest_range& wanted) override {
    return told_of(written_, [&] { return digests_of(written_, clients_, *region_, wanted); });
  }
  void begin(std::uint64_t present) override {
    if (present == present_) return;
    told_of(written_, [&] { client_.resize(*region_, present); });
  }
  bool may_have_holes() const noexcept override { return grows_; }
  void write(std::uint64_t offset, std::span<const std::byte> from) override {
    if (!grows_) check_room(offset + from.size());
    told_of(written_, [&] { region_->write_at(offset, from); });
  }
  void complete(std::uint64_t size) override {
    told_of(written_, [&] {
      if (is_compared_) region_->flush();
      if (grows_ && region_->size() < size) client_.resize(*region_, size);
    });
  }
  void commit(const source_facts&) override {
    told_of(written_, [&] {
      if (!grows_) return region_->flush();
      client_.commit(*region_, {.close = true});
      region_.reset();
      if (written_ == to_) return remove_stale();
      client_.rename(written_.name(), to_.name());
      is_gone_ = true;
    });
  }
  bool keep(bool is_good) noexcept override {
    is_kept_ = may_resume_ && (is_good || !remove_partial());
    return is_kept_;
  }

 private:
  static url partial_of(const url& to) {
    return location(to).beside(partial_name(location(to).leaf())).remote();
  }
  void check_room(std::uint64_t size) const {
    if (region_->max_size() >= size) return;
    throw failure(exit_code::no_space,
                  fmt::format("{}: {} bytes do not fit into {}", ucx::to_string(to_), size,
                              region_->max_size()),
                  failure::reach::one_file);
  }
  /// Returns whether there is none any more.
  bool remove_partial() noexcept {
    std::error_code ec;
    // Released, it would still be busy for a moment.
    if (region_) client_.commit(*region_, {.close = true}, {}, ec);
    region_.reset();
    client_.remove(written_.name(), {}, ec);
    is_gone_ = !ec || ec == errc::no_such_name;
    return is_gone_;
  }
  /// Removes what an interrupted copy has left, which is of no use any more; fails if it is being
  /// written.
  void remove_stale() noexcept {
    try {
      std::error_code ignored;
      client_.remove(partial_of(to_).name(), {}, ignored);
    } catch (const std::exception&) {  // so long a name none can have
    }
  }
  remote_region open_partial() {
    const create_options wanted{.mode = creation::append, .readable = true};
    try {
      return client_.create(written_.name(), wanted);
    } catch (const error& why) {
      // Memory has no name beside it.
      if (why.code() != errc::no_such_name && why.code() != errc::not_supported) throw;
      std::error_code missing;
      client_.stat(to_.name(), {}, missing);
      if (missing) throw;
      throw failure(exit_code::usage,
                    ucx::to_string(to_) + ": it is no file of a store, which could be resumed");
    }
  }
  remote_region open(bool readable) {
    try {
      return client_.create(to_.name(), {.mode = creation::overwrite, .readable = readable});
    } catch (const error& why) {
      // A server from before there were stores; and what is for writing only is not for reading.
      const bool may_be_there =
          why.code() == errc::not_supported || (readable && why.code() == errc::permission_denied);
      if (!may_be_there) throw;
      std::error_code ec;
      remote_region there =
          client_.open(to_.name(), readable ? access::read_write : access::write, {}, ec);
      if (ec) throw;
      return there;
    }
  }

  const url to_;
  server_clients& clients_;
  client& client_;
  const bool may_resume_;
  const bool is_compared_;
  url written_;
  std::optional<remote_region> region_;
  bool grows_ = true;
  bool is_kept_ = false;
  bool is_gone_ = false;  // the partial file
  std::uint64_t present_ = 0;
};

}  // namespace

std::unique_ptr<copy_source> open_remote_source(const url& from, const copy_terms& terms,
                                                server_clients& clients) {
  return told_of(from, [&] { return std::make_unique<remote_source>(from, terms, clients); });
}

std::unique_ptr<copy_target> open_remote_target(const url& to, std::uint64_t size,
                                                const copy_terms& terms, server_clients& clients) {
  return told_of(to, [&] { return std::make_unique<remote_target>(to, size, terms, clients); });
}

}  // namespace ucx::tool
