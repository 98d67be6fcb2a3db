// Asks a database of SQLite's that a server has in a store: only the pages that a query needs are
// moved. Any program does so that opens "ucxs://..." with the VFS "ucx".
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include <ucx/server.hpp>

#include "sqlite_file.hpp"

/// SQLite's own VFS, but for opening: the name is a URL, and nothing lies beside it.
void register_vfs() {
  static sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
  vfs.zName = "ucx";
  vfs.szOsFile = sizeof(sqlite_file);
  vfs.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* granted) {
    file->pMethods = nullptr;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return SQLITE_CANTOPEN;
    std::error_code ec;
    const ucx::url address(name, ec);
    if (!ec) sqlite_file::make(file, ucx::remote_file(address, {}, ec));
    if (granted != nullptr) *granted = SQLITE_OPEN_READONLY;
    return ec ? SQLITE_CANTOPEN : SQLITE_OK;
  };
  vfs.xAccess = [](sqlite3_vfs*, const char*, int, int* there) { return *there = 0, SQLITE_OK; };
  vfs.xFullPathname = [](sqlite3_vfs*, const char* name, int size, char* full) {
    return sqlite3_snprintf(size, full, "%s", name), SQLITE_OK;
  };
  sqlite3_vfs_register(&vfs, 0);
}

int run(const std::string& name, const char* vfs, int flags, const char* sql) {
  sqlite3* database = nullptr;
  const auto show = [](void*, int count, char** values, char**) {
    for (int i = 0; i < count; ++i) std::cout << values[i] << (i + 1 < count ? ' ' : '\n');
    return 0;
  };
  int failed = sqlite3_open_v2(name.c_str(), &database, flags, vfs);
  if (failed == SQLITE_OK) failed = sqlite3_exec(database, sql, show, nullptr, nullptr);
  if (failed != SQLITE_OK) std::cerr << name << ": " << sqlite3_errmsg(database) << '\n';
  sqlite3_close(database);
  return failed;
}

int main() {
  std::string directory = std::filesystem::temp_directory_path() / "remote_database.XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 1;
  run(directory + "/squares.db", nullptr, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
      "create table squares as with recursive n(i) as (values(1) union all select i + 1 from n "
      "limit 100000) select i, i * i as square from n; create index by_square on squares(square);");
  ucx::server server;  // from here on it could be elsewhere
  const ucx::publication store = server.publish_store(directory);
  register_vfs();
  const int failed = run(server.url() + "/squares.db", "ucx", SQLITE_OPEN_READONLY,
                         "select count(*), max(square) from squares;"
                         "select i from squares where square = 144000000;");
  std::filesystem::remove_all(directory);
  return failed;
}
