#include "ucx/file_descriptor.hpp"

#include <unistd.h>

namespace ucx {

file_descriptor& file_descriptor::operator=(file_descriptor&& other) noexcept {
  if (this != &other) {
    const file_descriptor closes(std::exchange(descriptor_, other.release()));
  }
  return *this;
}

file_descriptor::~file_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace ucx
