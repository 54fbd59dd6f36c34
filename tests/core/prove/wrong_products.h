// A device whose library of matrix products is wrong on purpose, or only writes down what it is
// asked.

#pragma once

#include "core/device/ops.h"
#include "core/prove/run_products.h"
#include "support/wrapped_device.h"

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace mr::test {

// Only over the inline CPU device, whose products are done when they return.
class WrongProducts final : public WrappedDevice
{
public:
    explicit WrongProducts(Device& inner)
        : WrappedDevice(inner)
        , m_info(inner.info())
    {
        m_info.picksAlgorithms = true;
    }

    const DeviceInfo& info() const noexcept override { return m_info; }

    // The last element of every second product, forward or of an adapter, with so many columns of
    // outputs gets another last bit.
    std::int64_t forgetful = 0;
    // Gradients of weights (out, in) that are added to a sum get another last bit, unless they are
    // formed in scratch.
    std::pair<std::int64_t, std::int64_t> addsOtherwise;

    // By (kind, tokens, in, out, type of the result, bias): whether a product added to a sum.
    using Key = std::tuple<ProductKind, std::int64_t, std::int64_t, std::int64_t, DType, bool>;
    std::map<Key, bool> seen;
    // By (m, n, k, type of a, type of the result, bias): the same of products of codes.
    using CodeKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, DType, DType, bool>;
    std::map<CodeKey, bool> seenCodes;
    // By shape and type of the result: products of an adapter.
    std::map<std::pair<WindowShape, DType>, bool> seenWindows;
    int inScratch = 0;      // gradients of weights
    int wrongAdditions = 0; // that addsOtherwise changed

    Status onCall(const DeviceCall& call) override
    {
        if (call.what != "allocate" || call.tag != refusedTag)
            return {};
        return Status::error(ErrorKind::OutOfMemory, "taken by somebody else");
    }

    std::string refusedTag = "none"; // allocations that find no memory

    void onProduct(const LinearArgs& a) override
    {
        const std::int64_t out = a.out.dims[1];
        note({ProductKind::Forward, a.x.dims[0], a.x.dims[1], out, a.out.dtype,
                 a.bias.data != nullptr},
            false);
        if (out == forgetful && m_calls++ % 2 == 1)
            changeLast(a.out);
    }

    void onProduct(const LinearBackwardInputArgs& a) override
    {
        note({ProductKind::InputGradient, a.gradX.dims[0], a.gradX.dims[1], a.gradOut.dims[1],
                 a.gradX.dtype, false},
            false);
    }

    void onProduct(const LinearBackwardWeightArgs& a) override
    {
        const std::pair shape(a.gradWeight.dims[0], a.gradWeight.dims[1]);
        note({ProductKind::WeightGradient, a.x.dims[0], shape.second, shape.first,
                 a.gradWeight.dtype, false},
            a.accumulate);
        const bool isInScratch = a.accumulate && a.product.data != nullptr;
        inScratch += isInScratch ? 1 : 0;
        if (!a.accumulate || isInScratch || shape != addsOtherwise)
            return;
        ++wrongAdditions;
        changeLast(a.gradWeight);
    }

    void onProduct(const CodeProductArgs& a) override
    {
        const std::pair shape(a.out.dims[0], a.out.dims[1]);
        bool& adds = seenCodes[{shape.first, shape.second, a.a.dims[1], a.a.dtype, a.out.dtype,
            a.bias.data != nullptr}];
        adds = adds || a.accumulate;
        if (!a.accumulate || shape != addsOtherwise)
            return;
        ++wrongAdditions;
        changeLast(a.out);
    }

    void onProduct(const WindowProductArgs& p) override
    {
        const WindowShape shape{p.out.matrix.dims[0], p.out.count,
            p.transposeA ? p.a.matrix.dims[0] : p.a.count, {p.a.matrix.dims[1], p.a.first},
            {p.b.matrix.dims[1], p.b.first}, {p.out.matrix.dims[1], p.out.first}, p.transposeA,
            p.transposeB};
        bool& adds = seenWindows[{shape, p.out.matrix.dtype}];
        adds = adds || p.accumulate;
        if (p.out.count == forgetful && m_calls++ % 2 == 1)
            changeLast(p.out.matrix);
    }

private:
    void note(const Key& key, bool adds)
    {
        bool& before = seen[key];
        before = before || adds;
    }

    static void changeLast(const TensorView& view)
    {
        std::byte& last = view.data[view.bytes() - sizeOf(view.dtype)]; // the low byte
        last ^= std::byte{1};
    }

    DeviceInfo m_info;
    int m_calls = 0;
};

} // namespace mr::test
