#include "raw_device.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "driver_copies.hpp"
#include "network.hpp"
#include "pipe_end.hpp"
#include "raw_messages.hpp"
#include "raw_ucx.hpp"

namespace ucx::benchmarks {
namespace {

/// UCX's own choice of transports, for RMA only.
raw_fabric any_transport() {
  raw_fabric fabric;
  fabric.messages = false;
  return fabric;
}

bool knows_cuda(ucp_context_h context) {
  ucp_context_attr_t attributes = {};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  return ucp_context_query(context, &attributes) == UCS_OK &&
         (attributes.memory_types & (std::uint64_t{1} << unsigned{UCS_MEMORY_TYPE_CUDA})) != 0;
}

void tell(pipe_end& reader, const std::string& text) {
  reader.write(std::as_bytes(std::span(text)));
}

/// Serves until the other end of `quit` is closed; sleeps a millisecond at a time while nothing
/// comes, so as to leave the core to whoever has its turn.
void serve(const raw_owner& owner, int quit) {
  constexpr unsigned empty_rounds = 10'000;
  ::pollfd ended{quit, POLLIN, 0};
  for (unsigned empty = 0; ::poll(&ended, 1, empty < empty_rounds ? 0 : 1) == 0;) {
    empty = owner.progress() > 0 ? 0 : empty + 1;
  }
}

void own(std::size_t size, pipe_end& reader, int quit) {
  driver_copies driver;  // first: UCX looks for the device of the thread's context
  raw_owner owner(any_transport());
  if (!knows_cuda(owner.context())) return tell(reader, "UCX knows nothing of CUDA");
  const std::span memory(driver.allocate(size), size);
  std::vector<std::byte> content(size);
  fill_pattern(content);
  driver.copy(memory.data(), content.data(), size);
  const raw_target target = owner.expose(memory);
  tell(reader, "");
  reader.write(target.address);
  reader.write(target.key);
  reader.write_number(target.base);
  reader.write_number(target.size);
  serve(owner, quit);
}

}  // namespace

struct raw_device::connection {
  explicit connection(const raw_target& target) : to(worker.connect(target.address)) {
    require(ucp_ep_rkey_unpack(to, target.key.data(), &key), "unpacking a key");
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() {
    ucp_rkey_destroy(key);
    const ucp_request_param_t params = {};
    try {
      finish(ucp_ep_close_nbx(to, &params), "closing");
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "gpu_benchmark: %s\n", failure.what());
    }
  }

  /// Waits, ten seconds at most, for what `what` names.
  void finish(ucs_status_ptr_t started, const char* what) {
    if (!UCS_PTR_IS_PTR(started)) return require(UCS_PTR_RAW_STATUS(started), what);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ucp_request_check_status(started) == UCS_INPROGRESS) {
      if (worker.progress() == 0 && std::chrono::steady_clock::now() > until) {
        throw std::runtime_error(std::string(what) + " took more than ten seconds");
      }
    }
    const ucs_status_t status = ucp_request_check_status(started);
    ucp_request_free(started);
    require(status, what);
  }

  raw_worker worker{any_transport()};
  ucp_ep_h to = nullptr;
  ucp_rkey_h key = nullptr;
};

raw_device::raw_device(std::size_t size) {
  std::array<int, 2> told = {};
  std::array<int, 2> quit = {};
  if (::pipe(told.data()) != 0 || ::pipe(quit.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for the owner");
  if (child_ == 0) {
    ::close(told[0]);
    ::close(quit[1]);
    try {
      become_owner();
      pipe_end reader(told[1]);
      own(size, reader, quit[0]);
      ::_exit(0);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "owner: %s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(told[1]);
  ::close(quit[0]);
  quit_ = quit[1];
  pipe_end owner(told[0]);
  try {
    const std::vector<std::byte> answer = owner.read();
    why_not_.assign(reinterpret_cast<const char*>(answer.data()), answer.size());
    if (!why_not_.empty()) return;
    target_.address = owner.read();
    target_.key = owner.read();
    target_.base = owner.read_number();
    target_.size = owner.read_number();
  } catch (const std::exception& failure) {
    // UCX may end a process over what it finds of CUDA; the others' figures are wanted all the
    // same.
    why_not_ = std::string("its owner has died (") + failure.what() + ")";
  }
}

raw_device::~raw_device() {
  connection_.reset();
  ::close(quit_);
  ::waitpid(child_, nullptr, 0);
}

void raw_device::connect() { connection_ = std::make_unique<connection>(target_); }

void raw_device::get(std::size_t offset, std::span<std::byte> memory) {
  const ucp_request_param_t params = {};
  connection_->finish(ucp_get_nbx(connection_->to, memory.data(), memory.size(),
                                  target_.base + offset, connection_->key, &params),
                      "a raw get");
}

void raw_device::put(std::size_t offset, std::span<const std::byte> memory) {
  const ucp_request_param_t params = {};
  connection_->finish(ucp_put_nbx(connection_->to, memory.data(), memory.size(),
                                  target_.base + offset, connection_->key, &params),
                      "a raw put");
  connection_->finish(ucp_ep_flush_nbx(connection_->to, &params), "a raw flush");
}

}  // namespace ucx::benchmarks
