#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "region/exposed/atomic_execution.hpp"
#include "wire/range_list.hpp"

/// What a peer says beside a frame: a list of ranges, or an atomic access. What is read is within
/// the limits, and is written as it was read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ucx::detail;
  const std::span<const std::byte> wire(reinterpret_cast<const std::byte*>(data), size);
  if (const auto ranges = range_list::decode(wire)) {
    std::vector<std::byte> again;
    range_list::begin(ranges->size(), again);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < ranges->size(); ++i) {
      range_list::append(ranges->at(i), again);
      total += ranges->at(i).length;
    }
    if (total != ranges->total() || total > most_batch_bytes ||
        again.size() + ranges->rest().size() != size) {
      std::abort();
    }
  }
  for (const std::uint64_t width : {std::uint64_t{4}, std::uint64_t{8}}) {
    const auto atomic = decode_atomic(wire, width);
    if (!atomic) continue;
    const auto again = encode(atomic->wanted, atomic->fetches);
    if (!std::equal(again.begin(), again.end(), wire.begin(), wire.end())) std::abort();
    alignas(8) std::byte number[8] = {};
    perform(atomic->wanted, number);
  }
  return 0;
}
