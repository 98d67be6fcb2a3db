// Standard input to another process's standard output by UCX itself, as one would write it in an
// afternoon: eager active messages, a few in flight, written from where UCX received them. Beside
// `ucxio pipe`; no errors are handled.
//   raw_pipe receive ADDRESS-FILE > output
//   raw_pipe send ADDRESS-FILE < input
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t piece = std::size_t{1} << 20U;
constexpr std::size_t in_flight = 4;
constexpr unsigned piece_id = 1;
constexpr unsigned end_id = 2;

void check(ucs_status_t status, const char* what) {
  if (status != UCS_OK)
    throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
}

struct peer {
  peer() {
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "configuration");
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    check(ucp_init(&params, config, &context), "context");
    ucp_config_release(config);
    ucp_worker_params_t worker_params = {};
    check(ucp_worker_create(context, &worker_params, &worker), "worker");
  }
  ~peer() {
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
  }
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;

  void wait(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return check(UCS_PTR_STATUS(request), "operation");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker);
    check(ucp_request_check_status(request), "operation");
    ucp_request_free(request);
  }

  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
};

ucs_status_t on_piece(void*, const void*, std::size_t, void* data, std::size_t length,
                      const ucp_am_recv_param_t*) {
  const char* bytes = static_cast<const char*>(data);
  while (length > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes, length);
    if (written <= 0) std::_Exit(1);
    bytes += written;
    length -= static_cast<std::size_t>(written);
  }
  return UCS_OK;
}

ucs_status_t on_end(void* ended, const void*, std::size_t, void*, std::size_t,
                    const ucp_am_recv_param_t*) {
  *static_cast<bool*>(ended) = true;
  return UCS_OK;
}

void handle(peer& self, unsigned id, ucp_am_recv_callback_t by, void* argument) {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.cb = by;
  params.arg = argument;
  check(ucp_worker_set_am_recv_handler(self.worker, &params), "handler");
}

void receive(const std::string& file) {
  peer self;
  bool ended = false;
  handle(self, piece_id, &on_piece, nullptr);
  handle(self, end_id, &on_end, &ended);
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(self.worker, &address, &length), "address");
  std::ofstream(file + ".new", std::ios::binary)
      .write(reinterpret_cast<const char*>(address), static_cast<std::streamsize>(length));
  if (std::rename((file + ".new").c_str(), file.c_str()) != 0) throw std::runtime_error("rename");
  while (!ended) ucp_worker_progress(self.worker);
  ucp_worker_release_address(self.worker, address);
}

ucs_status_ptr_t post(ucp_ep_h to, unsigned id, const void* bytes, std::size_t length) {
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  return ucp_am_send_nbx(to, id, nullptr, 0, bytes, length, &params);
}

void send(const std::string& file) {
  peer self;
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> address((std::istreambuf_iterator<char>(in)), {});
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  ucp_ep_h to = nullptr;
  check(ucp_ep_create(self.worker, &params, &to), "endpoint");
  std::array<std::vector<char>, in_flight> buffers;
  std::array<ucs_status_ptr_t, in_flight> sends = {};
  for (std::vector<char>& each : buffers) each.resize(piece);
  for (std::size_t turn = 0;; turn = (turn + 1) % in_flight) {
    self.wait(sends[turn]);
    sends[turn] = nullptr;
    const ssize_t got = ::read(STDIN_FILENO, buffers[turn].data(), piece);
    if (got <= 0) break;
    sends[turn] = post(to, piece_id, buffers[turn].data(), static_cast<std::size_t>(got));
  }
  for (ucs_status_ptr_t each : sends) self.wait(each);
  self.wait(post(to, end_id, nullptr, 0));
  try {  // the reader may have gone, as it may
    ucp_request_param_t none = {};
    self.wait(ucp_ep_flush_nbx(to, &none));
    self.wait(ucp_ep_close_nbx(to, &none));
  } catch (const std::runtime_error&) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string what = argc == 3 ? argv[1] : "";
    if (what == "receive") return receive(argv[2]), 0;
    if (what == "send") return send(argv[2]), 0;
    std::fputs("raw_pipe receive|send ADDRESS-FILE\n", stderr);
    return 2;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "raw_pipe: %s\n", failed.what());
    return 1;
  }
}
