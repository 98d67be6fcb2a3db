// A program that moves from UCX's own tags to ucxio, one message after the other: both go over one
// worker and one connection.
#include <ucp/api/ucp.h>

#include <chrono>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include <ucx/context.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/worker.hpp>

int main() {
  constexpr ucp_tag_t tag = 7;
  const ucx::context context(
      {.features = ucx::feature::am | ucx::feature::tag, .transports = {"tcp"}, .devices = {"lo"}});
  ucx::worker receiver(context);
  ucx::worker sender(context);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  const auto drive_until = [&](auto done) {  // by this thread alone, as UCX's programs do
    while (!done() && std::chrono::steady_clock::now() < limit) {
      sender.progress();
      receiver.progress();
    }
  };
  const auto ended = [&](ucs_status_ptr_t begun) {
    if (!UCS_PTR_IS_PTR(begun)) return UCS_PTR_RAW_STATUS(begun);
    drive_until([&] { return ucp_request_check_status(begun) != UCS_INPROGRESS; });
    const ucs_status_t status = ucp_request_check_status(begun);
    ucp_request_free(begun);
    return status;
  };
  ucx::endpoint connection(sender, receiver.address());
  drive_until([&] { return connection.state() == ucx::connection_state::active; });

  // What the program has already. ucxio's messages of the same tag are others.
  const std::string_view old_text = "by UCX's own call";
  const std::string_view new_text = "by ucxio";
  std::string old_into(old_text.size(), ' ');
  std::string new_into(new_text.size(), ' ');
  const ucp_request_param_t plain = {};
  ucx::request received = receiver.start_receive(tag, std::as_writable_bytes(std::span(new_into)));
  ucs_status_ptr_t const raw_received = ucp_tag_recv_nbx(
      receiver.native_handle(), old_into.data(), old_into.size(), tag, ~ucp_tag_t{0}, &plain);
  ucs_status_ptr_t const raw_sent =
      ucp_tag_send_nbx(connection.native_handle(), old_text.data(), old_text.size(), tag, &plain);
  ucx::request sent = connection.start_send(tag, std::as_bytes(std::span(new_text)));
  if (ended(raw_sent) != UCS_OK || ended(raw_received) != UCS_OK) return 1;
  drive_until([&] { return received.done() && sent.done(); });
  const ucx::request closing = connection.start_close();
  drive_until([&] { return closing.done(); });
  std::cout << old_into << ", and " << new_into << '\n';
  return received.done() && !received.error() && old_into == old_text && new_into == new_text ? 0
                                                                                              : 1;
}
