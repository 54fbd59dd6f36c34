// Inputs of blocks that wait in 8 bits: every exact policy gives the bits of `resident` with them,
// holds and moves the bytes that were planned, and less of them.

#include "core/prove/tiny_device.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <map>
#include <string>

namespace mr::test::tst_coded_inputs {

namespace {

using Mode = CpuDeviceOptions::Mode;
using Options = std::map<std::string, std::string>;

struct Variant {
    const char* name;
    const char* policy;
    Options options = {};
    Mode mode = Mode::Threaded;
};

// None of these may change a bit.
const Variant kVariants[] = {
    {"resident, threaded", "resident"},
    {"resident, by micro-batch", "resident", {{"order", "by-microbatch"}}},
    {"resident, by micro-batch, inline", "resident", {{"order", "by-microbatch"}}, Mode::Inline},
    {"zero-offload", "zero-offload"},
    {"zero-offload, by micro-batch", "zero-offload", {{"order", "by-microbatch"}}},
    {"streamed", "streamed"},
    {"streamed, boundaries on the device", "streamed", {{"boundary", "device"}}},
    {"streamed, by micro-batch, one buffer", "streamed",
        {{"order", "by-microbatch"}, {"buffers", "1"}, {"tile", "4KiB"}}},
    {"ssd-vertical", "ssd-vertical", {{"tile", "8KiB"}}},
    {"ssd-vertical, all on disk", "ssd-vertical",
        {{"boundaries-on-disk", "1"}, {"weights-on-disk", "1"}, {"gradients-on-disk", "1"},
            {"tile", "4KiB"}}},
    {"ssd-vertical, half of the inputs on disk, inline", "ssd-vertical",
        {{"boundaries-on-disk", "0.5"}, {"tile", "8KiB"}}, Mode::Inline},
};

TinyRun codedRun(DType compute, int accumulate)
{
    TinyRun run;
    run.config.layers = 5; // three boundaries are saved
    run.compute = compute;
    run.accumulate = accumulate;
    run.recompute = Recompute::Block;
    run.codedInputs = true;
    return run;
}

// Rows of 128, so that codes and scales fill whole places.
TinyRun wideRun(bool coded)
{
    TinyRun run = codedRun(DType::BF16, 2);
    run.codedInputs = coded;
    run.config.hidden = 128;
    run.config.block.headDim = 32;
    run.seqLen = 32;
    return run;
}

std::size_t planned(const TinyRun& run, Tier tier, MemoryUse use)
{
    return PlainRun::plan(plainRunSpec(run)).value().bytes(tier, use);
}

} // namespace

class TestCodedInputs : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPolicyGivesTheBitsOfResident_data();
    void everyPolicyGivesTheBitsOfResident();
    void theOrderThatFlipsHasBitsOfItsOwn();
    void otherBitsThanThoseOfWholeInputs_data();
    void otherBitsThanThoseOfWholeInputs();
    void partsOfAModelAreTrainedToo_data();
    void partsOfAModelAreTrainedToo();
    void placesTakeHalfOfTheBytes();
    void onlyWithRecomputationOfBlocks();

private:
    TinyRun with(TinyRun run, const Variant& variant) const
    {
        run.policy = variant.policy;
        run.options = variant.options;
        run.disk.folders = {m_folder.path().toStdString()};
        run.disk.store.verify = DiskVerify::All;
        return run;
    }

    QTemporaryDir m_folder;
};

void TestCodedInputs::everyPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<bool>("full");
    QTest::addColumn<int>("accumulate");
    for (const bool full : {false, true})
        for (const int accumulate : {1, 4})
            QTest::addRow("%s, accumulate %d", full ? "fp32" : "bf16", accumulate)
                << full << accumulate;
}

void TestCodedInputs::everyPolicyGivesTheBitsOfResident()
{
    QFETCH(bool, full);
    QFETCH(int, accumulate);
    const TinyRun base = codedRun(full ? DType::F32 : DType::BF16, accumulate);
    const TinyResult plain = resultOn(Mode::Inline, base, 1);
    for (const double norm : plain.norms) // it trains at all
        QVERIFY(std::isfinite(norm) && norm > 0.0);
    for (const Variant& variant : kVariants) {
        compareRuns(resultOn(variant.mode, with(base, variant)), plain, variant.name);
        if (QTest::currentTestFailed())
            return;
    }
}

void TestCodedInputs::theOrderThatFlipsHasBitsOfItsOwn()
{
    TinyRun run = codedRun(DType::BF16, 4);
    run.options = {{"order", "by-layer-flip"}};
    const TinyResult plain = resultOn(Mode::Inline, run, 1);
    for (const char* policy : {"resident", "streamed", "ssd-vertical"})
        compareRuns(
            resultOn(Mode::Threaded, with(run, {policy, policy, run.options})), plain, policy);
}

void TestCodedInputs::otherBitsThanThoseOfWholeInputs_data()
{
    QTest::addColumn<int>("blocks");
    QTest::newRow("the last block alone") << 1;
    QTest::newRow("five blocks") << 5;
}

// Forward reads the inputs as they are: the first loss is the same, and the first gradient is not.
void TestCodedInputs::otherBitsThanThoseOfWholeInputs()
{
    QFETCH(int, blocks);
    TinyRun run = codedRun(DType::BF16, 3);
    run.config.layers = blocks;
    const TinyResult coded = resultOn(Mode::Inline, run);
    run.codedInputs = false;
    const TinyResult whole = resultOn(Mode::Inline, run);

    QCOMPARE(coded.losses.front(), whole.losses.front());
    QVERIFY(coded.norms.front() != whole.norms.front());
    QVERIFY(std::abs(coded.norms.front() / whole.norms.front() - 1.0) < 0.02);
    QVERIFY(coded.weightsHash != whole.weightsHash);
}

void TestCodedInputs::partsOfAModelAreTrainedToo_data()
{
    QTest::addColumn<bool>("adapter");
    QTest::addColumn<int>("first");
    QTest::newRow("an adapter") << true << 0;
    QTest::newRow("the upper blocks") << false << 3;
    QTest::newRow("the head") << false << 6;
}

// Below the first trained layer nothing waits.
void TestCodedInputs::partsOfAModelAreTrainedToo()
{
    QFETCH(bool, adapter);
    QFETCH(int, first);
    TinyRun run = codedRun(DType::BF16, 3);
    run.config = tinyConfig(false);
    run.config.layers = 5;
    if (adapter)
        run.adapter = AdapterSettings{4, 8.0};
    else
        for (int group = first; group < 7; ++group)
            run.layers.push_back(GroupId{group});
    const TinyResult plain = resultOn(Mode::Inline, run, 1);
    for (const char* policy : {"resident", "streamed"})
        compareRuns(resultOn(Mode::Threaded, with(run, {policy, policy})), plain, policy);
    run.codedInputs = false;
    const TinyResult whole = resultOn(Mode::Inline, run, 1);
    QCOMPARE(plain.weightsHash == whole.weightsHash, first == 6);
}

// 33 bytes where 64 were, on the host, on disk and on the link. The device keeps three activations
// for each micro-batch, and codes in place of the others.
void TestCodedInputs::placesTakeHalfOfTheBytes()
{
    TinyRun coded = wideRun(true);
    TinyRun whole = wideRun(false);
    const std::size_t one = 64 * 128 * 2;
    QCOMPARE(planned(whole, Tier::Device, MemoryUse::Boundaries), 7 * one);
    QCOMPARE(planned(whole, Tier::Device, MemoryUse::InputCodes), std::size_t{0});
    QCOMPARE(planned(coded, Tier::Device, MemoryUse::Boundaries), 3 * one);
    QCOMPARE(planned(coded, Tier::Device, MemoryUse::InputCodes), 5 * one * 33 / 64);
    const std::size_t flying = 2; // by layer both micro-batches are under way at once
    coded.policy = whole.policy = "streamed";
    QCOMPARE(planned(whole, Tier::PinnedHost, MemoryUse::Boundaries), 4 * flying * one);
    QCOMPARE(planned(coded, Tier::PinnedHost, MemoryUse::Boundaries), 4 * flying * one * 33 / 64);
    QCOMPARE(planned(coded, Tier::Device, MemoryUse::Boundaries), 3 * flying * one);
    QCOMPARE(planned(coded, Tier::Device, MemoryUse::InputCodes), 2 * flying * one * 33 / 64);
    const auto less = static_cast<std::int64_t>(4 * flying * one * 31 / 64);
    const TinyResult a = resultOn(Mode::Inline, coded);
    const TinyResult b = resultOn(Mode::Inline, whole);
    QCOMPARE(a.d2hBytes, b.d2hBytes - less);
    QCOMPARE(a.h2dBytes, b.h2dBytes - less);
    coded.policy = whole.policy = "ssd-vertical";
    coded.options = whole.options = {{"boundaries-on-disk", "1"}};
    QCOMPARE(planned(coded, Tier::PinnedHost, MemoryUse::Boundaries), std::size_t{0});
    const std::size_t page = 4096;
    const std::size_t pages = (one * 33 / 64 + page - 1) / page * page;
    QCOMPARE(planned(coded, Tier::Disk, MemoryUse::DiskBoundaries), 4 * flying * pages);
    QCOMPARE(planned(whole, Tier::Disk, MemoryUse::DiskBoundaries), 4 * flying * one);
}

void TestCodedInputs::onlyWithRecomputationOfBlocks()
{
    TinyRun run = codedRun(DType::BF16, 2);
    for (const Recompute how : {Recompute::None, Recompute::Cheap}) {
        run.recompute = how;
        const auto plan = PlainRun::plan(plainRunSpec(run));
        QVERIFY(!plan.ok());
        QVERIFY(plan.status().kind() == ErrorKind::InvalidArgument);
    }
    run.recompute = Recompute::Block;
    run.policy = "streamed";
    QVERIFY(PlainRun::plan(plainRunSpec(run)).ok());
    run.options = {{"activations-on-host", "0.5"}};
    const auto plan = PlainRun::plan(plainRunSpec(run));
    QVERIFY(!plan.ok());
    QVERIFY(plan.status().message().find("keep-inputs int8") != std::string::npos);
}

MR_TEST(TestCodedInputs)

} // namespace mr::test::tst_coded_inputs

#include "tst_coded_inputs.moc"
