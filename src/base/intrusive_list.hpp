// A doubly linked list through its elements: O(1) removal, and no allocation.
#pragma once

#include <cstddef>

namespace ucx::detail {

/// The base of elements of an `intrusive_list`, once per `Tag` (per list that they can be in).
template <class Tag>
class list_hook {
 public:
  list_hook() noexcept = default;
  list_hook(const list_hook&) = delete;
  list_hook& operator=(const list_hook&) = delete;
  bool linked() const noexcept { return next_ != nullptr; }

 private:
  template <class, class>
  friend class intrusive_list;
  list_hook* previous_ = nullptr;
  list_hook* next_ = nullptr;
};

/// A list of elements that it does not own. An element is in one list of a `Tag` at most.
template <class Element, class Tag>
class intrusive_list {
  using hook = list_hook<Tag>;

 public:
  intrusive_list() noexcept { head_.previous_ = head_.next_ = &head_; }
  intrusive_list(const intrusive_list&) = delete;
  intrusive_list& operator=(const intrusive_list&) = delete;

  bool empty() const noexcept { return head_.next_ == &head_; }
  std::size_t size() const noexcept { return size_; }

  void push_back(Element& element) noexcept {
    hook& added = element;
    added.previous_ = head_.previous_;
    added.next_ = &head_;
    head_.previous_->next_ = &added;
    head_.previous_ = &added;
    ++size_;
  }
  void push_front(Element& element) noexcept {
    hook& added = element;
    added.previous_ = &head_;
    added.next_ = head_.next_;
    head_.next_->previous_ = &added;
    head_.next_ = &added;
    ++size_;
  }
  void remove(Element& element) noexcept {
    hook& removed = element;
    removed.previous_->next_ = removed.next_;
    removed.next_->previous_ = removed.previous_;
    removed.previous_ = removed.next_ = nullptr;
    --size_;
  }
  Element* front() const noexcept { return empty() ? nullptr : static_cast<Element*>(head_.next_); }
  /// Returns the element behind `element`, or nothing at the end.
  Element* next(Element& element) const noexcept {
    hook* following = static_cast<hook&>(element).next_;
    return following == &head_ ? nullptr : static_cast<Element*>(following);
  }

 private:
  hook head_;
  std::size_t size_ = 0;
};

}  // namespace ucx::detail
