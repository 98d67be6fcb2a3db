// An SQLite file, for reading, over a ucx::remote_file: what a VFS of SQLite's opens. It locks
// nothing: for databases that are replaced whole, and not for those that are written in place.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include <sqlite3.h>

#include <ucx/remote_file.hpp>

struct sqlite_file : sqlite3_file {
  ucx::remote_file remote;

  /// Makes one in the memory that SQLite gives.
  static void make(sqlite3_file* where, ucx::remote_file&& opened) {
    auto* const made = new (where) sqlite_file{{}, std::move(opened)};
    if (made->remote.is_open()) made->pMethods = &methods;  // else SQLite does not close it
  }

 private:
  static ucx::remote_file& of(sqlite3_file* file) {
    return static_cast<sqlite_file*>(file)->remote;
  }

  static int close(sqlite3_file* file) {
    static_cast<sqlite_file*>(file)->~sqlite_file();
    return SQLITE_OK;
  }
  static int read(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
    const std::span<std::byte> bytes(static_cast<std::byte*>(into), static_cast<std::size_t>(size));
    std::error_code ec;
    const std::size_t count = of(file).read_at(static_cast<std::uint64_t>(offset), bytes, ec);
    if (ec) return SQLITE_IOERR_READ;
    std::memset(bytes.data() + count, 0, bytes.size() - count);  // as SQLite wants it at the end
    return count == bytes.size() ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }
  static int size(sqlite3_file* file, sqlite3_int64* bytes) {
    *bytes = static_cast<sqlite3_int64>(of(file).size());
    return SQLITE_OK;
  }
  static int write(sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; }
  static int truncate(sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; }
  static int nothing(sqlite3_file*, int) { return SQLITE_OK; }  // to sync, or to lock
  static int locked(sqlite3_file*, int* is_locked) { return *is_locked = 0, SQLITE_OK; }
  static int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int sector(sqlite3_file*) { return 4096; }
  // Who has a file of a store open has that file, also where another one takes its name.
  static int traits(sqlite3_file*) { return SQLITE_IOCAP_IMMUTABLE; }

  static inline const sqlite3_io_methods methods{
      1,       close,  read,   write,   truncate, nothing, size,    nothing, nothing, locked,
      control, sector, traits, nullptr, nullptr,  nullptr, nullptr, nullptr, nullptr};
};
