#include "wire/process_identity.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "wire/wire.hpp"

namespace ucx::detail {

/// Word 22 of /proc/PID/stat.
std::uint64_t start_of_process(std::uint64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string status{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name = status.rfind(')');  // a name may hold anything
  if (name == std::string::npos) return 0;
  std::istringstream words(status.substr(name + 1));
  std::string skipped;
  for (int word = 3; word < 22; ++word) words >> skipped;
  std::uint64_t started = 0;
  words >> started;
  return words ? started : 0;
}

namespace {

#ifdef SYS_pidfd_open
/// Returns whether the process that has this descriptor has ended.
bool has_ended(const owned_descriptor& process) noexcept {
  ::pollfd polled = {process.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
}
#endif

std::optional<process_identity> read_own() {
  struct ::stat space = {};
  if (::stat("/proc/self/ns/pid", &space) != 0) return std::nullopt;
  process_identity made;
  made.process = static_cast<std::uint64_t>(::getpid());
  made.pid_namespace = space.st_ino;
  made.started = start_of_process(made.process);
  if (made.pid_namespace == 0 || made.started == 0) return std::nullopt;
  return made;
}

}  // namespace

/// Read once: it is asked for under workers' locks. There is no lock here, because a child of
/// fork() could find it taken for ever. Threads that write at the same time write the same values.
std::optional<process_identity> process_identity::own() {
  static std::atomic<std::uint64_t> known_process{0};  // whose the others are: a child has its own
  static std::atomic<std::uint64_t> known_namespace{0};
  static std::atomic<std::uint64_t> known_start{0};
  process_identity known;
  known.process = known_process.load(std::memory_order_acquire);
  if (known.process == static_cast<std::uint64_t>(::getpid())) {
    known.pid_namespace = known_namespace.load(std::memory_order_relaxed);
    known.started = known_start.load(std::memory_order_relaxed);
    return known;
  }
  const std::optional<process_identity> made = read_own();
  if (!made) return std::nullopt;
  known_namespace.store(made->pid_namespace, std::memory_order_relaxed);
  known_start.store(made->started, std::memory_order_relaxed);
  known_process.store(made->process, std::memory_order_release);
  return made;
}

std::vector<std::byte> process_identity::encode() const {
  wire_writer writer = envelope::begin(letters);
  writer.put(process);
  writer.put(pid_namespace);
  writer.put(started);
  return envelope::end(std::move(writer));
}

process_identity::opened process_identity::open() const {
  const std::optional<process_identity> self = own();
  if (!self || self->pid_namespace != pid_namespace || self->process == process) return {};
  if (process == 0 || process > std::numeric_limits<::pid_t>::max()) return {};
#ifdef SYS_pidfd_open
  opened made;
  made.descriptor = owned_descriptor(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<::pid_t>(process), 0)));
  if (!made.descriptor) {
    made.gone = errno == ESRCH;
    return made;
  }
  // Behind the descriptor: from here on the number is of whom that is about.
  if (start_of_process(process) == started) return made;
  // Another process has the number, or none has it any more. If the process of the descriptor has
  // ended, so has the one that is sought.
  opened ended;
  ended.gone = has_ended(made.descriptor);
  return ended;
#else
  return {};
#endif
}

std::optional<process_identity> decode_process_identity(std::span<const std::byte> wire) {
  const envelope opened(wire, process_identity::letters);
  if (opened.outcome() != envelope::verdict::intact) return std::nullopt;
  wire_reader reader(opened.body());
  process_identity read;
  read.process = reader.take<std::uint64_t>();
  read.pid_namespace = reader.take<std::uint64_t>();
  read.started = reader.take<std::uint64_t>();
  if (!reader.finished()) return std::nullopt;
  return read;
}

}  // namespace ucx::detail
