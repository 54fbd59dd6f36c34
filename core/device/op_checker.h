// Checker: keeps the first fault of an op call. op_checks is written in it.
//
// Threads  A value of one thread.
// Errors   status() names the op and the tensor, with its type and shape and those wanted.

#pragma once

#include "core/device/tensor.h"

#include <millrace/status.h>

#include <initializer_list>
#include <string>

namespace mr::checks {

inline const char* nameOf(DType type) noexcept
{
    switch (type) {
    case DType::F32:
        return "F32";
    case DType::BF16:
        return "BF16";
    case DType::U8:
        return "U8";
    case DType::I8:
        return "I8";
    case DType::U16:
        return "U16";
    case DType::I16:
        return "I16";
    case DType::I32:
        return "I32";
    case DType::F64:
        return "F64";
    case DType::E4M3:
        return "E4M3";
    case DType::E5M2:
        return "E5M2";
    }
    return "?";
}

template <typename Dims>
std::string describe(DType type, const Dims& dims, int rank)
{
    std::string text = std::string(nameOf(type)) + " (";
    int i = 0;
    for (const std::int64_t n : dims) {
        if (i == rank)
            break;
        text += (i == 0 ? "" : ", ") + std::to_string(n);
        ++i;
    }
    return text + ")";
}

class Checker
{
public:
    explicit Checker(const char* op) noexcept
        : m_op(op)
    {
    }

    // Exactly this type and shape, and memory behind it unless it is empty.
    Checker& tensor(const char* name, const TensorView& view, DType type,
        std::initializer_list<std::int64_t> dims)
    {
        if (!m_status.ok())
            return *this;
        bool same = view.dtype == type && view.rank == static_cast<int>(dims.size());
        std::size_t i = 0;
        for (const std::int64_t n : dims)
            same = same && view.dims[i++] == n;
        if (!same)
            return fail(std::string(name) + " is " + describe(view.dtype, view.dims, view.rank) +
                        ", want " + describe(type, dims, static_cast<int>(dims.size())));
        if (!view.data && view.count() > 0)
            return fail(std::string(name) + " has no memory");
        return *this;
    }

    // Two tensors that must not be the same memory.
    Checker& apart(
        const char* name, const TensorView& view, const char* otherName, const TensorView& other)
    {
        if (m_status.ok() && view.data && view.data == other.data && view.count() > 0)
            m_status = Status::error(ErrorKind::InvalidArgument,
                std::string(m_op) + ": " + name + " is " + otherName + ", want memory of its own");
        return *this;
    }

    Checker& optional(const char* name, const TensorView& view, DType type,
        std::initializer_list<std::int64_t> dims)
    {
        return view.data ? tensor(name, view, type, dims) : *this;
    }

    // A tensor that gives the others their shape.
    Checker& leads(const char* name, const TensorView& view, int rank, bool f32Only = false)
    {
        if (!m_status.ok())
            return *this;
        if (view.rank != rank)
            return fail(std::string(name) + " is " + describe(view.dtype, view.dims, view.rank) +
                        ", want " + std::to_string(rank) + " dimensions");
        if (view.dtype != DType::F32 && (f32Only || view.dtype != DType::BF16))
            return fail(std::string(name) + " is " + nameOf(view.dtype) + ", want " +
                        (f32Only ? "F32" : "F32 or BF16"));
        for (int i = 0; i < rank; ++i)
            if (view.dims[static_cast<std::size_t>(i)] < 0)
                return fail(std::string(name) + " has a negative dimension");
        if (!view.data && view.count() > 0)
            return fail(std::string(name) + " has no memory");
        return *this;
    }

    Checker& holds(bool condition, const char* words)
    {
        return condition || !m_status.ok() ? *this : fail(words);
    }

    Status status() { return std::move(m_status); }

private:
    Checker& fail(const std::string& what)
    {
        m_status = Status::error(ErrorKind::InvalidArgument, std::string(m_op) + ": " + what);
        return *this;
    }

    const char* m_op;
    Status m_status;
};

inline bool isCompute(DType type) noexcept
{
    return type == DType::F32 || type == DType::BF16;
}

// Type of a gradient of weights: the one it has, if the op may store it.
inline DType gradientType(const TensorView& gradient, DType compute, bool accumulate) noexcept
{
    return !accumulate && gradient.dtype == compute ? compute : DType::F32;
}

// (heads + 2 kvHeads) headDim, or -1 for a geometry that makes no sense.
inline std::int64_t packedColumns(int heads, int kvHeads, int headDim) noexcept
{
    if (heads <= 0 || kvHeads <= 0 || headDim <= 0 || heads % kvHeads != 0)
        return -1;
    return (static_cast<std::int64_t>(heads) + 2 * static_cast<std::int64_t>(kvHeads)) * headDim;
}

inline constexpr const char* kCapWords = "softcap must not be negative";
inline constexpr const char* kHeadWords =
    "want heads, kvHeads and headDim above 0, and heads a multiple of kvHeads";

} // namespace mr::checks
