#include "core/prove/bench_limits.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace mr {

namespace {

using Clock = std::chrono::steady_clock;

// About a millisecond a round: short enough to fall between two interruptions, and enough rounds
// that some do.
constexpr int kSteps = 100'000;
constexpr int kRounds = 60;

double secondsSince(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Each loop keeps as many sums as hide the latency of one multiply-add, and returns the number of
// operations. The sums end in `sink`, so that they are really formed.
std::atomic<float> sink = 0.0F;

// NOLINTBEGIN(modernize-loop-convert): GCC unrolls counted loops
double avx2Loop()
{
    constexpr int kSums = 12;
    __m256 sums[kSums];
    for (int i = 0; i < kSums; ++i)
        sums[i] = _mm256_setzero_ps();
    const __m256 a = _mm256_set1_ps(1.0F + 1e-7F * sink.load());
    for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
        for (int s = 0; s < kSums; ++s)
            sums[s] = _mm256_fmadd_ps(sums[s], a, a);
    for (int i = 1; i < kSums; ++i)
        sums[0] = _mm256_add_ps(sums[0], sums[i]);
    sink = _mm256_cvtss_f32(sums[0]) * 0.0F;
    return 2.0 * 8.0 * kSums * kSteps;
}

__attribute__((target("avx512f"))) double avx512Loop()
{
    constexpr int kSums = 16;
    __m512 sums[kSums];
    for (int i = 0; i < kSums; ++i)
        sums[i] = _mm512_setzero_ps();
    const __m512 a = _mm512_set1_ps(1.0F + 1e-7F * sink.load());
    for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
        for (int s = 0; s < kSums; ++s)
            sums[s] = _mm512_fmadd_ps(sums[s], a, a);
    for (int i = 1; i < kSums; ++i)
        sums[0] = _mm512_add_ps(sums[0], sums[i]);
    sink = _mm512_cvtss_f32(sums[0]) * 0.0F;
    return 2.0 * 16.0 * kSums * kSteps;
}

__attribute__((target("avx512f,avx512bf16"))) double bf16Loop()
{
    constexpr int kSums = 16;
    __m512 sums[kSums];
    for (int i = 0; i < kSums; ++i)
        sums[i] = _mm512_setzero_ps();
    const __m512bh a =
        _mm512_cvtne2ps_pbh(_mm512_set1_ps(1.0F + sink.load()), _mm512_set1_ps(1.0F));
    for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
        for (int s = 0; s < kSums; ++s)
            sums[s] = _mm512_dpbf16_ps(sums[s], a, a);
    for (int i = 1; i < kSums; ++i)
        sums[0] = _mm512_add_ps(sums[0], sums[i]);
    sink = _mm512_cvtss_f32(sums[0]) * 0.0F;
    return 2.0 * 32.0 * kSums * kSteps;
}
// NOLINTEND(modernize-loop-convert)

// Matrix tiles, which Linux gives to a process that asks (arch_prctl, feature 18).
bool hasTiles()
{
#ifdef __linux__
    static const bool granted = [] {
        constexpr long kRequestPermission = 0x1023;
        constexpr long kTileData = 18;
        unsigned a = 0;
        unsigned b = 0;
        unsigned c = 0;
        unsigned d = 0;
        if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0)
            return false;
        constexpr unsigned kAmxBf16 = 1U << 22;
        return (d & kAmxBf16) != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
    }();
    return granted;
#else
    return false;
#endif
}

__attribute__((target("amx-tile,amx-bf16"))) double tileLoop()
{
    struct alignas(64) Config {
        std::uint8_t palette = 1;
        std::uint8_t startRow = 0;
        std::uint8_t reserved[14] = {};
        std::uint16_t columnBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16}; // the other 8 must be 0
    };
    // Static: g++ 12 does not see that the instruction reads it, and drops stores to a local.
    static constexpr Config kConfig;
    _tile_loadconfig(&kConfig);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(6);
    _tile_zero(7);
    constexpr int kTileSteps = kSteps / 4;
    for (int i = 0; i < kTileSteps; ++i) {
        _tile_dpbf16ps(0, 6, 7);
        _tile_dpbf16ps(1, 6, 7);
        _tile_dpbf16ps(2, 6, 7);
        _tile_dpbf16ps(3, 6, 7);
    }
    _tile_release();
    return 2.0 * 16.0 * 16.0 * 32.0 * 4.0 * kTileSteps;
}

using Loop = double (*)();

Loop loopFor(DType type)
{
    if (type == DType::BF16 && hasTiles())
        return &tileLoop;
    if (type == DType::BF16 && __builtin_cpu_supports("avx512bf16"))
        return &bf16Loop;
    return __builtin_cpu_supports("avx512f") ? &avx512Loop : &avx2Loop;
}

template <typename F>
void onThreads(int count, F&& fn)
{
    std::vector<std::jthread> threads;
    for (int t = 1; t < count; ++t)
        threads.emplace_back([&fn, t] { fn(t); });
    fn(0);
}

} // namespace

double peakFlops(DType type, int threads)
{
    double best = 0.0;
    for (int round = 0; round < kRounds; ++round) {
        std::atomic<std::int64_t> operations = 0;
        const auto start = Clock::now();
        onThreads(threads, [&](int) { operations += static_cast<std::int64_t>(loopFor(type)()); });
        best = std::max(best, static_cast<double>(operations.load()) / secondsSince(start));
    }
    return best;
}

const char* peakName(DType type)
{
    if (loopFor(type) == &tileLoop)
        return "AMX BF16";
    if (loopFor(type) == &bf16Loop)
        return "AVX-512 BF16";
    return loopFor(type) == &avx512Loop ? "AVX-512" : "AVX2";
}

double peakBytes(int threads)
{
    constexpr std::size_t kCount = std::size_t{32} << 20; // 128 MiB each: more than any cache
    std::vector<float> x(kCount, 1.0F);
    std::vector<float> y(kCount + 1024, 1.0F); // skewed: equal low address bits would alias
    const std::size_t share = kCount / static_cast<std::size_t>(threads);
    double best = 0.0;
    for (int round = 0; round < 12; ++round) {
        const auto start = Clock::now();
        onThreads(threads, [&](int t) {
            const std::size_t first = static_cast<std::size_t>(t) * share;
            const float* from = x.data() + first;
            float* to = y.data() + 1024 + first;
            for (std::size_t i = 0; i < share; ++i)
                to[i] += from[i];
        });
        const double bytes = 12.0 * static_cast<double>(share * static_cast<std::size_t>(threads));
        best = std::max(best, bytes / secondsSince(start));
    }
    return best;
}

} // namespace mr
