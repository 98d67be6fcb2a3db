#include "carrier/passed_descriptor.hpp"

#include <fcntl.h>

#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "base/blocked_signals.hpp"

namespace ucx::detail {

void passed_descriptor::attach(::msghdr& message, int descriptor) noexcept {
  expect(message);
  ::cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
}

void passed_descriptor::expect(::msghdr& message) noexcept {
  message.msg_control = bytes_.data();
  message.msg_controllen = bytes_.size();
}

passed_descriptor::arrival passed_descriptor::take(::msghdr& message,
                                                   owned_descriptor& into) noexcept {
  const ::cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
      head->cmsg_len < CMSG_LEN(sizeof(int))) {
    return arrival::none;
  }
  int came = -1;
  std::memcpy(&came, CMSG_DATA(head), sizeof came);
  owned_descriptor owned(came);
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    close_elsewhere(std::move(owned));
    return arrival::too_many;
  }
  into = std::move(owned);
  return arrival::came;
}

bool is_sealed_memory(int file) noexcept {
  constexpr int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & fixed) == fixed;
}

void close_elsewhere(owned_descriptor hostile) noexcept {
  if (!hostile || is_sealed_memory(hostile.get())) return;
  try {
    const blocked_signals none_here;
    std::thread([file = std::move(hostile)] {}).detach();
  } catch (const std::exception&) {  // it is closed here
  }
}

}  // namespace ucx::detail
