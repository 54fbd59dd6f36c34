#include "core/device/bench.h"

#include "core/device/bench_limits.h"
#include "core/device/ops.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace mr {

namespace {

using Clock = std::chrono::steady_clock;

const char* nameOf(DType type)
{
    return type == DType::BF16 ? "bf16" : "f32";
}

// One stream and the memory of one benchmark. Keeps the first error; then does nothing.
class Bench
{
public:
    explicit Bench(Device& device)
        : m_device(device)
    {
        auto stream = device.createStream("bench");
        auto event = device.createEvent();
        m_status = stream.ok() ? event.status() : stream.status();
        if (m_status.ok()) {
            m_stream = std::move(stream.value());
            m_event = std::move(event.value());
        }
    }

    Buffer& memory(std::size_t bytes, MemoryKind kind)
    {
        // Skewed starts: arrays an exact power of two apart alias in the caches.
        const std::size_t skew = 4096 * (m_buffers.size() % 16 + 1);
        auto buffer = m_device.allocate(bytes + skew, kind, "bench");
        if (!buffer.ok() && m_status.ok())
            m_status = buffer.status();
        m_buffers.push_back(buffer.ok() ? std::move(buffer.value()) : Buffer());
        return m_buffers.back();
    }

    // Device memory with plain numbers in it: no denormals, no infinities.
    TensorView tensor(DType type, std::int64_t rows, std::int64_t cols)
    {
        TensorView view = matrixView(nullptr, type, rows, cols);
        const std::size_t skew = 4096 * (m_buffers.size() % 16 + 1);
        Buffer& buffer = memory(view.bytes(), MemoryKind::Device);
        if (!buffer.data())
            return view;
        view.data = buffer.data() + skew;
        fill(view);
        return view;
    }

    TensorView vector(DType type, std::int64_t count)
    {
        const TensorView matrix = tensor(type, 1, count);
        return vectorView(matrix.data, type, count);
    }

    void set(const TensorView& to, const void* bytes)
    {
        auto pinned = m_device.allocate(to.bytes(), MemoryKind::PinnedHost, "bench");
        if (!pinned.ok()) {
            m_status = m_status.ok() ? pinned.status() : m_status;
            return;
        }
        std::memcpy(pinned.value().data(), bytes, to.bytes());
        time([&] { return stream().copy(to.data, {pinned.value().data(), to.bytes()}); });
    }

    // Seconds of one call, waited for.
    template <typename F>
    double time(F&& enqueue)
    {
        if (!m_status.ok())
            return 1.0;
        const auto start = Clock::now();
        m_status = enqueue();
        if (m_status.ok())
            m_status = m_stream->record(*m_event);
        m_device.submit();
        if (m_status.ok())
            m_status = m_event->wait();
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    // Best of the calls that fit about 0.4 s, after one to warm up.
    template <typename F>
    double best(F&& enqueue)
    {
        time(enqueue);
        double seconds = 1e30;
        double spent = 0.0;
        for (int i = 0; m_status.ok() && (i < 5 || spent < 0.4) && i < 2000; ++i) {
            const double once = time(enqueue);
            spent += once;
            seconds = std::min(seconds, once);
        }
        return seconds;
    }

    Device& device() noexcept { return m_device; }

    Ops& ops() noexcept { return m_device.ops(); }

    Stream& stream() noexcept { return *m_stream; }

    const Status& status() const noexcept { return m_status; }

    bool onHost() const { return m_device.info().threads > 0; }

private:
    void fill(const TensorView& view)
    {
        std::vector<std::uint8_t> bytes(view.bytes());
        const std::size_t size = sizeOf(view.dtype);
        const auto count = static_cast<std::size_t>(view.count());
        for (std::size_t i = 0; i < count; ++i) {
            const float value = 0.5F + 0.25F * static_cast<float>(i % 7) / 7.0F;
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, 4);
            if (view.dtype == DType::I32 || view.dtype == DType::U8)
                bits = 0;
            else if (size == 2)
                bits >>= 16;
            std::memcpy(bytes.data() + i * size, &bits, size);
        }
        set(view, bytes.data());
    }

    Device& m_device;
    std::unique_ptr<Stream> m_stream;
    std::unique_ptr<Event> m_event;
    std::vector<Buffer> m_buffers;
    Status m_status;
};

BenchRow row(std::string name, double amount, double seconds, double limit, const char* unit)
{
    BenchRow r;
    r.name = std::move(name);
    r.ours = amount / seconds * 1e-9;
    r.limit = limit * 1e-9;
    r.unit = unit;
    r.ratio = limit > 0.0 ? r.ours / r.limit : 0.0;
    return r;
}

struct ProductShape {
    std::int64_t tokens, in, out;
};

void addProducts(
    Bench& bench, DType type, const ProductShape& s, double limit, std::vector<BenchRow>& rows)
{
    const TensorView x = bench.tensor(type, s.tokens, s.in);
    const TensorView weight = bench.tensor(type, s.out, s.in);
    const TensorView y = bench.tensor(type, s.tokens, s.out);
    const TensorView gradX = bench.tensor(type, s.tokens, s.in);
    const TensorView gradWeight = bench.tensor(DType::F32, s.out, s.in);
    if (!bench.status().ok())
        return;
    const double flops = 2.0 * static_cast<double>(s.tokens * s.in * s.out);
    const std::string shape = std::string(" ") + nameOf(type) + " " + std::to_string(s.tokens) +
                              " x " + std::to_string(s.in) + " x " + std::to_string(s.out);
    const auto add = [&](const char* op, double seconds) {
        rows.push_back(row(op + shape, flops, seconds, limit, "GFLOP/s"));
    };
    Ops& ops = bench.ops();
    Stream& stream = bench.stream();
    add("linear", bench.best([&] { return ops.linear({x, weight, {}, y}, stream); }));
    add("gradX", bench.best([&] { return ops.linearBackwardInput({y, weight, gradX}, stream); }));
    add("gradWeight", bench.best([&] {
        return ops.linearBackwardWeight({y, x, gradWeight, {}, {}, false}, stream);
    }));
}

} // namespace

Result<std::vector<BenchRow>> benchMatmul(Device& device)
{
    // A tiny model, a small one, and a square that fills the machine.
    constexpr ProductShape kShapes[] = {{256, 64, 192}, {1024, 512, 1536}, {1024, 1024, 1024}};
    std::vector<BenchRow> rows;
    const int threads = device.info().threads;
    for (const DType type : {DType::F32, DType::BF16}) {
        const double limit = threads > 0 ? peakFlops(type, threads) : 0.0;
        for (const ProductShape& s : kShapes) {
            Bench bench(device);
            addProducts(bench, type, s, limit, rows);
            MR_TRY(bench.status());
        }
    }
    return rows;
}

Result<std::vector<BenchRow>> benchCopy(Device& device)
{
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    Bench bench(device);
    Buffer& first = bench.memory(kBytes, MemoryKind::PinnedHost);
    std::byte* const host = first.data();
    std::byte* const inside = bench.memory(kBytes, MemoryKind::Device).data();
    MR_TRY(bench.status());
    std::memset(host, 1, kBytes);
    // A copy is made by one thread of its stream.
    const double limit = bench.onHost() ? peakBytes(1) : 0.0;
    const double bytes = 2.0 * static_cast<double>(kBytes);
    std::vector<BenchRow> rows;
    const double up = bench.best([&] { return bench.stream().copy(inside, {host, kBytes}); });
    const double down = bench.best([&] { return bench.stream().copy(host, {inside, kBytes}); });
    MR_TRY(bench.status());
    rows.push_back(row("copy host to device 64 MiB", bytes, up, limit, "GB/s"));
    rows.push_back(row("copy device to host 64 MiB", bytes, down, limit, "GB/s"));
    return rows;
}

Result<std::vector<BenchRow>> benchAdamw(Device& device)
{
    constexpr std::int64_t kCount = std::int64_t{8} << 20;
    Bench bench(device);
    AdamwArgs args;
    args.high = bench.vector(DType::U16, kCount);
    args.low = bench.vector(DType::I16, kCount);
    args.m = bench.vector(DType::F32, kCount);
    args.v = bench.vector(DType::F32, kCount);
    args.grad = bench.vector(DType::BF16, kCount);
    args.scalars = bench.vector(DType::U8, sizeof(StepScalars));
    args.factors.stepSize = 1e-5F;
    const StepScalars scalars;
    MR_TRY(bench.status());
    bench.set(args.scalars, &scalars);
    const double limit = bench.onHost() ? peakBytes(device.info().threads) : 0.0;
    const double seconds = bench.best([&] { return bench.ops().adamw(args, bench.stream()); });
    MR_TRY(bench.status());
    return std::vector<BenchRow>{row("adamw bf16 gradients 8 Mi parameters",
        26.0 * static_cast<double>(kCount), seconds, limit, "GB/s")};
}

Result<std::vector<BenchRow>> benchAttention(Device& device)
{
    constexpr std::int64_t kTokens = 1024;
    constexpr int kHeads = 8;
    constexpr int kKvHeads = 4;
    constexpr int kHeadDim = 64;
    constexpr std::int64_t kColumns = std::int64_t{kHeads + 2 * kKvHeads} * kHeadDim;
    std::vector<BenchRow> rows;
    for (const DType type : {DType::F32, DType::BF16}) {
        Bench bench(device);
        const TensorView qkv = bench.tensor(type, kTokens, kColumns);
        const TensorView visible = bench.vector(DType::I32, kTokens); // zeros: one document
        const TensorView out = bench.tensor(type, kTokens, std::int64_t{kHeads} * kHeadDim);
        const TensorView lse = bench.tensor(DType::F32, kTokens, kHeads);
        const TensorView delta = bench.tensor(DType::F32, kTokens, kHeads);
        const TensorView gradQkv = bench.tensor(type, kTokens, kColumns);
        MR_TRY(bench.status());
        // Scores and sums are formed in F32 for both types.
        const double limit = bench.onHost() ? peakFlops(DType::F32, device.info().threads) : 0.0;
        const double flops = 4.0 * kHeads * kHeadDim * 0.5 * static_cast<double>(kTokens * kTokens);
        const double forward = bench.best([&] {
            return bench.ops().attention(
                {qkv, visible, out, lse, kHeads, kKvHeads, kHeadDim, 0.125F}, bench.stream());
        });
        const double backward = bench.best([&] {
            return bench.ops().attentionBackward(
                {qkv, visible, out, lse, out, delta, gradQkv, kHeads, kKvHeads, kHeadDim, 0.125F},
                bench.stream());
        });
        MR_TRY(bench.status());
        const std::string shape = std::string(" ") + nameOf(type) + " 1024 tokens, 8/4 heads of 64";
        rows.push_back(row("attention" + shape, flops, forward, limit, "GFLOP/s"));
        rows.push_back(row("attentionBackward" + shape, 2.5 * flops, backward, limit, "GFLOP/s"));
    }
    return rows;
}

} // namespace mr
