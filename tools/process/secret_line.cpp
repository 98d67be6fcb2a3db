#include "process/secret_line.hpp"

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

#include "output/exit_code.hpp"
#include "output/output.hpp"

namespace ucx::tool {

secret_text::~secret_text() { ::explicit_bzero(text.data(), text.capacity()); }

void read_secret(secret_text& into, const std::string& what) {
  constexpr std::size_t longest = 256;
  if (::isatty(STDIN_FILENO) == 1) say("ucxio: " + what + " (one line): ");
  std::string& line = into.text;
  line.reserve(longest);  // it is copied nowhere else
  while (line.size() < longest) {
    char letter = 0;
    const ::ssize_t read = ::read(STDIN_FILENO, &letter, 1);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) {
      throw failure(exit_code::failure,
                    "the standard input: " + std::generic_category().message(errno));
    }
    if (read == 0 || letter == '\n') break;
    line += letter;
  }
  while (line.ends_with(' ') || line.ends_with('\r')) line.pop_back();
}

}  // namespace ucx::tool
