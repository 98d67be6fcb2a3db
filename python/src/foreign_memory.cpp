#include "foreign_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <ucx/memory_place.hpp>
#include <ucx/memory_resources.hpp>

#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

// Of dlpack.h, version 1.

struct dlpack_tensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t dimensions;
  std::uint8_t type_code;
  std::uint8_t type_bits;
  std::uint16_t type_lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct dlpack_versioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(dlpack_versioned*);
  std::uint64_t flags;
  dlpack_tensor tensor;
};

constexpr int dlpack_cpu = 1;
constexpr int dlpack_cuda = 2;
constexpr int dlpack_cuda_host = 3;
constexpr int dlpack_cuda_managed = 13;
constexpr std::uint64_t dlpack_read_only = 1;
constexpr std::uint64_t dlpack_is_copy = 2;
/// CU_STREAM_LEGACY, which DLPack has as this number, too.
constexpr std::uintptr_t legacy_stream = 1;

std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string text = "(";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  }
  return text + (numbers.size() == 1 ? ",)" : ")");
}

std::string type_of(nb::handle object) { return nb::str(object.type().attr("__name__")).c_str(); }

[[noreturn]] void refuse(nb::handle object, const std::string& why) {
  throw nb::value_error(
      ("the memory of this " + type_of(object) + " can not be used: " + why).c_str());
}

[[noreturn]] void refuse_type(nb::handle object, const std::string& why) {
  throw nb::type_error(
      ("the memory of this " + type_of(object) + " can not be used: " + why).c_str());
}

/// Returns the bytes of items of this shape.
std::size_t size_of(nb::handle object, const std::vector<std::int64_t>& shape,
                    std::size_t item_size) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t each) { return each < 0; })) {
    refuse(object, "a negative number in the shape " + listed(shape));
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::size_t size = item_size;
  for (const std::int64_t each : shape) {
    if (size > most / static_cast<std::size_t>(each)) {
      refuse(object, "the shape " + listed(shape) + " is too large");
    }
    size *= static_cast<std::size_t>(each);
  }
  return size;
}

/// Refuses strides, in units of which an item has `item_size`, that are not C-contiguous. Those of
/// dimensions of one item do not matter.
void check_strides(nb::handle object, const std::vector<std::int64_t>& shape,
                   const std::vector<std::int64_t>& strides, std::size_t item_size) {
  if (strides.size() != shape.size()) {
    refuse(object,
           "shape " + listed(shape) + " and strides " + listed(strides) + " differ in length");
  }
  auto expected = static_cast<std::int64_t>(item_size);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) {
      const std::string text = "a C-contiguous buffer is needed; this " + type_of(object) +
                               " has shape " + listed(shape) + " and strides " + listed(strides);
      throw nb::value_error(text.c_str());
    }
    expected *= shape[i];
  }
}

std::vector<std::int64_t> numbers_of(nb::handle object, nb::handle given, const char* what) {
  if (!nb::isinstance<nb::tuple>(given)) refuse(object, std::string(what) + " is no tuple");
  std::vector<std::int64_t> numbers;
  for (nb::handle each : nb::iter(given)) {
    std::int64_t number = 0;
    if (!nb::try_cast(each, number)) {
      refuse(object, std::string(what) + " has an item that is no integer of 64 bits");
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// Returns a value of the interface. Without `is_needed` None stands for one that is missing.
nb::object value_of(nb::handle object, const nb::dict& interface, const char* key, bool is_needed) {
  if (interface.contains(key)) return interface[key];
  if (is_needed) refuse(object, "its __cuda_array_interface__ has no \"" + std::string(key) + '"');
  return nb::none();
}

/// Returns the bytes of an item of a type such as "<f4".
std::size_t item_size_of(nb::handle object, nb::handle given) {
  std::string type;
  if (!nb::try_cast(given, type)) refuse(object, "typestr is no text");
  constexpr std::string_view orders = "<>|=";
  constexpr std::string_view kinds = "bifucmMSUV";
  constexpr std::size_t most_digits = 9;
  const bool is_whole = type.size() >= 3 && type.size() <= 2 + most_digits &&
                        orders.find(type[0]) != std::string_view::npos &&
                        type.find_first_not_of("0123456789", 2) == std::string::npos;
  if (is_whole && type[1] == 'O') refuse_type(object, "its items are references to objects");
  if (is_whole && type[1] == 't') refuse_type(object, "its items are bits");
  if (!is_whole || kinds.find(type[1]) == std::string_view::npos) {
    refuse(object, "typestr \"" + type + "\" is no type");
  }
  constexpr std::size_t character = 4;  // of "U"
  return std::stoul(type.substr(2)) * (type[1] == 'U' ? character : 1);
}

void* stream_of(nb::handle object, nb::handle given) {
  if (given.is_none()) return nullptr;
  std::uint64_t number = 0;
  if (!nb::try_cast(given, number)) refuse(object, "its stream is neither None nor an address");
  // 0 could be the legacy default stream, or that of the thread.
  if (number == 0) refuse(object, "0 is no stream: 1 and 2 are the default streams");
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}

/// Refuses memory that only its package says to be a device's: the processor would touch it. Looks
/// at the first byte and the last.
void check_place(nb::handle object, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  bool is_known = true;
  {
    const without_gil free;
    for (std::byte* const each : {&bytes.front(), &bytes.back()}) {
      const ucx::memory_kind found = ucx::place_of(each).kind;
      is_known = is_known && found != ucx::memory_kind::host && found != ucx::memory_kind::other;
    }
  }
  if (!is_known) refuse(object, "the CUDA driver does not know it");
}

std::span<std::byte> bytes_at(nb::handle object, std::uintptr_t address, std::size_t size) {
  if (size == 0) return {};
  if (address == 0) refuse(object, "its address is null");
  return {reinterpret_cast<std::byte*>(address), size};
}

/// Calls `__dlpack__`, in the form of the newest producers or, where they do not know that, of the
/// older ones.
nb::object export_of(nb::handle object, bool is_of_device) {
  const nb::object function = object.attr("__dlpack__");
  const nb::object stream = is_of_device ? nb::object(nb::int_(legacy_stream)) : nb::none();
  try {
    return function(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& failed) {
    if (!failed.matches(PyExc_TypeError)) throw;
  }
  return is_of_device ? function(nb::arg("stream") = stream) : function();
}

}  // namespace

std::optional<foreign_memory> cuda_array_of(nb::handle object) {
  const nb::object given = nb::getattr(object, "__cuda_array_interface__", nb::none());
  if (given.is_none()) return std::nullopt;
  if (!nb::isinstance<nb::dict>(given)) refuse(object, "__cuda_array_interface__ is no dict");
  const auto interface = nb::cast<nb::dict>(given);
  std::int64_t version = 0;
  const bool is_number = nb::try_cast(value_of(object, interface, "version", true), version);
  if (!is_number || (version != 2 && version != 3)) {
    refuse(object, "its __cuda_array_interface__ has neither version 2 nor 3");
  }
  const auto shape = numbers_of(object, value_of(object, interface, "shape", true), "shape");
  const auto item_size = item_size_of(object, value_of(object, interface, "typestr", true));
  const std::size_t size = size_of(object, shape, item_size);
  const nb::object strides = value_of(object, interface, "strides", false);
  if (!strides.is_none() && size > 0) {
    check_strides(object, shape, numbers_of(object, strides, "strides"), item_size);
  }
  if (!value_of(object, interface, "mask", false).is_none()) refuse(object, "it has a mask");
  const nb::object data = value_of(object, interface, "data", true);
  std::uint64_t address = 0;
  if (!nb::isinstance<nb::tuple>(data) || nb::len(data) != 2 ||
      !nb::try_cast(nb::handle(data[0]), address) || !nb::isinstance<nb::bool_>(data[1])) {
    refuse(object, "data is no pair of an address and a bool");
  }
  foreign_memory found;
  found.bytes = bytes_at(object, static_cast<std::uintptr_t>(address), size);
  found.is_read_only = nb::cast<bool>(data[1]);
  // Version 2 does not tell: what is enqueued on the default stream comes first.
  found.stream = version == 3 ? stream_of(object, value_of(object, interface, "stream", false))
                              : reinterpret_cast<void*>(legacy_stream);
  found.owner = nb::borrow(object);
  check_place(object, found.bytes);
  return found;
}

std::optional<foreign_memory> dlpack_of(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__") || !nb::hasattr(object, "__dlpack_device__")) {
    return std::nullopt;
  }
  const nb::object device = object.attr("__dlpack_device__")();
  std::int64_t type = 0;
  if (!nb::isinstance<nb::tuple>(device) || nb::len(device) != 2 ||
      !nb::try_cast(nb::object(nb::int_(device[0])), type)) {
    refuse(object, "__dlpack_device__ gives no pair of numbers");
  }
  const bool is_of_driver = type == dlpack_cuda || type == dlpack_cuda_managed;
  if (!is_of_driver && type != dlpack_cpu && type != dlpack_cuda_host) {
    refuse_type(object, "it is in a device of DLPack's type " + std::to_string(type));
  }
  foreign_memory found;
  found.owner = export_of(object, is_of_driver);
  const dlpack_tensor* tensor = nullptr;
  if (PyCapsule_IsValid(found.owner.ptr(), "dltensor_versioned") != 0) {
    const auto* const whole = static_cast<const dlpack_versioned*>(
        PyCapsule_GetPointer(found.owner.ptr(), "dltensor_versioned"));
    if (whole->major != 1) refuse(object, "it has another version of DLPack");
    if ((whole->flags & dlpack_is_copy) != 0) {
      throw nb::buffer_error("DLPack gives a copy of the memory, and not the memory itself");
    }
    found.is_read_only = (whole->flags & dlpack_read_only) != 0;
    tensor = &whole->tensor;
  } else if (PyCapsule_IsValid(found.owner.ptr(), "dltensor") != 0) {
    tensor = static_cast<const dlpack_tensor*>(PyCapsule_GetPointer(found.owner.ptr(), "dltensor"));
  } else {
    refuse(object, "__dlpack__ gives no capsule of DLPack's");
  }
  if (tensor->device_type != type) refuse(object, "DLPack gives memory of another device");
  const std::size_t bits = std::size_t{tensor->type_bits} * tensor->type_lanes;
  if (bits == 0 || bits % 8 != 0) refuse_type(object, "its items are no whole bytes");
  if (tensor->dimensions < 0) refuse(object, "a negative number of dimensions");
  const auto count = static_cast<std::size_t>(tensor->dimensions);
  const std::vector<std::int64_t> shape(tensor->shape, tensor->shape + count);
  const std::size_t size = size_of(object, shape, bits / 8);
  if (tensor->strides != nullptr && size > 0) {
    check_strides(object, shape, std::vector(tensor->strides, tensor->strides + count), 1);
  }
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(tensor->data);
  found.bytes = bytes_at(
      object, address == 0 ? 0 : address + static_cast<std::uintptr_t>(tensor->byte_offset), size);
  if (is_of_driver) {
    found.stream = reinterpret_cast<void*>(legacy_stream);
    check_place(object, found.bytes);
  }
  return found;
}

void wait_for_stream(std::span<const std::byte> bytes, void* stream) {
  if (stream == nullptr || bytes.empty()) return;
  std::byte one{};
  ucx::io_options options;
  options.cuda_stream = stream;
  ucx::copy_memory(&one, bytes.data(), sizeof one, options);
}

}  // namespace ucxio_python
