// Every kind of request of a client and of a remote_file, and what they need.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/client.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/entry.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::test {

/// What requests are about, and where their results go. The store has a "file", and no "made".
struct request_subjects {
  /// Makes what is not open: files of 100 bytes that this client writes.
  void open_files() {
    if (written.status()) {
      written = over->create("written", {.readable = true});
      written.write_at(0, text);
      written.flush();
    }
    if (opened.is_open()) return;
    opened = remote_file(
        *over, "opened",
        {.wanted = access::read_write, .create = creation::replace, .timeout = each.timeout});
    opened.write_at(0, text);
    opened.sync();
  }
  /// Lets go of all that is open.
  void close_files() {
    { const remote_region gone = std::move(written); }
    { const remote_region gone = std::move(made); }
    std::error_code ignored;
    opened.close(ignored);
    { const remote_file gone = std::move(made_file); }
  }

  client* over = nullptr;
  io_options each = {};
  std::vector<std::byte> text = std::vector<std::byte>(100, std::byte{3});
  remote_region written = {};
  remote_region made = {};
  remote_file opened = {};
  remote_file made_file = {};
  std::vector<std::byte> into = std::vector<std::byte>(10);
  std::size_t count = 0;
  std::vector<entry> entries = {};
  directory_listing listing = {};
  entry described = {};
  std::vector<content_digest> digests = {};
  request before = {};  // a write that a sync covers
};

struct request_kind {
  const char* name;
  std::function<request(request_subjects& at)> start;
  bool moves_bytes = false;  ///< Of the caller's: given up, it ends when UCX has let go of them.
};

inline void PrintTo(const request_kind& each, std::ostream* out) { *out << each.name; }

inline std::vector<request_kind> requests_of_client() {
  using at_type = request_subjects;
  return {
      {"open",
       [](at_type& at) { return at.over->start_open("file", access::read, at.made, at.each); }},
      {"create", [](at_type& at) { return at.over->start_create("made", {}, at.made, at.each); }},
      {"commit",
       [](at_type& at) { return at.over->start_commit(at.written, {}, at.described, at.each); }},
      {"measure",
       [](at_type& at) {
         const std::chrono::seconds wait(1);
         return at.over->start_refresh_size(at.written, 100, wait, at.described, at.each);
       }},
      {"digest",
       [](at_type& at) {
         const digest_range all{.offset = 0, .length = 100, .chunk = 10};
         return at.over->start_digest(at.written, all, at.digests, at.each);
       }},
      {"list", [](at_type& at) { return at.over->start_list(at.entries, at.each); }},
      {"list_directory",
       [](at_type& at) { return at.over->start_list_directory("", at.listing, at.each); }},
      {"stat", [](at_type& at) { return at.over->start_stat("file", at.described, at.each); }},
      {"remove", [](at_type& at) { return at.over->start_remove("file", at.each); }},
      {"rename", [](at_type& at) { return at.over->start_rename("file", "made", at.each); }},
      {"resize", [](at_type& at) { return at.over->start_resize("file", 100, at.each); }},
      {"resize_region",
       [](at_type& at) { return at.over->start_resize(at.written, 100, at.each); }},
      {"make_directory",
       [](at_type& at) { return at.over->start_make_directory("made", at.each); }}};
}

inline std::vector<request_kind> requests_of_file() {
  using at_type = request_subjects;
  return {{"open_file",
           [](at_type& at) {
             const remote_file_options how{.timeout = at.each.timeout};
             return remote_file::start_open(*at.over, "file", how, at.made_file);
           }},
          {"read", [](at_type& at) { return at.opened.start_read_at(0, at.into, at.count); }, true},
          {"write", [](at_type& at) { return at.opened.start_write_at(0, at.text); }, true},
          {"resize_file", [](at_type& at) { return at.opened.start_resize(50); }},
          {"sync",
           [](at_type& at) {
             at.before = at.opened.start_write_at(0, at.text);
             return at.opened.start_sync();
           }},
          {"commit_file", [](at_type& at) { return at.opened.start_commit(); }},
          {"close_file", [](at_type& at) { return at.opened.start_close(); }}};
}

}  // namespace ucx::test
