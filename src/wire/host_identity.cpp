#include "wire/host_identity.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "base/one_per_process.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

host_number read_identity() noexcept {
  host_number made = {};
  try {
    // The boot id is the kernel's, and containers of one kernel share it. They share memory only if
    // they share a name space for it, which an attempt to use the memory finds out.
    const std::string boot = read_line("/proc/sys/kernel/random/boot_id");
    const XXH128_hash_t hash = XXH3_128bits(boot.data(), boot.size());
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    std::memcpy(made.data(), &canonical, made.size());
  } catch (...) {  // out of memory: an identity that equals no other
  }
  return made;
}

struct this_host {
  host_number number = read_identity();
};

}  // namespace

host_number host_identity() noexcept {
  static constinit one_per_process<this_host> known;
  try {
    return known.get().number;
  } catch (const std::bad_alloc&) {
    return {};  // it equals no other
  }
}

std::vector<std::byte> encode_host(const host_number& host) {
  wire_writer writer = envelope::begin(host_letters);
  writer.put(host);
  return envelope::end(std::move(writer));
}

std::optional<host_number> decode_host(std::span<const std::byte> wire) {
  const envelope opened(wire, host_letters);
  if (opened.outcome() != envelope::verdict::intact) return std::nullopt;
  wire_reader reader(opened.body());
  host_number read = {};
  const auto told = reader.take(read.size());
  if (!reader.finished()) return std::nullopt;
  std::copy(told.begin(), told.end(), read.begin());
  // Zeros are of a process that could not find out, and equal no host.
  if (read == host_number()) return std::nullopt;
  return read;
}

}  // namespace ucx::detail
