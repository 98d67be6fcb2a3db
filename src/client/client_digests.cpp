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

std::vector<content_digest> client_core::digest(remote_region& file, const digest_range& wanted,
                                                const io_options& options, std::string& what,
                                                std::error_code& ec) {
  what = "hashing " + file.description();
  const std::shared_ptr<remote_region_core>& core = core_access::core(file);
  if (!is_ours(core)) {
    ec = core ? errc::no_such_region : errc::closed;
    return {};
  }
  if ((features_ & control_feature::digests) == 0) {
    what += ": the server (ucxio " + server_version_ + ") does not hash";
    ec = errc::not_supported;
    return {};
  }
  if (wanted.chunk == 0) {
    ec = errc::invalid_argument;
    return {};
  }
  std::vector<content_digest> all;
  for (std::uint64_t offset = wanted.offset, left = wanted.length; left > 0;) {
    {
      const std::lock_guard guard(core_access::core(worker_)->lock());
      if ((ec = core->status())) return {};
    }
    const std::uint64_t length = next_question(left, wanted.chunk);
    const std::chrono::seconds reading(
        static_cast<std::int64_t>(std::min(length / slowest, longest_reading)));
    const auto answer = ask(control_type::digest, control_type::digested,
                            digest_body{core->descriptor().region, offset, length, wanted.chunk},
                            after(deadline_after(options), reading), what, ec);
    if (!answer) {
      // What was withdrawn is not known to the server any more; that it was is told before.
      const std::lock_guard guard(core_access::core(worker_)->lock());
      const std::error_code gone = core->status();
      if (gone && ec == errc::no_such_region) ec = gone;
      return {};
    }
    std::optional<digested_body> said = decode_digested(*answer);
    if (!said || said->digests.size() != (length - 1) / wanted.chunk + 1) {
      ec = errc::protocol_error;
      return {};
    }
    all.insert(all.end(), said->digests.begin(), said->digests.end());
    offset += length;
    left -= length;
  }
  return all;
}

}  // namespace ucx::detail
