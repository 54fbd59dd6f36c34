// Activations that the host keeps are those that would have been made again: no bit changes.

#include "core/prove/tiny_device.h"
#include "support/test_room.h"

#include <QtTest>

#include <map>
#include <string>
#include <utility>

namespace mr::test::tst_kept_activations {

namespace {

using Mode = CpuDeviceOptions::Mode;
using Options = std::map<std::string, std::string>;

struct Variant {
    const char* name;
    const char* policy;
    const char* order;
    Options options;
    Mode mode = Mode::Threaded;
};

const Variant kVariants[] = {
    {"all, streamed", "streamed", "by-layer", {{"activations-on-host", "1"}}},
    {"half, streamed, inline", "streamed", "by-layer", {{"activations-on-host", "0.5"}},
        Mode::Inline},
    {"all, weights stay", "streamed", "by-layer",
        {{"activations-on-host", "1"}, {"weights-on-device", "1"}, {"boundary", "device"}}},
    {"a third, by turns", "streamed", "by-layer-flip",
        {{"activations-on-host", "0.3"}, {"buffers", "1"}}},
    {"all, one micro-batch after the other", "streamed", "by-microbatch",
        {{"activations-on-host", "1"}, {"late", "0"}}},
    {"half, with all else on disk", "ssd-vertical", "by-layer-flip",
        {{"activations-on-host", "0.5"}, {"boundaries-on-disk", "1"}, {"weights-on-disk", "1"},
            {"gradients-on-disk", "1"}, {"tile", "4KiB"}}},
};

} // namespace

class TestKeptActivations : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void bitsAreThoseOfResident_data();
    void bitsAreThoseOfResident();

private:
    QTemporaryDir m_folder;
};

void TestKeptActivations::bitsAreThoseOfResident_data()
{
    QTest::addColumn<int>("index");
    QTest::addColumn<bool>("full");
    QTest::addColumn<int>("accumulate");
    for (int i = 0; i < static_cast<int>(std::size(kVariants)); ++i)
        for (const bool full : {false, true})
            for (const int accumulate : {1, 3, 8})
                QTest::addRow("%s, %s, %d", kVariants[i].name, full ? "fp32" : "bf16", accumulate)
                    << i << full << accumulate;
}

void TestKeptActivations::bitsAreThoseOfResident()
{
    QFETCH(int, index);
    QFETCH(bool, full);
    QFETCH(int, accumulate);
    const Variant& variant = kVariants[index];
    const auto with = [&](const char* policy, Options options) {
        TinyRun run;
        run.policy = policy;
        run.options = std::move(options);
        run.options["order"] = variant.order;
        run.compute = full ? DType::F32 : DType::BF16;
        run.accumulate = accumulate;
        run.clipNorm = accumulate == 3 ? 0.0 : 0.25;
        run.config = tinyConfig(index % 2 == 0);
        run.config.layers = 4;
        run.recompute = std::string(policy) != "resident" ? Recompute::Block : Recompute::None;
        run.disk.folders = {m_folder.path().toStdString()};
        return run;
    };
    auto resident = runOn(Mode::Inline, with("resident", {}));
    QVERIFY2(resident.ok(), resident.status().message().c_str());
    Options none = variant.options;
    none["activations-on-host"] = "0";
    auto again = runOn(Mode::Inline, with(variant.policy, none));
    QVERIFY2(again.ok(), again.status().message().c_str());

    auto outcome = runOn(variant.mode, with(variant.policy, variant.options));

    QVERIFY2(outcome.ok(), outcome.status().message().c_str());
    const TinyResult& result = outcome.value();
    QCOMPARE(result.weightsHash, resident.value().weightsHash);
    QCOMPARE(result.losses, resident.value().losses);
    QCOMPARE(result.norms, resident.value().norms);
    QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
    QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
    QCOMPARE(result.allocationsInSteps, std::size_t{0});
    QCOMPARE(result.h2dBytes, result.plannedH2dBytes);
    QCOMPARE(result.d2hBytes, result.plannedD2hBytes);
    const bool isKept = accumulate > 1 || variant.options.at("activations-on-host") != "0.3";
    QCOMPARE(result.d2hBytes > again.value().d2hBytes, isKept);
    QCOMPARE(result.plannedHostBytes > again.value().plannedHostBytes, isKept);
}

MR_TEST_WITH_APP(TestKeptActivations)

} // namespace mr::test::tst_kept_activations

#include "tst_kept_activations.moc"
