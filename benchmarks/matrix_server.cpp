#include "matrix_server.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <vector>

#include "network.hpp"
#include "process_memory.hpp"
#include "raw_ucx.hpp"
#include "ucx/publication.hpp"
#include "ucx/server.hpp"

namespace ucx::benchmarks {
namespace {

int serve(context_options chosen, const std::string& bind, std::size_t size,
          matrix_server::memory whose, int tell, int quit) {
  try {
    become_owner();
    const bool is_mapped = whose == matrix_server::memory::allocated;
    chosen.share_memory = is_mapped;
    server named({.bind = bind, .context = chosen});
    std::vector<std::byte> own(is_mapped ? 0 : size);
    const publication shown = is_mapped ? named.allocate("matrix", size, access::read)
                                        : named.publish("matrix", std::span(own), access::read);
    fill_pattern(shown.bytes());
    const std::string line = named.url() + "\n";
    if (::write(tell, line.data(), line.size()) < 0) return 1;
    char nothing = 0;
    while (::read(quit, &nothing, 1) > 0) {
    }
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "server: %s\n", failure.what());
    return 1;
  }
}

}  // namespace

matrix_server::matrix_server(const context_options& chosen, const std::string& bind,
                             std::size_t size, memory whose) {
  std::array<int, 2> told = {};
  std::array<int, 2> quit = {};
  if (::pipe(told.data()) != 0 || ::pipe(quit.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for the server");
  if (child_ == 0) {
    ::close(told[0]);
    ::close(quit[1]);
    ::_exit(serve(chosen, bind, size, whose, told[1], quit[0]));
  }
  ::close(told[1]);
  ::close(quit[0]);
  quit_ = quit[1];
  for (char c = 0; ::read(told[0], &c, 1) == 1 && c != '\n';) url_ += c;
  ::close(told[0]);
  if (url_.empty()) throw std::runtime_error("the server has died");
}

matrix_server::~matrix_server() {
  ::close(quit_);
  ::waitpid(child_, nullptr, 0);
}

double matrix_server::resident_kilobytes() const { return resident_kilobytes_of(child_); }

}  // namespace ucx::benchmarks
