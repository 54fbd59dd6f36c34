// Halves of the master into compact planes and back.

#include "core/device/compact_reference.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/master24.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run.h"
#include "core/prove/state_of.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace mr::test::tst_compact_master {

namespace {

struct Halves {
    std::vector<std::uint16_t> high;
    std::vector<std::int16_t> low;

    explicit Halves(std::size_t count)
        : high(count)
        , low(count)
    {
    }

    float at(std::size_t i) const { return joinHalves(high[i], low[i]); }
};

struct Planes {
    std::vector<std::uint16_t> weight;
    std::vector<std::int8_t> remainder;

    explicit Planes(std::size_t count)
        : weight(count)
        , remainder(count)
    {
    }
};

// Powers of two and zeros among them, and more than a piece of the conversion.
constexpr std::size_t kCount = 5 * 1024 + 64;

Halves someMaster()
{
    std::mt19937 engine(5);
    std::normal_distribution<float> normal(0.0F, 0.02F);
    Halves master(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        const float value = i % 50 == 0   ? 0.0F
                            : i % 50 == 1 ? std::ldexp(1.0F, -static_cast<int>(i % 9))
                                          : normal(engine);
        master.high[i] = highHalf(value);
        master.low[i] = lowHalf(value);
    }
    return master;
}

PlainRunSpec tinyCompact(const char* policy)
{
    PlainRunSpec spec;
    spec.config = tinyConfig(true);
    spec.micro = {8, 1, 1, DType::BF16};
    spec.policy = policy;
    spec.options["state"] = "compact";
    return spec;
}

Planes encoded(const Halves& master)
{
    Planes planes(master.high.size());
    encodeMaster24(master.high, master.low, planes.weight, planes.remainder);
    return planes;
}

// Everywhere the number between two BF16.
Status installTies(PlainRun& run)
{
    MasterBuffers master(run.table());
    for (std::size_t g = 0; g < master.high.size(); ++g) {
        std::fill(master.high[g].begin(), master.high[g].end(), highHalf(1.00390625F));
        std::fill(master.low[g].begin(), master.low[g].end(), lowHalf(1.00390625F));
    }
    return installMaster(run.executor(), run.memory(), master);
}

} // namespace

class TestCompactMaster : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // The largest error of the remainder is half of its step, unit / 65024.
    void whatComesBackIsTheMasterWithinTheCodec()
    {
        const Halves master = someMaster();
        const Planes planes = encoded(master);
        Halves back(kCount);
        back.high = planes.weight;

        decodeMaster24(planes.weight, planes.remainder, back.low);

        for (std::size_t i = 0; i < kCount; ++i) {
            const float unit = exponentUnit(bf16Value(planes.weight[i]));
            QVERIFY(std::abs(back.at(i) - master.at(i)) <= unit * (1.01F / 65024.0F));
        }
    }

    // Also of ties, denormals, the largest numbers, infinities and NaN.
    void thePlanesAreThoseOfCompactStateWithoutMoments()
    {
        std::vector<std::uint32_t> bits = {0, 0x80000000U, 1, 0x8000U, 0x18000U, 0x3F808000U,
            0x3F818000U, 0x007FFFFFU, 0x00800000U, 0x7F7FFFFFU, 0xFF7F8000U, 0x7F800000U,
            0xFF800000U, 0x7F800001U, 0x7FFFFFFFU, 0xFFFFFFFFU};
        std::mt19937 random(7);
        while (bits.size() < kCount)
            bits.push_back(static_cast<std::uint32_t>(random()));
        Halves master(kCount);
        std::vector<float> values(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            values[i] = std::bit_cast<float>(bits[i]);
            master.high[i] = highHalf(values[i]);
            master.low[i] = lowHalf(values[i]);
            QCOMPARE(
                std::bit_cast<std::uint32_t>(joinHalves(master.high[i], master.low[i])), bits[i]);
        }
        const Planes planes = encoded(master);

        const std::vector<float> zeros(kCount);
        Planes want(kCount);
        std::vector<std::int8_t> m(kCount);
        std::vector<std::uint8_t> v(kCount);
        std::vector<float> scales(2 * kCount);
        encodeCompact(values.data(), zeros.data(), zeros.data(),
            {want.weight.data(), want.remainder.data(), m.data(), v.data(), scales.data(),
                scales.data() + kCount, kCount});

        QCOMPARE(planes.weight, want.weight);
        QCOMPARE(planes.remainder, want.remainder);
    }

    // Exports then hold the weights that forward reads, also where the remainder stands for a tie.
    void theHighHalfIsTheWeight()
    {
        Planes planes(256);
        for (std::size_t i = 0; i < 256; ++i) {
            planes.weight[i] = static_cast<std::uint16_t>(i % 2 == 0 ? 0x3C80 : 0xBF81);
            planes.remainder[i] = static_cast<std::int8_t>(static_cast<int>(i) - 127 - (i == 255));
        }
        Halves back(256);
        back.high = planes.weight;

        decodeMaster24(planes.weight, planes.remainder, back.low);

        for (std::size_t i = 0; i < 256; ++i) {
            const float weight = bf16Value(planes.weight[i]);
            const float exact = std::fma(static_cast<float>(planes.remainder[i]),
                exponentUnit(weight) * (1.0F / 32512.0F), weight);
            // Half of a BF16 step below a power of two is half as wide.
            const bool fits = std::abs(planes.remainder[i]) < 64 || planes.weight[i] == 0xBF81;
            if (fits && std::abs(planes.remainder[i]) < 127)
                QCOMPARE(back.at(i), exact);
        }
    }

    // Half up and nearest even differ on a tie: ops read the weights that the state keeps.
    void installedTiesAreTheEvenWeightsOnTheDeviceAndInTheState()
    {
        for (const char* policy : {"resident", "zero-offload"}) {
            auto device = makeCpuDevice(std::size_t{16} << 20);
            auto run = PlainRun::create(*device, tinyCompact(policy));
            QVERIFY2(run.ok(), run.status().message().c_str());
            PlainRun& plain = *run.value();

            const Status installed = installTies(plain);

            QVERIFY2(installed.ok(), installed.message().c_str());
            const MasterBuffers kept = stateOf(plain);
            MasterBuffers read(plain.table());
            QVERIFY(read.fill(*weightsInUse(plain.executor(), plain.memory())).ok());
            const auto isOne = [](std::uint16_t weight) { return weight == 0x3F80; };
            for (const auto& groups : {kept.high, read.high})
                for (const std::vector<std::uint16_t>& high : groups)
                    QVERIFY(std::all_of(high.begin(), high.end(), isOne));
        }
    }

    // Weights in the device's columns round half up, as in its plain state.
    void installedTiesOfTheDevicesColumnsAreItsOwn()
    {
        auto device = makeCpuDevice(std::size_t{16} << 20);
        PlainRunSpec spec = tinyCompact("zenflow");
        spec.options["urgent"] = "0.5";
        auto run = PlainRun::create(*device, spec);
        QVERIFY2(run.ok(), run.status().message().c_str());
        PlainRun& plain = *run.value();

        const Status installed = installTies(plain);

        QVERIFY2(installed.ok(), installed.message().c_str());
        const MasterBuffers kept = stateOf(plain);
        MasterBuffers read(plain.table());
        QVERIFY(read.fill(*weightsInUse(plain.executor(), plain.memory())).ok());
        for (std::size_t g = 0; g < kept.high.size(); ++g)
            for (const WeightCut& weight : plain.memory().window->layout().groups[g].weights)
                for (std::int64_t i = 0; i < weight.rows * weight.cols; ++i) {
                    const auto at = static_cast<std::size_t>(weight.first + i);
                    const bool urgent = i % weight.cols < weight.urgent;
                    QCOMPARE(kept.high[g][at], urgent ? 0x3F81 : 0x3F80);
                    QCOMPARE(read.high[g][at], urgent ? 0x3F81 : 0x3F80);
                }
    }

    void weightsThatAreBf16HaveNoRemainder()
    {
        Halves master = someMaster();
        std::fill(master.low.begin(), master.low.end(), std::int16_t{0});

        const Planes planes = encoded(master);

        QVERIFY(planes.weight == master.high);
        for (const std::int8_t remainder : planes.remainder)
            QCOMPARE(static_cast<int>(remainder), 0);
    }
};

MR_TEST(TestCompactMaster)

} // namespace mr::test::tst_compact_master

#include "tst_compact_master.moc"
