// What a client asks of the content of files that it has open.
#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "client/client_core.hpp"
#include "connection/endpoint_core.hpp"
#include "region/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So much is asked for at a time, unless one hash is of more: the answer has its time-out.
constexpr std::uint64_t question_size = std::uint64_t{64} << 20U;

/// A disk that is slower than this makes a long question time out.
constexpr std::uint64_t slowest = std::uint64_t{16} << 20U;  // bytes in a second

/// How long that may be; what a server says of a size is no reason to wait for ever.
constexpr std::uint64_t longest_reading = std::uint64_t{24} * 60 * 60;  // seconds

/// Returns how many of `left` bytes go into one question.
std::uint64_t next_question(std::uint64_t left, std::uint64_t chunk) noexcept {
  const std::uint64_t chunks =
      std::clamp<std::uint64_t>(question_size / chunk, 1, digest_body::most_chunks);
  return left / chunk < chunks ? left : chunks * chunk;
}

}  // namespace

result<std::vector<content_digest>> client_core::digest(remote_region& file,
                                                        const digest_range& wanted,
                                                        const io_options& options) {
  const std::string doing = "hashing " + file.description();
  const auto region = ours(file, doing);
  if (!region) return region.why();
  const remote_region_core& core = **region;
  if ((features_ & control_feature::digests) == 0) {
    return failure{errc::not_supported,
                   doing + ": the server (ucxio " + server_version_ + ") does not hash"};
  }
  if (wanted.chunk == 0) return failure{errc::invalid_argument, doing};
  std::vector<content_digest> all;
  for (std::uint64_t offset = wanted.offset, left = wanted.length; left > 0;) {
    {
      const std::lock_guard guard(core_access::core(worker_)->lock());
      if (const std::error_code gone = core.status()) return failure{gone, doing};
    }
    const std::uint64_t length = next_question(left, wanted.chunk);
    const std::chrono::seconds reading(
        static_cast<std::int64_t>(std::min(length / slowest, longest_reading)));
    const auto answer = ask(control_type::digest, control_type::digested,
                            digest_body{core.descriptor().region, offset, length, wanted.chunk},
                            after(deadline_after(options), reading), doing);
    if (!answer) return of_region(answer.why(), core);
    std::optional<digested_body> said = decode_digested(*answer);
    if (!said || said->digests.size() != (length - 1) / wanted.chunk + 1) {
      return failure{errc::protocol_error, doing};
    }
    all.insert(all.end(), said->digests.begin(), said->digests.end());
    offset += length;
    left -= length;
  }
  return all;
}

}  // namespace ucx::detail
