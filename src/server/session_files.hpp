// One client's requests for files of a server's stores, and the files that it has open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "server/catalogue.hpp"
#include "server/session_grants.hpp"
#include "server/session_rights.hpp"
#include "store/store_core.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

/// Answers come when the disk has done its part, and not at all once this is gone: then nothing is
/// open any more. Under the worker's lock.
class session_files {
 public:
  /// Sends an answer: a refusal where there is an error, else the message.
  using refusal = std::function<void(const control_header&, control_type, std::error_code)>;
  using message = std::vector<std::byte>;
  using sender = std::function<void(const message&)>;
  /// Is told of a region that the client has let go of.
  using release_listener = std::function<void(std::uint64_t)>;

  /// A client may have so many questions unanswered; further ones are refused with `busy`.
  static constexpr std::size_t most_unanswered = 256;

  session_files(const catalogue& names, const session_rights& rights, session_grants& grants,
                std::size_t longest, refusal refuse, sender send, release_listener released);
  session_files(const session_files&) = delete;
  session_files& operator=(const session_files&) = delete;
  ~session_files();

  /// The features that the client knows. Without `stores` it has files, but no directories.
  void set_features(std::uint64_t features) noexcept { features_ = features; }
  bool knows_stores() const noexcept { return (features_ & control_feature::stores) != 0; }
  bool holds(std::uint64_t region) const noexcept { return open_.contains(region); }
  struct file_in_use {
    std::shared_ptr<exposed_region> region;  // null, where the client has no such file open
    entry described;
  };
  file_in_use find(std::uint64_t region) const;
  /// Has nothing of a region that was withdrawn.
  void withdrawn(std::uint64_t region) noexcept { open_.erase(region); }
  /// Lets go of the files that the rules no longer allow, and throws away what is not committed.
  /// Returns their names, and the regions' numbers.
  std::vector<revoke_body> take_disallowed();
  /// The client has said goodbye: what is being opened for it is let go of.
  void left() noexcept { has_left_ = true; }
  /// Lets go of everything.
  void close() noexcept;

  // Each takes a question that was decoded. These concern no published name.
  void open(const control_header& asked, const open_body& body);
  void stat(const control_header& asked, const stat_body& body);
  void list(const control_header& asked, const list_body& body, catalogue::page page);
  void create(const control_header& asked, const create_body& body);
  void commit(const control_header& asked, const commit_body& body);
  void release(const release_body& body);
  // Of these a published name is refused, behind every check of rights: else they would tell a
  // client of names that it may not see.
  void remove(const control_header& asked, const remove_body& body);
  void make_directory(const control_header& asked, const make_directory_body& body);
  void rename(const control_header& asked, const rename_body& body);
  void resize(const control_header& asked, const resize_body& body);

 private:
  struct open_file {
    std::shared_ptr<store_core> store;
    std::shared_ptr<store_region> region;
    access_right needed = access_right::none;
  };
  struct gathered_page;
  /// A page of a directory's names that are behind a name.
  struct directory_page {
    control_header asked;
    std::shared_ptr<store_core> store;
    std::string path;
    std::string above;  // what their names begin with
    std::string behind;
    std::uint64_t unserved = 0;  // so far
  };

  bool has_lost(std::uint64_t region) const;
  bool is_published(const control_header& asked, const std::string& name);
  bool begin(const control_header& asked, control_type answer);
  bool begin_open(const control_header& asked, const store_core& store);
  template <class Then>
  auto later(Then then);
  store_files::opened on_opened(const control_header& asked, std::shared_ptr<store_core> store,
                                std::string name, access_right needed);
  store_names::done on_done(const control_header& asked);
  void gather(const std::shared_ptr<gathered_page>& all);
  void send_page(gathered_page& all, bool is_full);
  void take_part(const std::shared_ptr<gathered_page>& all,
                 const std::shared_ptr<store_core>& store, const store_listing::page& found);
  void list_directory(const control_header& asked, const list_body& body);
  void read_directory(const directory_page& wanted);
  void send_directory(const directory_page& wanted, const store_listing::page& page);

  const catalogue& catalogue_;
  const session_rights& rights_;
  session_grants& grants_;
  const std::size_t longest_;
  refusal refuse_;
  sender send_;
  release_listener released_;
  std::uint64_t features_ = 0;
  std::size_t unanswered_ = 0;
  std::size_t opening_ = 0;  // of those
  bool has_left_ = false;
  std::unordered_map<std::uint64_t, open_file> open_;  // by the region's number
  std::shared_ptr<session_files*> self_;               // null once this is gone
};

}  // namespace ucx::detail
