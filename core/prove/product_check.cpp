#include "core/prove/product_check.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"
#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/prove/product_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr {
namespace {

// Cuts the operands of one product from the memory of all.
class Operands
{
public:
    Operands(ProductSamples& samples, std::byte* memory, const RunProduct& product)
        : m_samples(samples)
        , m_at(memory)
        , m_product(product)
    {
    }

    // Numbers of its own in each.
    TensorView filled(DType type, std::int64_t rows, std::int64_t cols)
    {
        const TensorView view = blank(type, rows, cols);
        m_samples.fill(view, m_phase++);
        return view;
    }

    TensorView blank(DType type, std::int64_t rows, std::int64_t cols)
    {
        const TensorView view = matrixView(m_at, type, rows, cols);
        m_at += (view.bytes() + kProductAlign - 1) / kProductAlign * kProductAlign;
        return view;
    }

    TensorView x() { return filled(m_product.compute, m_product.tokens, m_product.in); }
    TensorView gradOut() { return filled(m_product.compute, m_product.tokens, m_product.out); }
    TensorView weight() { return filled(m_product.compute, m_product.out, m_product.in); }

    TensorView bias()
    {
        if (!m_product.hasBias)
            return {};
        const TensorView row = filled(m_product.compute, 1, m_product.out);
        return vectorView(row.data, row.dtype, m_product.out);
    }

    // Numbers of its own as codes with a scale.
    Status fillCodes(Ops& ops, DType type, TensorView& codes, TensorView& scale)
    {
        const std::int64_t rows = codes.dims[0];
        const std::int64_t cols = codes.dims[1];
        const TensorView numbers = filled(m_product.compute, rows, cols);
        codes = blank(type, rows, cols);
        scale = vectorView(blank(DType::F32, 1, 1).data, DType::F32, 1);
        if (m_partial.data == nullptr)
            m_partial = vectorView(
                blank(DType::I32, 1, kQuantizePartials).data, DType::I32, kQuantizePartials);
        return ops.quantize({numbers, codes, {}, scale, m_partial}, m_samples.stream());
    }

private:
    ProductSamples& m_samples;
    std::byte* m_at;
    const RunProduct& m_product;
    TensorView m_partial; // of quantize(), one operand after the other
    int m_phase = 0;
};

class ProductChecker
{
public:
    ProductChecker(Device& device, ProductSamples& samples, std::byte* memory)
        : m_device(device)
        , m_samples(samples)
        , m_memory(memory)
    {
    }

    // False: its sum is to be formed by an operation of its own.
    Result<bool> check(const RunProduct& product)
    {
        Operands operands(m_samples, m_memory, product);
        if (product.isFp8)
            return checkCodes(product, operands);
        switch (product.kind) {
        case ProductKind::Forward: {
            const LinearArgs args{operands.x(), operands.weight(), operands.bias(),
                operands.blank(product.result, product.tokens, product.out)};
            MR_TRY(sameTwice(
                product, args.out, [&](Ops& ops, Stream& s) { return ops.linear(args, s); }));
            return true;
        }
        case ProductKind::InputGradient: {
            const LinearBackwardInputArgs args{operands.gradOut(), operands.weight(),
                operands.blank(product.result, product.tokens, product.in)};
            MR_TRY(sameTwice(product, args.gradX,
                [&](Ops& ops, Stream& s) { return ops.linearBackwardInput(args, s); }));
            return true;
        }
        case ProductKind::WeightGradient:
            return checkWeightGradient(product, operands);
        case ProductKind::Adapter:
            MR_TRY(checkAdapter(product, operands));
            return true;
        }
        return true;
    }

private:
    // Every policy adds the products of an adapter by the product itself, so only their bits count.
    Status checkAdapter(const RunProduct& product, Operands& operands)
    {
        constexpr int kPhase = 7;
        const WindowShape& w = product.window;
        WindowProductArgs args;
        args.transposeA = w.transposeA;
        args.transposeB = w.transposeB;
        args.a = {operands.filled(product.compute, w.transposeA ? w.k : w.m, w.a.columns),
            w.a.first, w.transposeA ? w.m : w.k};
        args.b = {operands.filled(product.compute, w.transposeB ? w.n : w.k, w.b.columns),
            w.b.first, w.transposeB ? w.k : w.n};
        args.out = {operands.blank(product.result, w.m, w.out.columns), w.out.first, w.n};
        const auto call = [&](Ops& ops, Stream& s) {
            m_samples.fill(args.out.matrix, kPhase);
            return ops.windowProduct(args, s);
        };
        MR_TRY(sameTwice(product, args.out.matrix, call));
        args.accumulate = true;
        return product.mayAddUp ? sameTwice(product, args.out.matrix, call) : Status();
    }

    Result<bool> checkWeightGradient(const RunProduct& product, Operands& operands)
    {
        LinearBackwardWeightArgs args{operands.gradOut(), operands.x(),
            operands.blank(product.result, product.out, product.in), {}, {}, false};
        MR_TRY(sameTwice(product, args.gradWeight,
            [&](Ops& ops, Stream& s) { return ops.linearBackwardWeight(args, s); }));
        if (!product.mayAddUp)
            return true;
        args.accumulate = true;
        return addsExactly(args.gradWeight,
            [&](Ops& ops, Stream& s) { return ops.linearBackwardWeight(args, s); });
    }

    Result<bool> checkCodes(const RunProduct& product, Operands& operands)
    {
        const CodeShape shape = codeShapeOf(product);
        CodeProductArgs args;
        args.a = matrixView(nullptr, shape.a, shape.m, shape.k);
        args.b = matrixView(nullptr, DType::E4M3, shape.n, shape.k);
        MR_TRY(operands.fillCodes(m_device.ops(), shape.a, args.a, args.scaleA));
        MR_TRY(operands.fillCodes(m_device.ops(), DType::E4M3, args.b, args.scaleB));
        args.bias = operands.bias();
        args.out = operands.blank(product.result, shape.m, shape.n);
        const auto call = [&](Ops& ops, Stream& s) { return ops.codeProduct(args, s); };
        MR_TRY(sameTwice(product, args.out, call));
        args.accumulate = product.mayAddUp;
        return product.mayAddUp ? addsExactly(args.out, call) : Result<bool>(true);
    }

    // Does `call`, which adds the product in m_first to a sum, do so in one addition?
    template <typename Call>
    Result<bool> addsExactly(const TensorView& sum, Call call)
    {
        constexpr int kPhase = 7;
        m_samples.fill(sum, kPhase);
        MR_TRY(call(m_device.ops(), m_samples.stream()));
        MR_TRY(m_samples.take(sum, m_second));
        m_samples.addFilled(sum, kPhase, m_first);
        return m_first == m_second;
    }

    template <typename Call>
    Status sameTwice(const RunProduct& product, const TensorView& out, Call call)
    {
        MR_TRY(call(m_device.ops(), m_samples.stream()));
        MR_TRY(m_samples.take(out, m_first));
        MR_TRY(call(m_device.ops(), m_samples.stream()));
        MR_TRY(m_samples.take(out, m_second));
        return m_first == m_second ? Status() : differs(product);
    }

    Status differs(const RunProduct& product) const
    {
        const DeviceInfo& info = m_device.info();
        return Status::error(ErrorKind::Internal,
            fmt::format("the matrix product {} gave other bits the second time on {} ({}): a run "
                        "there could not be repeated. A card that is overclocked or faulty does "
                        "this: test its memory. Another --micro-batch or --precision takes other "
                        "algorithms; --device cpu does without the card",
                product.text(), info.name, info.instructionSet));
    }

    Device& m_device;
    ProductSamples& m_samples;
    std::byte* m_memory;
    std::vector<std::byte> m_first;
    std::vector<std::byte> m_second;
};

std::size_t largestThatFits(const std::vector<RunProduct>& products, std::size_t limit)
{
    std::size_t most = 0;
    for (const RunProduct& product : products)
        if (product.bytes() <= limit)
            most = std::max(most, product.bytes());
    return most;
}

// Empty if none fits. A device without the memory is no error: the run will say what it lacks, or
// plan again.
Result<Buffer> memoryFor(Device& device, const std::vector<RunProduct>& products, std::size_t limit)
{
    const std::size_t bytes = largestThatFits(products, limit);
    if (bytes == 0)
        return Buffer{};
    auto memory = device.allocate(bytes, MemoryKind::Device, "product check");
    if (!memory.ok() && memory.status().kind() == ErrorKind::OutOfMemory)
        return Buffer{};
    return memory;
}

void leaveOut(ProductVerdict& verdict, const RunProduct& product, std::string_view why)
{
    verdict.unchecked.push_back(fmt::format("{} {}", product.text(), why));
}

void addApart(ProductVerdict& verdict, const RunProduct& product)
{
    const GradientShape shape{product.out, product.in};
    if (std::find(verdict.apart.begin(), verdict.apart.end(), shape) == verdict.apart.end())
        verdict.apart.push_back(shape);
}

} // namespace

Result<ProductVerdict> checkProducts(
    Device& device, std::vector<RunProduct> products, const ProductCheckLimits& limits)
{
    const auto clock = [&] { return limits.clock ? limits.clock() : nowNs(); };
    const std::int64_t begin = clock();
    std::stable_sort(products.begin(), products.end(),
        [](const RunProduct& a, const RunProduct& b) { return a.flops() < b.flops(); });
    MR_ASSIGN(auto memory, memoryFor(device, products, limits.memoryBytes));
    MR_ASSIGN(auto samples, ProductSamples::create(device));
    ProductChecker checker(device, *samples, memory.data());
    ProductVerdict verdict;
    for (const RunProduct& product : products) {
        if (product.bytes() > memory.bytes()) {
            leaveOut(verdict, product, "(no memory for it)");
            continue;
        }
        if (clock() - begin >= limits.timeNs) {
            leaveOut(verdict, product, "(no time left)");
            continue;
        }
        MR_ASSIGN(const bool addsExactly, checker.check(product));
        ++verdict.checked;
        if (!addsExactly)
            addApart(verdict, product);
    }
    verdict.seconds = static_cast<double>(clock() - begin) * 1e-9;
    return verdict;
}

std::size_t scratchBytes(const ProductVerdict& verdict) noexcept
{
    std::size_t most = 0;
    for (const GradientShape& shape : verdict.apart)
        most = std::max(most, matrixView(nullptr, DType::F32, shape.out, shape.in).bytes());
    return most;
}

std::string describe(const ProductVerdict& verdict)
{
    std::string text =
        fmt::format("Matrix products of this run: {} shapes were checked in {:.2f} s "
                    "and give equal bits each time.",
            verdict.checked, verdict.seconds);
    std::vector<std::string> shapes;
    for (const GradientShape& shape : verdict.apart)
        shapes.push_back(fmt::format("({} x {})", shape.out, shape.in));
    if (!shapes.empty())
        text += fmt::format(" The library adds gradients of weights {} otherwise than in one "
                            "addition, so an operation of its own adds them; it takes {} of the "
                            "device's memory.",
            fmt::join(shapes, ", "), formatBytes(scratchBytes(verdict)));
    if (!verdict.unchecked.empty())
        text += fmt::format(" Not checked: {}.", fmt::join(verdict.unchecked, "; "));
    return text;
}

std::string toJson(const ProductVerdict& verdict)
{
    nlohmann::json apart = nlohmann::json::array();
    for (const GradientShape& shape : verdict.apart)
        apart.push_back({{"out", shape.out}, {"in", shape.in}});
    const nlohmann::json value = {{"checked", verdict.checked}, {"seconds", verdict.seconds},
        {"added_apart", std::move(apart)}, {"unchecked", verdict.unchecked}};
    return value.dump();
}

Result<ProductVerdict> productVerdictFromJson(std::string_view text)
{
    constexpr IntRange kLength{1, std::int64_t{1} << 40};
    ProductVerdict verdict;
    if (text.empty())
        return verdict;
    MR_ASSIGN(const nlohmann::json value, parseJson(text, "products"));
    JsonFields fields(value, "products");
    verdict.checked = static_cast<int>(fields.integer("checked", {0, 1 << 20}, 0));
    verdict.seconds = fields.number("seconds", 0.0);
    const nlohmann::json* apart = fields.find("added_apart");
    if (apart != nullptr && !apart->is_array())
        fields.fail("added_apart", "must be a list");
    if (apart != nullptr && apart->is_array())
        for (const nlohmann::json& item : *apart) {
            JsonFields shape(item, "products, added_apart");
            verdict.apart.push_back(
                {shape.requiredInteger("out", kLength), shape.requiredInteger("in", kLength)});
            fields.take(shape.status());
        }
    MR_TRY(fields.status());
    return verdict;
}

} // namespace mr
