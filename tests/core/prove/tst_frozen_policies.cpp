// Frozen weights whose home is the host: the bits of `resident`, the bytes that were planned.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"
#include "core/prove/tiny_device.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <array>
#include <map>
#include <string>

namespace mr::test::tst_frozen_policies {

namespace {

constexpr auto kInline = CpuDeviceOptions::Mode::Inline;
constexpr auto kThreaded = CpuDeviceOptions::Mode::Threaded;

TinyRun adapterRun()
{
    TinyRun run;
    run.config.layers = 5;
    run.adapter = AdapterSettings{};
    run.adapter->rank = 3;
    run.adapter->alpha = 8.0;
    return run;
}

TinyRun nf4Run()
{
    TinyRun run = adapterRun();
    run.adapter->nf4Base = true;
    return run;
}

// Head and embedding have matrices of their own here.
TinyRun modulesRun()
{
    TinyRun run = adapterRun();
    run.config.tiedEmbedding = false;
    run.adapter->saved = {"embed_tokens", "lm_head"};
    return run;
}

// Rows of an embedding that is the head, too.
TinyRun tokensRun()
{
    TinyRun run = adapterRun();
    run.adapter->tokens = {40, 3, 4, 5, 60};
    return run;
}

TinyRun fp8Run()
{
    return inFp8(adapterRun());
}

TinyRun layerRun()
{
    TinyRun run;
    run.config.layers = 5;
    run.layers = {GroupId{3}, GroupId{5}, GroupId{6}};
    return run;
}

// "streamed buffers=1" into the run.
void setPolicy(const QString& words, TinyRun& run)
{
    QStringList options = words.split(QLatin1Char(' '));
    run.policy = options.takeFirst().toStdString();
    for (const QString& option : options)
        run.options[option.section(QLatin1Char('='), 0, 0).toStdString()] =
            option.section(QLatin1Char('='), 1).toStdString();
}

#ifdef __SANITIZE_THREAD__
constexpr std::array kTypes{true}; // threads run as in fp32
constexpr std::array kKinds{"adapter", "layers", "nf4", "modules", "tokens"};
#else
constexpr std::array kTypes{true, false};
constexpr std::array kKinds{"adapter", "layers", "nf4", "fp8", "modules", "tokens"};
#endif

bool isOnlyOfLayers(const QString& words)
{
    return !words.startsWith(QLatin1String("streamed")) &&
           !words.startsWith(QLatin1String("ssd-vertical"));
}

// An adapter with more than its matrices: the end groups have state that the policy places.
bool trainsEnds(const QString& kind)
{
    return kind == QLatin1String("modules") || kind == QLatin1String("tokens");
}

TinyRun runOf(const QString& kind)
{
    return kind == QLatin1String("layers")    ? layerRun()
           : kind == QLatin1String("adapter") ? adapterRun()
           : kind == QLatin1String("fp8")     ? fp8Run()
           : kind == QLatin1String("modules") ? modulesRun()
           : kind == QLatin1String("tokens")  ? tokensRun()
                                              : nf4Run();
}

} // namespace

class TestFrozenPolicies : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPolicyGivesTheBitsOfResident_data();
    void everyPolicyGivesTheBitsOfResident();
    void theHostHoldsTheModelAndNothingOfItGoesBack();
    void packedBlocksTakeAQuarterAndASlot();
    void blocksThatStayAreNotFetched();
    void windowsAreRefused();

private:
    ReferenceRuns m_residents;
};

void TestFrozenPolicies::everyPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<QString>("words");
    QTest::addColumn<bool>("bf16");
    QTest::addColumn<QString>("kind");
    QTest::addColumn<double>("clip");
    QTest::addColumn<double>("dropout");
    QTest::addColumn<bool>("dora");
    for (const char* words : {"streamed", "streamed buffers=1 tile=4KiB",
             "streamed order=by-microbatch", "streamed weights-on-device=0.4 boundary=device",
             "streamed activations-on-host=0.5", "streamed clip-mode=per-group", "zero-offload",
             "deep-optimizer-states device-share=0.5",
             "ssd-vertical weights-on-disk=1 gradients-on-disk=1",
             "ssd-vertical weights-on-disk=0.6 buffers=1 tile=4KiB weights-on-device=0.4"})
        for (const QString kind : kKinds)
            for (const bool bf16 : kTypes) {
                const bool isLayers = kind == QLatin1String("layers");
                if (!isLayers && isOnlyOfLayers(QString(words)))
                    continue;
                if (!bf16 && kind == QLatin1String("fp8")) // codes are of bf16 values
                    continue;
                const double clip = bf16 == isLayers ? 0.0 : 0.25;
                const char* const type = bf16 ? "bf16" : "fp32";
                const auto row = [&](const char* more, double dropout, bool dora) {
                    QTest::addRow("%s, %s%s, %s", words, qPrintable(kind), more, type)
                        << QString(words) << bf16 << kind << clip << dropout << dora;
                };
                row("", 0.0, false);
                if (isLayers || trainsEnds(kind))
                    continue;
                row(" with DoRA and dropout", 0.3, true);
                if (kTypes.size() == 1) // that row has the waits of both
                    continue;
                row(" with dropout", 0.3, false);
                row(" with DoRA", 0.0, true);
            }
}

void TestFrozenPolicies::everyPolicyGivesTheBitsOfResident()
{
    QFETCH(const QString, words);
    QFETCH(const bool, bf16);
    QFETCH(const QString, kind);
    QFETCH(const double, clip);
    QFETCH(const double, dropout);
    QFETCH(const bool, dora);
    const QTemporaryDir folder;
    TinyRun run = runOf(kind);
    run.dropout = dropout;
    if (dora)
        run.adapter->dora = true;
    run.compute = bf16 ? DType::BF16 : DType::F32;
    run.clipNorm = clip;
    run.disk.folders = {folder.path().toStdString()};
    run.recompute =
        words.contains(QLatin1String("activations-on-host")) ? Recompute::Block : Recompute::None;
    if (words.contains(QLatin1String("per-group")))
        run.options = {{"clip-mode", "per-group"}};
    const TinyResult& resident = m_residents.of(run, kind.toStdString(), bf16, clip, dropout, dora,
        static_cast<int>(run.recompute), words.contains(QLatin1String("per-group")));
    setPolicy(words, run);

    const TinyResult result = resultOn(kThreaded, run);

    QCOMPARE(result.weightsHash, resident.weightsHash);
    QCOMPARE(result.losses, resident.losses);
    QCOMPARE(result.norms, resident.norms);
    QCOMPARE(result.h2dBytes, result.plannedH2dBytes);
    QCOMPARE(result.d2hBytes, result.plannedD2hBytes);
    QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
    QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
    QCOMPARE(result.allocationsInSteps, std::size_t{0});
    QCOMPARE(result.diskReadBytes, result.plannedDisk.readBytes);
    QCOMPARE(result.diskWrittenBytes, result.plannedDisk.writtenBytes);
    const bool isOnDisk = words.startsWith(QLatin1String("ssd-vertical"));
    QCOMPARE(result.diskReadBytes > 0, isOnDisk);
    const bool writes = kind == QLatin1String("layers") || trainsEnds(kind);
    QCOMPARE(result.diskWrittenBytes > 0, isOnDisk && writes);
}

void TestFrozenPolicies::theHostHoldsTheModelAndNothingOfItGoesBack()
{
    TinyRun run = adapterRun();
    run.compute = DType::BF16;
    run.recompute = Recompute::Block;
    const TinyResult plain = resultOn(kInline, run, 1);
    run.policy = "streamed";
    run.options = {{"boundary", "device"}};

    const TinyResult streamed = resultOn(kInline, run, 1);

    QVERIFY(streamed.plannedDeviceBytes < plain.plannedDeviceBytes);
    QCOMPARE(streamed.d2hBytes, plain.d2hBytes); // losses and norms
    // In forward the three blocks that the two slots do not have from the step before, and in
    // backward the three that they do not have any more.
    const std::size_t blocks = streamed.plannedHostBytes - plain.plannedHostBytes;
    QCOMPARE(streamed.h2dBytes - plain.h2dBytes, static_cast<std::int64_t>(blocks / 5 * 6));
}

// In 4 bits on the device, too: a block is expanded when it is used.
void TestFrozenPolicies::packedBlocksTakeAQuarterAndASlot()
{
    TinyRun run = adapterRun();
    run.compute = DType::BF16;
    const TinyResult plain = resultOn(kInline, run, 1);
    run.adapter->nf4Base = true;
    const TinyResult packed = resultOn(kInline, run, 1);
    run.policy = "streamed";
    run.options = {{"boundary", "device"}, {"buffers", "1"}};
    const TinyResult streamed = resultOn(kInline, run, 1);

    QCOMPARE(packed.h2dBytes, plain.h2dBytes);
    QVERIFY(packed.weightsHash != plain.weightsHash);
    QCOMPARE(packed.peakDeviceBytes, packed.plannedDeviceBytes);
    // Five blocks there, of which the first step brings all for forward and four for backward.
    const std::size_t blocks = streamed.plannedHostBytes - packed.plannedHostBytes;
    QCOMPARE(streamed.h2dBytes - packed.h2dBytes, static_cast<std::int64_t>(blocks / 5 * 8));
    QCOMPARE(streamed.weightsHash, packed.weightsHash);
}

void TestFrozenPolicies::blocksThatStayAreNotFetched()
{
    TinyRun run = adapterRun();
    run.policy = "streamed";
    run.options = {{"weights-on-device", "1"}, {"boundary", "device"}};
    const TinyResult all = resultOn(kInline, run, 1);
    run.policy = "resident";
    run.options = {};
    const TinyResult resident = resultOn(kInline, run, 1);

    QCOMPARE(all.h2dBytes, resident.h2dBytes);
    QCOMPARE(all.weightsHash, resident.weightsHash);
}

void TestFrozenPolicies::windowsAreRefused()
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    const auto device = std::move(makeCpuDevice(options)).value();
    for (const char* policy : {"zenflow", "zero-offload-dpu"}) {
        TinyRun run = adapterRun();
        run.policy = policy;

        const Status status = runTiny(*device, run).status();

        QCOMPARE(status.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(status.message().find("a window beside frozen weights") != std::string::npos,
            status.message().c_str());
    }
}

MR_TEST(TestFrozenPolicies)

} // namespace mr::test::tst_frozen_policies

#include "tst_frozen_policies.moc"
