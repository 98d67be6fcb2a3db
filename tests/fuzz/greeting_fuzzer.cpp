#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "wire/introduction.hpp"

/// What hello and welcome carry: walked as envelopes, and read as one introduction. What was read
/// is written, and read again, as the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ucx::detail;
  const std::span<const std::byte> wire(reinterpret_cast<const std::byte*>(data), size);
  const greeting walked = read_greeting(wire);
  if (walked.address.size() + walked.introduction.size() > size) std::abort();
  decode_introduction(walked.introduction);
  const auto process = decode_process_identity(walked.process);
  if (process && decode_process_identity(process->encode()) != process) std::abort();
  const auto host = decode_host(walked.host);
  if (host && decode_host(encode_host(*host)) != host) std::abort();
  const auto read = decode_introduction(wire);
  if (!read) return 0;
  const auto again = decode_introduction(read->encode());
  if (!again || again->info != read->info || again->name != read->name ||
      again->words != read->words || again->identity != read->identity) {
    std::abort();
  }
  return 0;
}
