#include "ucx/remote_descriptor.hpp"

#include <algorithm>
#include <limits>

#include "base/result.hpp"
#include "ucx/error.hpp"
#include "wire/protocol.hpp"
#include "wire/wire.hpp"

namespace ucx {
namespace {

constexpr std::string_view descriptor_letters = "UXRD";
constexpr std::size_t longest_key = 4096;
/// Of the worker that has the key for adapters: control messages have to carry it.
constexpr std::size_t longest_address = std::size_t{16} << 10U;
constexpr std::uint8_t shareable_flag = 1;
constexpr std::uint8_t file_flag = 2;
constexpr std::uint8_t loan_flag = 4;
constexpr std::uint8_t handle_flag = 8;
constexpr std::uint8_t descriptors_flag = 16;
constexpr std::uint8_t foreign_flag = 32;
constexpr std::uint8_t device_rma_flag = 64;
constexpr std::uint8_t known_flags = shareable_flag | file_flag | loan_flag | handle_flag |
                                     descriptors_flag | foreign_flag | device_rma_flag;
/// The place of the flags: behind five numbers, the access and the kind.
constexpr std::size_t flags_at = 5 * sizeof(std::uint64_t) + 2;

std::string_view name_of(access granted) noexcept {
  switch (granted) {
    case access::read:
      return "read";
    case access::write:
      return "write";
    case access::read_write:
      break;
  }
  return "read_write";
}

/// The largest number that the system gives a process.
constexpr std::uint64_t most_processes = std::numeric_limits<std::int32_t>::max();

bool is_access(std::uint8_t value) noexcept { return value >= 1 && value <= 3; }

bool is_memory_kind(std::uint8_t value) noexcept {
  return value <= static_cast<std::uint8_t>(memory_kind::rocm) ||
         value == static_cast<std::uint8_t>(memory_kind::other);
}

bool is_of_devices(memory_kind kind) noexcept {
  return kind == memory_kind::cuda || kind == memory_kind::cuda_managed ||
         kind == memory_kind::rocm;
}

constexpr int largest_device = 253;

/// Returns one more than the number, or 0 where there is none to tell.
std::uint8_t wire_device(const remote_descriptor& descriptor) noexcept {
  const int device = descriptor.device;
  if (!is_of_devices(descriptor.kind) || device < 0 || device > largest_device) return 0;
  return static_cast<std::uint8_t>(device + 1);
}

// No byte of the region lies beyond the end of the address space.
bool fits(std::uint64_t address, std::uint64_t size) noexcept {
  return size <= std::numeric_limits<std::uint64_t>::max() - address;
}

bool read_file(detail::wire_reader& reader, memfd_handle& into) {
  into.process = reader.take<std::uint64_t>();
  into.descriptor = reader.take<std::uint64_t>();
  into.device = reader.take<std::uint64_t>();
  into.inode = reader.take<std::uint64_t>();
  return into.process != 0;
}

bool read_loan(detail::wire_reader& reader, cma_handle& into) {
  into.process = reader.take<std::uint64_t>();
  into.record = reader.take<std::uint64_t>();
  into.token = reader.take<std::uint64_t>();
  const bool is_process = into.process > 0 && into.process <= most_processes;
  return is_process && into.record != 0 && into.token != 0;
}

/// The region has to lie within the allocation, whatever these numbers are.
bool read_handle(detail::wire_reader& reader, std::uint64_t region_size, cuda_ipc_handle& into) {
  const auto bytes = reader.take(into.bytes.size());
  into.size = reader.take<std::uint64_t>();
  into.offset = reader.take<std::uint64_t>();
  if (!reader.ok()) return false;
  std::copy(bytes.begin(), bytes.end(), into.bytes.begin());
  return into.size != 0 && into.offset <= into.size && region_size <= into.size - into.offset;
}

bool read_device_rma(detail::wire_reader& reader, std::uint64_t region_size,
                     device_rma_handle& into) {
  into.address = reader.take<std::uint64_t>();
  const auto worker_length = reader.take<std::uint32_t>();
  const auto worker = reader.take(worker_length);
  const auto key_length = reader.take<std::uint32_t>();
  const auto key = reader.take(key_length);
  if (!reader.ok() || worker.empty() || worker.size() > longest_address) {
    return false;
  }
  if (key.empty() || key.size() > longest_key) return false;
  into.worker.assign(worker.begin(), worker.end());
  into.key.assign(key.begin(), key.end());
  return into.address != 0 && fits(into.address, region_size);
}

bool read_body(std::span<const std::byte> body, remote_descriptor& into) {
  detail::wire_reader reader(body);
  into.region = reader.take<std::uint64_t>();
  into.incarnation = reader.take<std::uint64_t>();
  into.generation = reader.take<std::uint64_t>();
  into.address = reader.take<std::uint64_t>();
  into.size = reader.take<std::uint64_t>();
  const auto granted = reader.take<std::uint8_t>();
  const auto kind = reader.take<std::uint8_t>();
  const auto flags = reader.take<std::uint8_t>();
  const auto device = reader.take<std::uint8_t>();
  const auto host = reader.take(into.host.size());
  const auto key_length = reader.take<std::uint32_t>();
  const auto key = reader.take(key_length);
  if ((flags & file_flag) != 0 && !read_file(reader, into.memfd)) return false;
  if ((flags & loan_flag) != 0 && !read_loan(reader, into.cma)) return false;
  const bool has_handle = (flags & handle_flag) != 0;
  into.cuda_ipc.by_descriptors = (flags & descriptors_flag) != 0;
  if (has_handle && !read_handle(reader, into.size, into.cuda_ipc)) return false;
  if (has_handle && (flags & loan_flag) == 0) return false;
  const bool has_device_rma = (flags & device_rma_flag) != 0;
  if (has_device_rma && !read_device_rma(reader, into.size, into.device_rma)) return false;
  const bool is_of_cuda = has_device_rma || (flags & (handle_flag | descriptors_flag)) != 0;
  if (is_of_cuda && static_cast<memory_kind>(kind) != memory_kind::cuda) return false;
  if (!reader.finished() || key_length > longest_key) return false;
  if (!is_access(granted) || !is_memory_kind(kind)) return false;
  if ((flags & ~known_flags) != 0) return false;
  // UCX alone reaches a foreign region: by its key.
  into.foreign = (flags & foreign_flag) != 0;
  if (into.foreign && ((flags & ~foreign_flag) != 0 || key_length == 0)) return false;
  if (device != 0 && !is_of_devices(static_cast<memory_kind>(kind))) return false;
  if (device > largest_device + 1) return false;
  if (!fits(into.address, into.size)) return false;
  into.granted = static_cast<access>(granted);
  into.kind = static_cast<memory_kind>(kind);
  into.device = static_cast<int>(device) - 1;
  into.shareable = (flags & shareable_flag) != 0;
  std::copy(host.begin(), host.end(), into.host.begin());
  into.remote_key.assign(key.begin(), key.end());
  return true;
}

/// Returns the flags of later versions.
unsigned unknown_flags(std::span<const std::byte> body) noexcept {
  if (body.size() <= flags_at) return 0;
  return std::to_integer<unsigned>(body[flags_at]) & ~unsigned{known_flags};
}

detail::result<remote_descriptor> read(std::span<const std::byte> wire) {
  const detail::envelope opened(wire, descriptor_letters);
  remote_descriptor made;
  const bool intact = opened.outcome() == detail::envelope::verdict::intact;
  if (intact && read_body(opened.body(), made)) return made;
  if (intact && unknown_flags(opened.body()) != 0) {
    return detail::failure{errc::version_mismatch,
                           "reading a region descriptor with properties that this library does "
                           "not know (flags " +
                               std::to_string(unknown_flags(opened.body())) + ")"};
  }
  if (opened.outcome() == detail::envelope::verdict::other_version) {
    return detail::failure{errc::version_mismatch,
                           "reading a region descriptor of wire version " +
                               std::to_string(opened.version()) + " (this library speaks version " +
                               std::to_string(detail::protocol_version_number) + ")"};
  }
  return detail::failure{errc::bad_descriptor,
                         "reading a region descriptor of " + std::to_string(wire.size()) +
                             " bytes (cut off, changed on its way, or something else)"};
}

detail::result<remote_descriptor> describe_key(std::uint64_t address, std::uint64_t size,
                                               std::span<const std::byte> key, access granted,
                                               memory_kind memory) {
  const std::string subject = "describing " + std::to_string(size) + " bytes of a UCX peer: ";
  if (key.empty() || key.size() > longest_key) {
    return detail::failure{errc::bad_descriptor,
                           subject + "the key has " + std::to_string(key.size()) +
                               " bytes, and may have 1 to " + std::to_string(longest_key)};
  }
  if (!fits(address, size)) {
    return detail::failure{errc::invalid_argument, subject + "they end beyond the address space"};
  }
  if (!is_access(static_cast<std::uint8_t>(granted)) ||
      !is_memory_kind(static_cast<std::uint8_t>(memory))) {
    return detail::failure{errc::invalid_argument, subject + "no such access, or kind of memory"};
  }
  remote_descriptor made;
  made.address = address;
  made.size = size;
  made.granted = granted;
  made.kind = memory;
  made.foreign = true;
  made.remote_key.assign(key.begin(), key.end());
  return made;
}

}  // namespace

remote_descriptor remote_descriptor::of_key(std::uint64_t address, std::uint64_t size,
                                            std::span<const std::byte> key, access granted,
                                            memory_kind memory, std::error_code& ec) {
  return describe_key(address, size, key, granted, memory).or_end(ec);
}

std::vector<std::byte> remote_descriptor::encode() const {
  if (remote_key.size() > longest_key) {
    throw error(errc::invalid_argument,
                "writing the descriptor of region " + std::to_string(generation) +
                    ": its key has " + std::to_string(remote_key.size()) + " bytes, and " +
                    std::to_string(longest_key) + " at most can be written");
  }
  if (device_rma.key.size() > longest_key || device_rma.worker.size() > longest_address) {
    throw error(errc::invalid_argument, "writing the descriptor of region " +
                                            std::to_string(generation) +
                                            ": its key to memory of a device is too long");
  }
  if (!fits(address, size)) {
    throw error(errc::invalid_argument, "writing the descriptor of region " +
                                            std::to_string(generation) +
                                            ": it ends beyond the address space");
  }
  detail::wire_writer writer = detail::envelope::begin(descriptor_letters);
  writer.put(region);
  writer.put(incarnation);
  writer.put(generation);
  writer.put(address);
  writer.put(size);
  writer.put(static_cast<std::uint8_t>(granted));
  writer.put(static_cast<std::uint8_t>(kind));
  const bool has_file = memfd.process != 0;
  const bool has_loan = cma.process != 0;
  const bool has_handle = cuda_ipc.size != 0;
  writer.put(static_cast<std::uint8_t>(
      (shareable ? shareable_flag : 0U) | (has_file ? file_flag : 0U) |
      (has_loan ? loan_flag : 0U) | (has_handle ? handle_flag : 0U) |
      (cuda_ipc.by_descriptors ? descriptors_flag : 0U) | (foreign ? foreign_flag : 0U) |
      (device_rma.key.empty() ? 0U : device_rma_flag)));
  writer.put(wire_device(*this));
  writer.put(host);
  writer.put(static_cast<std::uint32_t>(remote_key.size()));
  writer.put(remote_key);
  if (has_file) {
    writer.put(memfd.process);
    writer.put(memfd.descriptor);
    writer.put(memfd.device);
    writer.put(memfd.inode);
  }
  if (has_loan) {
    writer.put(cma.process);
    writer.put(cma.record);
    writer.put(cma.token);
  }
  if (has_handle) {
    writer.put(cuda_ipc.bytes);
    writer.put(cuda_ipc.size);
    writer.put(cuda_ipc.offset);
  }
  if (!device_rma.key.empty()) {
    writer.put(device_rma.address);
    writer.put(static_cast<std::uint32_t>(device_rma.worker.size()));
    writer.put(device_rma.worker);
    writer.put(static_cast<std::uint32_t>(device_rma.key.size()));
    writer.put(device_rma.key);
  }
  return detail::envelope::end(std::move(writer));
}

remote_descriptor remote_descriptor::decode(std::span<const std::byte> wire, std::error_code& ec) {
  return read(wire).or_end(ec);
}

std::string to_string(const remote_descriptor& descriptor) {
  std::string text = "region " + std::to_string(descriptor.generation) + ": " +
                     std::to_string(descriptor.size) + " bytes, ";
  text += name_of(descriptor.granted);
  text += ", ";
  text += to_string(descriptor.kind);
  if (descriptor.device >= 0) text += " device " + std::to_string(descriptor.device);
  if (descriptor.shareable) text += ", shareable";
  if (descriptor.foreign) text += ", foreign";
  return text;
}

}  // namespace ucx
