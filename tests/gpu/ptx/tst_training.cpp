// Whole steps on the CUDA device over the PTX machine: tiny models of every family, near the CPU
// device, and with equal bits under every exact policy, recomputation, tile of attention and order
// of streams. MR_PTX_TRAINING=all runs every pair of family and policy on every architecture.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/tiny_families.h"
#include "gpu/ptx/ptx_cuda_device.h"
#include "gpu/ptx/ptx_runtime.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QObject>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_training {

using namespace mr::ptx;

namespace {

constexpr std::size_t kMemoryBytes = std::size_t{64} << 20;
constexpr int kManySms = 132;

struct Variant {
    const char* name;
    const char* policy;
    Recompute recompute = Recompute::None;
    std::map<std::string, std::string> options = {};
};

const std::vector<Variant>& variants()
{
    static const std::vector<Variant> all = {
        {"zero-offload", "zero-offload", Recompute::Cheap, {{"late", "0.3"}, {"tile", "4KiB"}}},
        {"zero-offload by layer", "zero-offload", Recompute::Block, {{"order", "by-layer"}}},
        {"deep-optimizer-states", "deep-optimizer-states", Recompute::None,
            {{"device-share", "0.5"}, {"tile", "4KiB"}}},
        {"deep-optimizer-states by layer", "deep-optimizer-states", Recompute::Block,
            {{"device-share", "0.7"}, {"tile", "4KiB"}, {"order", "by-layer"}}},
        {"zenflow", "zenflow", Recompute::Cheap, {{"interval", "1"}, {"overlap", "off"}}},
        {"zenflow, sums on the device", "zenflow", Recompute::None,
            {{"interval", "1"}, {"overlap", "off"}, {"accumulate-on", "device"}}},
        {"streamed", "streamed", Recompute::Block, {{"late", "0.3"}, {"tile", "4KiB"}}},
        {"streamed, some blocks stay", "streamed", Recompute::Cheap,
            {{"device-share", "0.5"}, {"weights-on-device", "0.7"}, {"tile", "8KiB"}}},
        {"ssd-vertical", "ssd-vertical", Recompute::Block,
            {{"disk-share", "0.5"}, {"late", "0.3"}, {"tile", "4KiB"}}},
        {"ssd-vertical, all on disk", "ssd-vertical", Recompute::Cheap,
            {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"tile", "4KiB"}}},
        {"resident, recompute", "resident", Recompute::Block},
        {"resident by layer", "resident", Recompute::Cheap, {{"order", "by-layer"}}},
    };
    return all;
}

bool isLong()
{
    return qgetenv("MR_PTX_TRAINING") == "all";
}

constexpr int kEach = 9;

// Two blocks, of which one has the feature of each family that has it in some.
TinyRun baseRun(const QString& family, bool isHalf)
{
    TinyRun run;
    run.config = familyConfig(family);
    run.config.layers = family == QStringLiteral("gemma4_e") ? 5 : 2; // whole where layers share
    if (!run.config.blocks.empty())
        run.config.blocks = familyConfig(family).kinds();
    run.compute = isHalf ? DType::BF16 : DType::F32;
    run.microBatch = 1;
    run.steps = 4; // streams wait at gates from the third on
    run.clipNorm = 0.25;
    return run;
}

// Heads of a size that the tensor cores take.
TinyRun wideHeads()
{
    TinyRun run = baseRun(QStringLiteral("qwen3"), true);
    run.config.block.headDim = 64;
    run.config.block.heads = 2;
    run.config.block.kvHeads = 1;
    run.seqLen = 80; // forward in tiles of 128 rows on few SMs, of 64 on many
    return run;
}

} // namespace

class TestTraining : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void familiesFollowTheCpuDeviceWithEqualBits_data();
    void familiesFollowTheCpuDeviceWithEqualBits();
    void tilesOfAttentionChangeNoBit();
    void fp8IsExactToo();
    void lightOptimizersAreExactToo_data();
    void lightOptimizersAreExactToo();

private:
    Result<TinyResult> trained(const PtxCard& card, const TinyRun& run);
    void compare(
        const PtxCard& card, const TinyRun& base, const TinyResult& want, const Variant& variant);

    QTemporaryDir m_folder;
};

Result<TinyResult> TestTraining::trained(const PtxCard& card, const TinyRun& run)
{
    MR_ASSIGN(auto device, makePtxCudaDevice(card));
    auto result = runTiny(*device, run);
    if (isDeadlocked())
        return Status::error(ErrorKind::DeviceLost, "deadlock");
    return result;
}

void TestTraining::compare(
    const PtxCard& card, const TinyRun& base, const TinyResult& want, const Variant& variant)
{
    TinyRun run = base;
    run.policy = variant.policy;
    run.options = variant.options;
    run.recompute = variant.recompute;
    run.disk.folders = {m_folder.path().toStdString()};

    auto got = trained(card, run);

    QVERIFY2(got.ok(), got.status().message().c_str());
    QVERIFY2(got.value().weightsHash == want.weightsHash, variant.name);
    QCOMPARE(got.value().losses, want.losses);
    QCOMPARE(got.value().norms, want.norms);
    QCOMPARE(got.value().peakDeviceBytes, got.value().plannedDeviceBytes);
    QCOMPARE(got.value().peakHostBytes, got.value().plannedHostBytes);
}

void TestTraining::familiesFollowTheCpuDeviceWithEqualBits_data()
{
    QTest::addColumn<QString>("family");
    QTest::addColumn<QString>("target");
    QTest::addColumn<bool>("isHalf");
    QTest::addColumn<int>("own"); // every kEach-th variant from this one on; -1: all
    int i = 0;
    for (const char* family : kFamilies) {
        if (!isLong()) {
            QTest::addRow("%s", family)
                << QString(family) << QStringLiteral("sm_80") << (i % 2 == 0) << i;
            ++i;
            continue;
        }
        for (const std::string& target : targets())
            for (const bool isHalf : {false, true})
                QTest::addRow("%s, %s, %s", family, target.c_str(), isHalf ? "bf16" : "fp32")
                    << QString(family) << QString::fromStdString(target) << isHalf << -1;
    }
}

void TestTraining::familiesFollowTheCpuDeviceWithEqualBits()
{
    QFETCH(const QString, family);
    QFETCH(const QString, target);
    QFETCH(const bool, isHalf);
    QFETCH(const int, own);
    PtxCard card;
    card.target = target.toStdString();
    const TinyRun base = baseRun(family, isHalf);
    const auto cpu = makeCpuDevice(kMemoryBytes);

    auto reference = runTiny(*cpu, base);
    auto plain = trained(card, base);

    QVERIFY2(reference.ok(), reference.status().message().c_str());
    QVERIFY2(plain.ok(), plain.status().message().c_str());
    const std::vector<double>& want = reference.value().losses;
    const double tolerance = isHalf ? 1.0 / 256 : 1e-4; // BF16 rounds by half of that, relative
    for (std::size_t i = 0; i < want.size(); ++i)
        QVERIFY2(std::abs(plain.value().losses[i] - want[i]) <= tolerance * std::abs(want[i]),
            qPrintable(QStringLiteral("step %1 is off by %2")
                           .arg(i)
                           .arg(plain.value().losses[i] / want[i] - 1.0)));
    for (std::size_t i = 0; i < variants().size(); ++i) {
        if (own >= 0 && static_cast<int>(i % kEach) != own % kEach)
            continue;
        card.streamSeed = i + 2;
        compare(card, base, plain.value(), variants()[i]);
    }
}

void TestTraining::tilesOfAttentionChangeNoBit()
{
    const TinyRun base = wideHeads();
    runtime().launches.clear();
    auto few = trained({}, base);
    const auto fewLaunches = std::exchange(runtime().launches, {});
    PtxCard card;
    card.multiprocessors = kManySms;

    auto many = trained(card, base);

    QVERIFY2(few.ok(), few.status().message().c_str());
    QVERIFY2(many.ok(), many.status().message().c_str());
    QVERIFY(runtime().launches != fewLaunches); // other kernels
    QCOMPARE(many.value().weightsHash, few.value().weightsHash);
    QCOMPARE(many.value().losses, few.value().losses);
}

void TestTraining::fp8IsExactToo()
{
    TinyRun base = inFp8(baseRun(QStringLiteral("llama3"), true));
    PtxCard card;
    card.target = "sm_90";
    auto plain = trained(card, base);
    QVERIFY2(plain.ok(), plain.status().message().c_str());
    compare(card, base, plain.value(), variants()[6]);
}

void TestTraining::lightOptimizersAreExactToo_data()
{
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<QString>("clip");
    QTest::newRow("factored, two passes") << int(Optimizer::Factored) << QStringLiteral("two-pass");
    QTest::newRow("apollo-mini") << int(Optimizer::ApolloMini) << QString();
    QTest::newRow("grass") << int(Optimizer::Grass) << QString();
    QTest::newRow("mezo") << int(Optimizer::Mezo) << QString();
}

void TestTraining::lightOptimizersAreExactToo()
{
    QFETCH(const int, optimizer);
    QFETCH(const QString, clip);
    TinyRun base = baseRun(QStringLiteral("qwen2"), true);
    base.light = {static_cast<Optimizer>(optimizer), StateCodec::Bits24};
    base.recompute = Recompute::Block;
    if (!clip.isEmpty())
        base.options = {{"clip-mode", clip.toStdString()}};
    const auto cpu = makeCpuDevice(kMemoryBytes);
    auto reference = runTiny(*cpu, base);
    auto plain = trained({}, base);
    QVERIFY2(reference.ok(), reference.status().message().c_str());
    QVERIFY2(plain.ok(), plain.status().message().c_str());
    for (std::size_t i = 0; i < plain.value().losses.size(); ++i)
        QVERIFY(std::abs(plain.value().losses[i] / reference.value().losses[i] - 1.0) < 1.0 / 256);
    PtxCard card;
    card.streamSeed = 3;
    Variant variant{"streamed", "streamed", Recompute::Block, base.options};
    variant.options["tile"] = "4KiB";
    compare(card, base, plain.value(), variant);
}

MR_TEST_WITH_APP(TestTraining)

} // namespace mr::test::tst_training

#include "tst_training.moc"
