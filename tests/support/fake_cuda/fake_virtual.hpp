// What the pretended driver gives out to share memory by: descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace ucx::test {

/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
constexpr unsigned type_descriptor = 1;

/// Makes a file in memory; less than 0 where that fails.
int make_memory_file(std::size_t size);
/// Returns a descriptor by which another process may import `file`, once it has got it itself. As
/// with the real driver it is of no use to open the same file again.
int export_file(int file);
/// Returns how long the file is that was exported so, and which; less than 0 for any other file.
::off_t size_of_exported(int file, ::ino_t* inode = nullptr);

}  // namespace ucx::test
