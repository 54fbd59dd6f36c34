// Rig: one stream and the few lines every op test needs to move data in and out.

#pragma once

#include "core/device/device.h"
#include "core/device/ops.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace mr::test {

// Nearest even, as the device rounds.
inline std::uint16_t toBf16(float x)
{
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

inline float fromBf16(std::uint16_t x)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

// `count` normal values, the same on every machine and every run.
inline std::vector<float> normals(std::int64_t count, unsigned seed)
{
    std::mt19937 engine(seed);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) // sum of 12 uniforms: std::normal_distribution differs by library
        for (int i = 0; i < 12; ++i)
            v += static_cast<float>(engine()) / 4294967296.0F - 0.5F;
    return values;
}

class Rig
{
public:
    explicit Rig(Device& device)
        : m_device(device)
        , m_stream(device.createStream("test").value())
        , m_event(device.createEvent().value())
    {
    }

    Ops& ops() { return m_device.ops(); }

    Stream& stream() { return *m_stream; }

    // A tensor on the device holding `values`, rounded to `dtype` (F32 or BF16).
    TensorView upload(DType dtype, std::vector<std::int64_t> dims, const std::vector<float>& values)
    {
        TensorView view = empty(dtype, std::move(dims));
        Buffer pinned = m_device.allocate(bytes(view), MemoryKind::PinnedHost, "test").value();
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (dtype == DType::F32) {
                std::memcpy(pinned.data() + 4 * i, &values[i], 4);
            } else {
                const std::uint16_t half = toBf16(values[i]);
                std::memcpy(pinned.data() + 2 * i, &half, 2);
            }
        }
        (void)m_stream->copy(view.data, {pinned.data(), pinned.bytes()}).ok();
        finish();
        return view;
    }

    TensorView empty(DType dtype, std::vector<std::int64_t> dims)
    {
        TensorView view;
        view.dtype = dtype;
        view.rank = static_cast<int>(dims.size());
        std::copy(dims.begin(), dims.end(), view.dims.begin());
        m_owned.push_back(m_device.allocate(bytes(view), MemoryKind::Device, "test").value());
        view.data = m_owned.back().data();
        return view;
    }

    std::vector<float> download(const TensorView& view)
    {
        std::vector<float> values(static_cast<std::size_t>(view.count()));
        Buffer pinned = m_device.allocate(bytes(view), MemoryKind::PinnedHost, "test").value();
        (void)m_stream->copy(pinned.data(), {view.data, bytes(view)}).ok();
        finish();
        if (!values.empty())
            std::memcpy(values.data(), pinned.data(), bytes(view));
        return values;
    }

private:
    static std::size_t bytes(const TensorView& v)
    {
        return static_cast<std::size_t>(v.count()) * sizeOf(v.dtype);
    }

    void finish()
    {
        (void)m_stream->record(*m_event).ok();
        m_device.submit();
        (void)m_event->wait().ok();
    }

    Device& m_device;
    std::unique_ptr<Stream> m_stream;
    std::unique_ptr<Event> m_event;
    std::vector<Buffer> m_owned;
};

} // namespace mr::test
