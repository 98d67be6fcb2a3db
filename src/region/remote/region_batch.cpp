#include "region/remote/region_batch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "connection/endpoint_core.hpp"
#include "connection/joint_operation.hpp"
#include "connection/write_tracker.hpp"
#include "cuda/device_pointer.hpp"
#include "region/remote/batch_read.hpp"
#include "region/remote/batch_write.hpp"
#include "region/remote/remote_region_core.hpp"
#include "wire/range_list.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Larger pieces gain nothing by sharing a message: each is most of one.
constexpr std::size_t largest_shared = std::size_t{16} << 10U;

std::size_t size_of(const read_piece& piece) noexcept { return piece.into.size(); }
std::size_t size_of(const write_piece& piece) noexcept { return piece.from.size(); }
bool is_here(const read_piece& piece) noexcept { return is_on_host(piece.into); }
bool is_here(const write_piece& piece) noexcept { return is_on_host(piece.from); }

/// How one kind of batch starts its parts.
struct reading {
  using piece = read_piece;
  static constexpr access wanted = access::read;
  static constexpr const char* name = "batch of reads";
  static constexpr operation_kind kind = operation_kind::read;
  remote_region_core& region;
  io_options options;

  bool shares() const noexcept { return !options.verify && region.shares_messages(access::read); }
  operation* start_alone(const read_piece& each, std::error_code& ec) const {
    return region.start_read(each.offset, each.into, options, ec);
  }
  operation& start_shared(std::span<const read_piece> shared, std::uint64_t total,
                          clock::time_point deadline) const {
    std::unique_ptr<batch_read> read(region.endpoint().worker().pool_of<batch_read>().take());
    read->begin(region.shared_from_this(), shared, total, deadline);
    return *read.release();
  }
};

struct writing {
  using piece = write_piece;
  static constexpr access wanted = access::write;
  static constexpr const char* name = "batch of writes";
  static constexpr operation_kind kind = operation_kind::write;
  remote_region_core& region;
  const std::shared_ptr<write_tracker>& tracker;
  io_options options;

  bool shares() const noexcept { return region.shares_messages(access::write); }
  operation* start_alone(const write_piece& each, std::error_code& ec) const {
    return region.start_write(tracker, each.offset, each.from, options, ec);
  }
  operation& start_shared(std::span<const write_piece> shared, std::uint64_t total,
                          clock::time_point deadline) const {
    std::unique_ptr<batch_write> write(region.endpoint().worker().pool_of<batch_write>().take());
    write->begin(region.shared_from_this(), tracker, shared, total, deadline);
    return *write.release();
  }
};

/// Collects the pieces of one message, and starts it when no more fit.
template <class Kind>
class sharing {
 public:
  sharing(const Kind& kind, joint_operation& all, clock::time_point deadline)
      : kind_(kind), all_(all), deadline_(deadline) {
    // List and bytes together have to fit one segment.
    room_ = kind.region.endpoint().pieces().write;
  }

  void add(const typename Kind::piece& piece) {
    const std::size_t size = size_of(piece);
    const bool full = pieces_.size() == most_ranges || total_ + size > most_batch_bytes ||
                      range_list_head + (pieces_.size() + 1) * range_size + total_ + size > room_;
    if (full) start();
    pieces_.push_back(piece);
    total_ += size;
  }
  void start() {
    if (pieces_.empty()) return;
    all_.adopt(kind_.start_shared(pieces_, total_, deadline_));
    pieces_.clear();
    total_ = 0;
  }
  /// Returns whether a piece can share a message at all.
  bool takes(std::size_t size) const noexcept {
    return size <= largest_shared && range_list_head + range_size + size <= room_;
  }

 private:
  const Kind& kind_;
  joint_operation& all_;
  clock::time_point deadline_;
  std::size_t room_ = 0;
  std::vector<typename Kind::piece> pieces_;
  std::uint64_t total_ = 0;
};

template <class Kind>
operation* start_batch(const Kind& kind, std::span<const typename Kind::piece> pieces,
                       std::error_code& ec) {
  std::uint64_t total = 0;
  for (const auto& each : pieces) {
    if ((ec = kind.region.check(each.offset, size_of(each), Kind::wanted))) return nullptr;
    total += size_of(each);
  }
  if (total == 0) return nullptr;
  endpoint_core& connection = kind.region.endpoint();
  worker_core& worker = connection.worker();
  const clock::time_point deadline = worker.deadline_after(kind.options.timeout);
  joint_operation* const all = worker.pool_of<joint_operation>().take();
  all->begin(worker, connection.shared_from_this(), deadline, Kind::name, Kind::kind, total);
  const bool shares = kind.shares();
  sharing<Kind> shared(kind, *all, deadline);
  try {
    for (const auto& each : pieces) {
      if (shares && size_of(each) > 0 && shared.takes(size_of(each)) && is_here(each)) {
        shared.add(each);
      } else if (operation* const alone = kind.start_alone(each, ec)) {
        all->adopt(*alone);
      } else if (ec) {
        all->note_failure(ec, kind.region.description());
        break;
      }
    }
    shared.start();
  } catch (const std::bad_alloc&) {  // those that were started are waited for
    all->note_failure(make_error_code(errc::no_memory), {});
  }
  ec.clear();
  all->all_started();
  return all;
}

}  // namespace

operation* start_read_batch(remote_region_core& region, std::span<const read_piece> pieces,
                            const io_options& options, std::error_code& ec) {
  return start_batch(reading{region, options}, pieces, ec);
}

operation* start_write_batch(remote_region_core& region,
                             const std::shared_ptr<write_tracker>& tracker,
                             std::span<const write_piece> pieces, const io_options& options,
                             std::error_code& ec) {
  return start_batch(writing{region, tracker, options}, pieces, ec);
}

}  // namespace ucx::detail
