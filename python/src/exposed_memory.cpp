#include "exposed_memory.hpp"

#include <span>
#include <utility>
#include <vector>

#include <ucx/error.hpp>

#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {

namespace nb = nanobind;

exposed_memory_object::exposed_memory_object(std::unique_ptr<ucx::memory_region> made,
                                             borrowed&& lent)
    : lent_(std::move(lent)),
      region_(std::move(made)),
      address_(reinterpret_cast<std::uintptr_t>(region_->bytes().data())),
      length_(region_->size()) {}

exposed_memory_object exposed_memory_object::map(const plain_context_object& of,
                                                 nb::handle buffer) {
  refuse_forked_child();
  borrowed lent;
  const std::span<std::byte> bytes = lent.take_buffer(buffer, use::write);
  std::unique_ptr<ucx::memory_region> made;
  {
    const without_gil free;
    made = std::make_unique<ucx::memory_region>(*of.shared(), bytes, ucx::access::read_write);
  }
  return exposed_memory_object(std::move(made), std::move(lent));
}

exposed_memory_object exposed_memory_object::allocate(const plain_context_object& of,
                                                      std::size_t size) {
  refuse_forked_child();
  std::unique_ptr<ucx::memory_region> made;
  {
    const without_gil free;
    made = std::make_unique<ucx::memory_region>(
        ucx::memory_region::allocate(*of.shared(), size, ucx::access::read_write));
  }
  return exposed_memory_object(std::move(made), borrowed());
}

exposed_memory_object::~exposed_memory_object() {
  if (!region_) return;
  const without_gil free;
  region_.reset();
}

nb::bytes exposed_memory_object::key() const {
  refuse_forked_child();
  if (!region_) throw ucx::error(ucx::errc::closed, "the memory was taken back");
  const std::vector<std::byte> packed = region_->descriptor().remote_key;
  if (packed.empty() && length_ != 0) {
    throw ucx::error(ucx::errc::not_supported,
                     "UCX has no key for the memory: a device's is reached by ucxio.Server alone");
  }
  return nb::bytes(packed.data(), packed.size());
}

std::uintptr_t exposed_memory_object::native_handle() const {
  refuse_forked_child();
  if (!region_) throw ucx::error(ucx::errc::closed, "the memory was taken back");
  return reinterpret_cast<std::uintptr_t>(region_->native_handle());
}

void exposed_memory_object::close() {
  if (!region_) return;
  {
    std::unique_ptr<ucx::memory_region> gone = std::move(region_);
    const without_gil free;
    gone.reset();
  }
  lent_ = {};
}

void add_exposed_memory(nb::module_& module) {
  using object = exposed_memory_object;
  nb::class_<object>(module, "ExposedMemory")
      .def_static("map", &object::map, nb::arg("context"), nb::arg("buffer").none())
      .def_static("allocate", &object::allocate, nb::arg("context"), nb::arg("size"))
      .def_prop_ro("address", &object::address)
      .def_prop_ro("length", &object::length)
      .def("key", &object::key)
      .def_prop_ro("handle", &object::native_handle)
      .def("close", &object::close);
}

}  // namespace ucxio_python
