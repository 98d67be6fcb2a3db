// The room that a worker has for untaken messages, and which peers have it.
#pragma once

#include <array>
#include <cstddef>

#include "base/intrusive_list.hpp"

namespace ucx::detail {

struct room_account_tag {};
struct room_wanted_tag {};

/// The room of one peer, in units of 256 bytes. The base of a side of a connection.
class room_account : public list_hook<room_account_tag>, public list_hook<room_wanted_tag> {
 public:
  std::size_t lent() const noexcept { return lent_; }
  /// Returns whether the peer may be lent more.
  bool may_grow() const noexcept { return flexible_ && lent_ < most_; }

 protected:
  room_account() noexcept = default;
  virtual ~room_account() = default;
  bool is_open() const noexcept { return open_; }
  bool is_flexible() const noexcept { return flexible_; }
  std::size_t written_off() const noexcept { return written_off_; }

 private:
  friend class untaken_budget;
  /// By how soon it is served: `fair` has less than its part of what can be lent.
  enum class line { fair, more_than_fair, untaken, none };

  /// So many more units are the peer's: it has to hear of them.
  virtual void more_lent(std::size_t units) noexcept = 0;
  /// Others want what the peer does not use: it is asked to keep a loan of so many units.
  virtual void recalled(std::size_t loan) noexcept = 0;
  virtual std::size_t unused() const noexcept = 0;
  /// Returns whether the peer has had the time to answer the last recall.
  virtual bool is_overdue() const noexcept = 0;

  std::size_t lent_ = 0;
  std::size_t most_ = 0;
  std::size_t wanted_ = 0;
  line line_ = line::none;
  std::size_t recalls_ = 0;      // that were not answered
  std::size_t recalled_ = 0;     // the units that the last of them asked for
  std::size_t written_off_ = 0;  // units that were to be given back, and are others' since
  bool open_ = false;
  bool flexible_ = false;
  bool stiff_ = false;  // its loan may never change
};

/// A ledger: the loans of all peers together stay within a number. An eighth of it is for floors,
/// which every peer has. The rest is lent to peers whose messages the program takes. Other peers
/// get loans only while less than half of the number is lent: that leaves something to those that
/// are read. A peer that wants more waits in turn, behind those that have less than their part.
/// A peer that does not give back what others wait for loses it all the same. It gets nothing more
/// until it has answered. It may not have heard: units that it uses are then lent to it again. The
/// sum may then exceed the number by an eighth. Everything happens under the worker's lock.
class untaken_budget {
 public:
  /// The least loan. An announcement with the longest header, 17 units, finds room although a
  /// quarter waits to be told to the peer. Half of it holds a message of 2 KiB, which goes whole.
  static constexpr std::size_t floor = 24;
  /// The least loan that may never change: a longest header finds room.
  static constexpr std::size_t stiff_floor = 64;

  explicit untaken_budget(std::size_t units) noexcept : total_(units) {}
  untaken_budget(const untaken_budget&) = delete;
  untaken_budget& operator=(const untaken_budget&) = delete;

  /// A peer comes. Its first loan is generous while there are few. Unless the peer `borrows`, the
  /// loan may have to stay as it is. Such loans share an eighth of the number, above their floors.
  void open(room_account& peer, bool borrows, std::size_t most) noexcept;
  /// The peer can be told of changes.
  void loosen(room_account& peer) noexcept;
  /// The peer wants more, twice what it has; messages of it were `taken` since it said so, or not.
  void ask(room_account& peer, bool taken) noexcept;
  /// So many units of the peer's were taken: returns how many of them it does not get again,
  /// because others with less wait. Then `serve`.
  std::size_t withhold(room_account& peer, std::size_t units) noexcept;
  /// The peer has given back what it does not use. It is left the floor. REQUIRES: that is as much
  /// as was written off, where no further recall is on its way.
  void given_back(room_account& peer, std::size_t units) noexcept;
  /// The peer uses more than it has. Returns whether that was written off, and is given back.
  bool regain(room_account& peer, std::size_t units) noexcept;
  /// Returns whether a peer may answer so.
  static bool may_give_back(const room_account& peer, std::size_t units) noexcept {
    return peer.recalls_ > 1 || units >= peer.written_off_;
  }
  /// The peer has left: only so many units are in use still.
  void shrink(room_account& peer, std::size_t units) noexcept;
  void close(room_account& peer) noexcept;
  /// Messages of peers that are gone.
  void keep(std::size_t units) noexcept { in_use_ += units; }
  void release(std::size_t units) noexcept;

  /// Lends what is free to those who wait, and asks for more where that is not enough.
  void serve() noexcept;
  /// Returns whether a peer waits whose messages are taken.
  bool is_short() const noexcept {
    return !at(room_account::line::fair).empty() || !at(room_account::line::more_than_fair).empty();
  }
  /// Returns the units that peers have, used or not, with what peers that are gone have left.
  std::size_t in_use() const noexcept { return in_use_; }

 private:
  using waiting = intrusive_list<room_account, room_wanted_tag>;
  /// No peer that waits is served with less.
  static constexpr std::size_t least_loan = 64;
  /// So many accounts are looked at in search for room that is not used.
  static constexpr std::size_t most_looks = 16;

  static std::size_t free_within(std::size_t limit, std::size_t used) noexcept {
    return limit > used ? limit - used : 0;
  }
  const waiting& at(room_account::line which) const noexcept {
    return lines_[static_cast<std::size_t>(which)];
  }
  waiting& at(room_account::line which) noexcept { return lines_[static_cast<std::size_t>(which)]; }
  std::size_t lendable() const noexcept { return total_ - total_ / 8; }
  void serve_lines() noexcept;
  bool serve(room_account::line which, std::size_t limit) noexcept;
  void join_line(room_account& peer, room_account::line which) noexcept;
  void leave_line(room_account& peer) noexcept;
  bool is_poor(const room_account& peer) const noexcept {
    return peer.lent_ < lendable() / peers_.size();
  }
  bool recall_unused() noexcept;
  std::size_t write_off(room_account& peer) noexcept;
  void leave(room_account& peer) noexcept;

  const std::size_t total_;
  std::size_t in_use_ = 0;
  std::size_t stiff_ = 0;  // of these, in loans that may never change
  intrusive_list<room_account, room_account_tag> peers_;
  std::array<waiting, 3> lines_;
  bool serving_ = false;
};

}  // namespace ucx::detail
