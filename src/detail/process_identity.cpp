#include "detail/process_identity.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

#include "detail/wire.hpp"

namespace ucx::detail {
namespace {

/// Returns when a process started, the 22nd word of its status; 0 where that can not be read.
std::uint64_t start_of(std::uint64_t process) {
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

}  // namespace

std::optional<process_identity> process_identity::own() {
  struct ::stat space = {};
  if (::stat("/proc/self/ns/pid", &space) != 0) return std::nullopt;
  process_identity made;
  made.process = static_cast<std::uint64_t>(::getpid());
  made.pid_namespace = space.st_ino;
  made.started = start_of(made.process);
  if (made.pid_namespace == 0 || made.started == 0) return std::nullopt;
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
  if (start_of(process) == started) return made;
#endif
  return {};
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
