#include "region/remote_region_core.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/forked_child.hpp"
#include "connection/flush_operation.hpp"
#include "connection/posted_operations.hpp"
#include "connection/write_tracker.hpp"
#include "cuda/device_pointer.hpp"
#include "os/huge_page.hpp"
#include "region/atomic_execution.hpp"
#include "region/message_atomic.hpp"
#include "region/message_read.hpp"
#include "region/message_write.hpp"
#include "region/notify_operation.hpp"
#include "region/rma_operation.hpp"
#include "ucp/rdma.hpp"
#include "ucp/status.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

result<ucx::way> wanted_way(ucx::way asked) {
  if (asked != way::automatic) return asked;
  const char* variable = std::getenv("UCXIO_WAY");
  const std::string_view forced = variable == nullptr ? "" : variable;
  if (forced.empty()) return way::automatic;
  if (forced == "message") return way::message;
  if (forced == "rma") return way::rma;
  if (forced == "mapped") return way::mapped;
  return failure{errc::bad_configuration, "UCXIO_WAY is \"" + std::string(forced) +
                                              "\", and may be \"message\", \"rma\" or \"mapped\""};
}

/// Longer reads would keep the worker from its peers: their owner sends them.
constexpr std::size_t longest_borrowed_read = std::size_t{16} << 20U;

/// A region's number means something to one incarnation of its owner.
content_id content_of(const remote_descriptor& descriptor) noexcept {
  const std::array<std::uint64_t, 2> numbers{descriptor.incarnation, descriptor.region};
  return {XXH3_64bits(numbers.data(), sizeof numbers), descriptor.generation};
}

/// What a handle holds: the connection goes after the region.
struct lease {
  std::shared_ptr<endpoint_core> connection;
  std::shared_ptr<remote_region_core> region;
};

}  // namespace

remote_region_core::remote_region_core(endpoint_core& endpoint, const remote_descriptor& descriptor)
    : endpoint_(endpoint),
      descriptor_(descriptor),
      size_(descriptor.size),
      content_(content_of(descriptor)),
      window_(is_copied_by_driver(descriptor.kind) ? device_write_window : 0),
      logged_(endpoint.worker().context().log().writes(log_level::debug)) {
  endpoint_.add(*this);
}

result<std::shared_ptr<remote_region_core>> remote_region_core::make(
    std::shared_ptr<endpoint_core> endpoint, const remote_descriptor& descriptor,
    const remote_region_options& options) {
  const std::lock_guard guard(endpoint->worker().lock());
  std::shared_ptr<remote_region_core> made(new remote_region_core(*endpoint, descriptor));
  if (const std::error_code lost = endpoint->status()) {
    return failure{lost, "opening " + made->description()};
  }
  const auto wanted = wanted_way(options.way);
  const auto chosen = wanted ? made->choose_way(*wanted) : result<void>(wanted.why());
  if (!chosen) {
    return failure{chosen.why().code, "opening " + made->description() + ": " + chosen.why().text};
  }
  remote_region_core* core = made.get();
  auto held = std::make_shared<lease>(lease{std::move(endpoint), std::move(made)});
  return std::shared_ptr<remote_region_core>(std::move(held), core);
}

remote_region_core::~remote_region_core() {
  const std::lock_guard guard(endpoint_.worker().lock());
  if (when_released_) when_released_();
  drop_key();
  endpoint_.remove(*this);
}

void remote_region_core::drop_key() noexcept {
  mapped_ = nullptr;
  lent_.reset();
  if (key_ != nullptr) endpoint_.worker().api().rkey_destroy(std::exchange(key_, nullptr));
}

result<void> remote_region_core::choose_way(ucx::way wanted) {
  if (wanted == way::automatic || wanted == way::mapped) {
    if (map()) return {};
    if (wanted == way::mapped) return failure{errc::not_supported, why_not_mapped_};
  } else {
    why_not_mapped_ = "it was asked to go another way";
  }
  std::string why_not;
  if (wanted != way::message) {
    if (borrow_device(wanted)) return {};
    auto reached = borrow() ? result<void>() : take_key();
    if (reached) {
      way_ = way::rma;
      return {};
    }
    reached.why().text += ", and " + why_not_read_;
    if (wanted == way::rma) return reached;
    log_no_rdma(reached.why().text);
    why_not = reached.why().text + ", and ";
  } else {
    why_not_read_ = "it was asked to go another way";
  }
  if (endpoint_.worker().context().has(feature::am)) return {};
  return failure{errc::feature_disabled, why_not + "the context was made without feature::am"};
}

/// Over RDMA hardware a region in memory by message is less than was to be expected.
void remote_region_core::log_no_rdma(const std::string& why_not) const {
  if (!endpoint_.worker().context().log().writes(log_level::warning)) return;
  if (descriptor_.remote_key.empty() || !any_is_rdma(endpoint_.ucx().transports())) return;
  endpoint_.log(log_level::warning, "a region is read by message, not by RDMA: ", why_not);
}

/// Maps the memory, where the owner and the system let it; else says why not.
bool remote_region_core::map() {
  if (!endpoint_.worker().context().shares_memory()) {
    why_not_mapped_ = "the context was made to share no memory";
    return false;
  }
  mapping_ = shared_mapping::open(descriptor_, why_not_mapped_);
  if (!mapping_) return false;
  mapped_ = mapping_->data();
  copied_ = true;
  way_ = way::mapped;
  return true;
}

/// Finds out whether this process can read the memory where it lies. What can be mapped is better
/// mapped, and writes and everything that the reading misses go by message.
bool remote_region_core::borrow() {
  std::string& why_not = why_not_read_;
  const context_core& context = endpoint_.worker().context();
  if (descriptor_.kind != memory_kind::host) {
    if (why_not.empty()) why_not = "it is memory of a device";  // else its driver is why
  } else if (descriptor_.shareable) {
    why_not = "its owner lets it be mapped, and not be read";
  } else if (!context.has(feature::am)) {
    why_not = "the context was made without feature::am";
  } else if (!context.shares_memory()) {
    why_not = "the context was made to share no memory";
  } else if (!context.reads_processes()) {
    why_not = "the context has no transport `cma`";
  }
  if (!why_not.empty()) return false;
  borrowed_ = borrowed_region::open(endpoint_.worker().api(), descriptor_, why_not);
  return borrowed_ != nullptr;
}

/// Takes the key for RMA, where that is real.
/// RMA counts as real where the transport moves the bytes without the owner's CPU: RDMA hardware,
/// and on one host memory that is mapped, or read by CMA. UCX emulates it everywhere else.
result<void> remote_region_core::take_key() {
  worker_core& worker = endpoint_.worker();
  ucp_api& api = worker.api();
  if (!worker.context().has(feature::rma)) {
    return failure{errc::feature_disabled, "the context was made without feature::rma"};
  }
  if (descriptor_.remote_key.empty()) {
    return failure{errc::not_supported, "the descriptor has no key for RMA"};
  }
  const std::vector<std::string> transports = endpoint_.ucx().transports();
  const bool rdma = any_is_rdma(transports);
  if (!rdma && endpoint_.detects_failure()) {
    return failure{errc::not_supported, "UCX only emulates RMA over these transports"};
  }
  const ucs_status_t unpacked =
      api.ep_rkey_unpack(endpoint_.handle(), descriptor_.remote_key.data(), &key_);
  if (unpacked != UCS_OK) {
    key_ = nullptr;
    return failure{errc::bad_descriptor, "UCX refused the key: " + words(unpacked)};
  }
  if (rdma) return {};
  const bool cma = std::any_of(transports.begin(), transports.end(),
                               [](const std::string& t) { return t.starts_with("cma"); });
  void* local = nullptr;
  if (api.rkey_ptr(key_, descriptor_.address, &local) == UCS_OK) {
    mapped_ = static_cast<std::byte*>(local);
    // Without CMA, UCX from 1.14 on asks the owner for what is read, and waits for its progress.
    copied_ = !cma;
    return {};
  }
  // Caller's memory is never written by CMA: a stopped writer could not be revoked.
  writes_by_rma_ = false;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  api.get_version(&major, &minor, &patch);
  if (cma && std::pair(major, minor) >= std::pair(1U, 22U)) return {};
  api.rkey_destroy(std::exchange(key_, nullptr));
  return failure{errc::not_supported,
                 "the memory is not shareable, and this UCX does not read it by CMA"};
}

std::string remote_region_core::description() const {
  return "region " + std::to_string(descriptor_.region) + " (" + std::to_string(descriptor_.size) +
         " bytes) at " + endpoint_.peer_name();
}

std::optional<std::uint64_t> remote_region_core::bytes_in_huge_pages() const {
  std::string process = "self";
  std::uint64_t address = 0;
  {
    const std::lock_guard guard(endpoint_.worker().lock());
    if (mapping_) {
      address = reinterpret_cast<std::uintptr_t>(mapping_->data());
    } else if (borrowed_) {  // its record was seen: the number is the owner's
      process = std::to_string(descriptor_.loan.process);
      address = descriptor_.address;
    }
  }
  return address == 0 ? std::nullopt : huge_bytes(process, address, descriptor_.size);
}

std::error_code remote_region_core::status() const noexcept {
  if (closed_) return errc::closed;
  const std::error_code lost = endpoint_.status();
  const bool withdrawn = revoked_ || (mapping_ && mapping_->withdrawn());
  return !lost && withdrawn ? make_error_code(errc::revoked) : lost;
}

std::error_code remote_region_core::check(std::uint64_t offset, std::uint64_t length,
                                          access wanted) const noexcept {
  if (const std::error_code unusable = status()) return unusable;
  if (!includes(descriptor_.granted, wanted)) return errc::permission_denied;
  const std::uint64_t end = includes(wanted, access::write) ? limit() : size();
  if (offset <= end && length <= end - offset) return {};
  return end > size_ ? errc::no_space : errc::out_of_range;
}

result<std::byte*> remote_region_core::view(std::uint64_t offset, std::uint64_t length,
                                            access wanted) const {
  if (const std::error_code ec = check(offset, length, wanted)) return failure{ec};
  if (length > descriptor_.size || offset > descriptor_.size - length) {
    return failure{errc::out_of_range};
  }
  if (mapping_) return mapping_->data() + offset;
  return failure{errc::not_supported, why_not_mapped_};
}

/// What was started behind a fence may not overtake what still waits for the owner: by message it
/// takes its place in the queue.
bool remote_region_core::by_rma(access wanted) const noexcept {
  if (way_ != way::rma || borrowed_ || copied_ || key_ == nullptr) return false;
  if (wanted == access::write && !writes_by_rma_) return false;
  return !endpoint_.operations().fenced_behind_messages();
}

bool remote_region_core::copied_here() const noexcept {
  return copied_ && mapped_ != nullptr && !endpoint_.operations().fenced();
}

bool remote_region_core::read_here() const noexcept {
  return borrowed_ != nullptr && !endpoint_.operations().fenced();
}

bool remote_region_core::shares_messages(access wanted) const noexcept {
  if (wanted == access::read && read_here()) return false;
  // A file has no address.
  return !by_rma(wanted) && !copied_here() && descriptor_.address != 0 &&
         descriptor_.kind == memory_kind::host && endpoint_.worker().context().has(feature::am);
}

operation* remote_region_core::start_read(std::uint64_t offset, std::span<std::byte> into,
                                          const io_options& options, std::error_code& ec) {
  if ((ec = check(offset, into.size(), access::read)) || into.empty()) return nullptr;
  const bool on_device = is_on_device(into, ec);
  if (ec) return nullptr;
  if (on_device) return read_into_device(offset, into, options, ec);
  if (options.verify) return read_by_message(offset, into, options, ec);
  if (copied_here()) {
    std::memcpy(into.data(), mapped_ + offset, into.size());
    log_done("read of ", offset, into.size());
    return nullptr;
  }
  // Where that fails the owner has gone, or taken the region back: asked, it says so.
  const bool now = into.size() <= longest_borrowed_read && read_here();
  if (now && borrowed_->read(offset, into)) {
    log_done("read of ", offset, into.size());
    return nullptr;
  }
  if (lent_) return read_from_device(offset, into, options, ec);
  if (!by_rma(access::read)) return read_by_message(offset, into, options, ec);
  const clock::time_point deadline = endpoint_.worker().deadline_after(options.timeout);
  return rma_operation::read(shared_from_this(), offset, into, deadline, ec);
}

void remote_region_core::write_done(const char* what, std::uint64_t offset,
                                    std::size_t length) const {
  std::string line = what + std::to_string(length);
  line.append(" bytes at offset ").append(std::to_string(offset)).append(" of ");
  endpoint_.worker().log_done(line + description() + ", within the call", endpoint_);
}

operation* remote_region_core::read_by_message(std::uint64_t offset, std::span<std::byte> into,
                                               const io_options& options, std::error_code& ec) {
  worker_core& worker = endpoint_.worker();
  if (!worker.context().has(feature::am)) ec = errc::feature_disabled;
  if (options.verify && descriptor_.kind != memory_kind::host) ec = errc::not_supported;
  if (ec) return nullptr;
  std::unique_ptr<message_read> started(worker.pool_of<message_read>().take());
  started->begin(shared_from_this(), offset, into, worker.deadline_after(options.timeout),
                 options.verify);
  return started.release();
}

operation* remote_region_core::start_write(const std::shared_ptr<write_tracker>& tracker,
                                           std::uint64_t offset, std::span<const std::byte> from,
                                           const io_options& options, std::error_code& ec) {
  if ((ec = check(offset, from.size(), access::write)) || from.empty()) return nullptr;
  const bool on_device = is_on_device(from, ec);
  if (ec) return nullptr;
  if (on_device) return write_from_device(tracker, offset, from, options, ec);
  if (copied_here()) {
    std::memcpy(mapped_ + offset, from.data(), from.size());
    std::atomic_thread_fence(std::memory_order_release);  // before what tells the owner of it
    log_done("write of ", offset, from.size());
    return nullptr;
  }
  if (limit_ > 0) size_ = std::max<std::uint64_t>(size_, offset + from.size());
  worker_core& worker = endpoint_.worker();
  const clock::time_point deadline = worker.deadline_after(options.timeout);
  if (by_rma(access::write)) {
    return rma_operation::write(shared_from_this(), tracker, offset, from, deadline, ec);
  }
  if (!worker.context().has(feature::am)) {
    ec = errc::feature_disabled;
    return nullptr;
  }
  std::unique_ptr<message_write> started(worker.pool_of<message_write>().take());
  if (lent_ && descriptor_.shareable) {
    started->move_by(mover(lent_->copier_of_host(worker), access::write, nullptr));
  }
  started->begin(shared_from_this(), tracker, offset, from, deadline);
  return started.release();
}

operation* remote_region_core::start_flush(const std::shared_ptr<write_tracker>& tracker,
                                           const std::shared_ptr<posted_operations>& posted,
                                           const io_options& options, std::error_code& ec) {
  if (is_forked_child()) {
    ec = errc::forked_child;
    return nullptr;
  }
  if (closed_ && posted->idle()) {
    ec = tracker->settled() ? tracker->take_failure() : std::error_code();
    if (!ec) ec = errc::closed;
    return nullptr;
  }
  const bool by_ucx = tracker->has_unconfirmable();
  if (!by_ucx && tracker->settled() && posted->idle()) {
    ec = tracker->take_failure();
    return nullptr;
  }
  worker_core& worker = endpoint_.worker();
  std::unique_ptr<flush_operation> started(worker.pool_of<flush_operation>().take());
  started->begin(worker, endpoint_.shared_from_this(), tracker, posted, by_ucx,
                 worker.deadline_after(options.timeout));
  return started.release();
}

operation* remote_region_core::start_atomic(std::uint64_t offset, const atomic_access& wanted,
                                            std::span<std::byte> previous,
                                            const io_options& options, std::error_code& ec) {
  if ((ec = check(offset, wanted.width, access_for(wanted, !previous.empty())))) return nullptr;
  if (!is_aligned(descriptor_.address + offset, wanted.width)) {
    ec = errc::invalid_argument;
    return nullptr;
  }
  if (descriptor_.address == 0 || descriptor_.kind != memory_kind::host) {
    ec = errc::not_supported;
    return nullptr;
  }
  worker_core& worker = endpoint_.worker();
  if (mapped_ != nullptr && !endpoint_.operations().fenced()) {
    if (!is_aligned(reinterpret_cast<std::uintptr_t>(mapped_) + offset, wanted.width)) {
      ec = errc::invalid_argument;  // the descriptor says something else than is true
      return nullptr;
    }
    // One machine's processors agree among themselves: this is what the owner would do.
    store_number(perform(wanted, mapped_ + offset), previous);
    log_done("atomic access to ", offset, wanted.width);
    return nullptr;
  }
  if (!worker.context().has(feature::am)) {
    ec = errc::feature_disabled;
    return nullptr;
  }
  std::unique_ptr<message_atomic> started(worker.pool_of<message_atomic>().take());
  started->begin(shared_from_this(), offset, wanted, previous,
                 worker.deadline_after(options.timeout));
  return started.release();
}

operation* remote_region_core::start_notify(const std::shared_ptr<write_tracker>& tracker,
                                            const std::shared_ptr<posted_operations>& posted,
                                            std::uint64_t value, const io_options& options,
                                            std::error_code& ec) {
  if ((ec = check(0, 0, access::write))) return nullptr;
  worker_core& worker = endpoint_.worker();
  if (!worker.context().has(feature::am)) {
    ec = errc::feature_disabled;
    return nullptr;
  }
  std::unique_ptr<notify_operation> started(worker.pool_of<notify_operation>().take());
  started->begin(shared_from_this(), tracker, posted, value,
                 worker.deadline_after(options.timeout));
  return started.release();
}

void remote_region_core::grow_to(std::uint64_t limit, std::uint64_t window) noexcept {
  limit_ = limit;
  window_ = window;
}

void remote_region_core::is_file(std::uint64_t identity, std::uint64_t generation,
                                 bool measurable) noexcept {
  if (identity != 0) content_ = {identity, generation};
  measurable_ = measurable;
}

void remote_region_core::measured(std::uint64_t size, std::uint64_t generation) noexcept {
  size_ = std::max<std::uint64_t>(size_, size);
  content_.generation = generation;
}

bool remote_region_core::may_send(message_write& write, std::uint64_t room) {
  if (window_ == 0) return true;
  const bool fits = taken_ == 0 || taken_ + room <= window_;
  // Those that came first go first.
  const bool first = waiting_.empty() || waiting_.front() == &write;
  if (fits && first) {
    if (!waiting_.empty()) waiting_.pop_front();
    taken_ += room;
    return true;
  }
  if (std::find(waiting_.begin(), waiting_.end(), &write) == waiting_.end()) {
    waiting_.push_back(&write);
  }
  return false;
}

void remote_region_core::freed(std::uint64_t room) noexcept {
  if (window_ == 0) return;
  taken_ -= std::min(taken_, room);
  // Each sends what it may, and goes to the front again if that is not all.
  for (std::size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
    message_write& next = *waiting_.front();
    next.send_more();
    if (!waiting_.empty() && waiting_.front() == &next) break;
  }
}

void remote_region_core::stops_waiting(const message_write& write) noexcept {
  std::erase(waiting_, &write);
}

void remote_region_core::close() noexcept {
  if (is_forked_child()) return;
  const std::lock_guard guard(endpoint_.worker().lock());
  if (std::exchange(closed_, true)) return;
  lent_.reset();
  endpoint_.operations().cancel_of(*this);
}

}  // namespace ucx::detail
