#include "connection/connection_words.hpp"

#include "worker/worker_core.hpp"

namespace ucx::detail {

std::string words_of_established(const introduction& theirs, const std::vector<std::string>& lanes,
                                 const std::vector<std::string>& resources,
                                 transfer_method long_messages) {
  std::string text = theirs.name.empty() ? std::string() : " with " + theirs.name;
  for (const std::string& each : lanes)
    text.append(&each == &lanes.front() ? " over " : ", ") += each;
  if (long_messages != transfer_method::message) {
    text.append("; long messages by ") += to_string(long_messages);
  }
  if (any_is_rdma(resources) && !any_has_rma(lanes)) {
    text += "; " + why_no_rma(lanes, resources, rdma_told_by(theirs));
  }
  return text;
}

/// A listener that does not want a connection rejects it without a word. Where UCX can not make one
/// with the peer's version, it rejects it as well, drops it, or can not read the answer. Nothing
/// tells which it was.
std::string words_of_loss(const worker_core& worker, ucs_status_t status,
                          const std::string& hardware, bool stood, bool dials) {
  const context_core& context = worker.context();
  std::string text = context.words_of(status);
  text += stood ? words_of_lost_rdma(worker.api(), hardware, status)
                : rdma_advice(worker.api(), status, context.resources());
  const bool listens = status == UCS_ERR_REJECTED || status == UCS_ERR_CONNECTION_RESET ||
                       status == UCS_ERR_INVALID_PARAM;
  if (!dials || !listens || !context.is_of_ucx()) return text;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  worker.api().get_version(&major, &minor, &patch);
  return text + "; the peer's may be of a version that does not connect with this one's, " +
         std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
}

}  // namespace ucx::detail
