// RunSpec and PlanReport as JSON, their words and units, and the specs that checkSpec refuses.

#include "support/test_room.h"

#include <millrace/planner.h>
#include <millrace/run_spec.h>

#include <QTest>

#include <functional>
#include <limits>

namespace mr::test::tst_run_spec {

namespace {

RunSpec usable()
{
    RunSpec spec;
    spec.modelDir = "/models/x";
    spec.data = {{"/data/train.txt", DataFormat::Auto, {}}};
    return spec;
}

// The message of a spec changed by `change`; empty if it passes.
std::string refusal(const std::function<void(RunSpec&)>& change)
{
    RunSpec spec = usable();
    change(spec);
    return checkSpec(spec).message();
}

bool names(const std::string& message, std::string_view part)
{
    return message.find(part) != std::string::npos;
}

RunSpec everythingSet()
{
    RunSpec s;
    s.name = "n \"quoted\" \xE6\x97\xA5";
    s.scratchConfig = "/c.json";
    s.scratchTokenizer = "/t.model";
    s.data = {{"/a.csv", DataFormat::Csv, {{"prompt", "q"}, {"response", "a"}}}};
    s.evalData = {{"/e.jsonl", DataFormat::Jsonl, {}}, {"/f", DataFormat::Text, {}}};
    s.pack = true;
    s.evalEvery = 7;
    s.outDir = "/o";
    s.saveDir = "/s";
    s.database = "/h.db";
    s.steps = 300;
    s.epochs = 0.1;
    s.seqLen = 256;
    s.microBatch = 4;
    s.accumulate = 3;
    s.learningRate = 2e-3;
    s.schedule = ScheduleKind::Linear;
    s.warmupSteps = 10;
    s.weightDecay = 0.03;
    s.beta1 = 0.85;
    s.beta2 = 0.98;
    s.eps = 1e-9;
    s.clipNorm = 0.0;
    s.seed = std::numeric_limits<std::uint64_t>::max();
    s.precision = PrecisionChoice::F32;
    s.method = "lora";
    s.rank = 8;
    s.alpha = 12.5;
    s.rankStabilised = true;
    s.dora = true;
    s.dropout = 0.25;
    s.loraPlus = 16.0;
    s.targets = "q_proj,v_proj";
    s.excludedTargets = "mlp.down_proj";
    s.rankPattern = {{"v_proj", "4"}};
    s.alphaPattern = {{"q_proj", "32"}};
    s.savedModules = "lm_head";
    s.trainedTokens = "7,9-11";
    s.adapterDir = "/adapter";
    s.trainLayers = "1-3";
    s.recompute = RecomputeChoice::Block;
    s.checkpointEvery = 50;
    s.checkpointMinutes = 7;
    s.keepCheckpoints = 5;
    s.keepBest = true;
    s.device = DeviceChoice::Cpu;
    s.threadedDevice = true;
    s.threads = 6;
    s.policy = "zero-offload";
    s.policyOptions = {{"order", "by-layer"}};
    s.deviceMemoryBytes = 1;
    s.hostMemoryBytes = 2;
    s.diskBytes = 3;
    s.diskPaths = {"/d", "/e"};
    s.maxDiskWriteBytes = 4;
    s.linkBytesPerSecond = 1.0 / 3.0;
    return s;
}

} // namespace

class TestRunSpec : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void specComesBackFromItsJson()
    {
        const RunSpec spec = everythingSet();

        Result<RunSpec> read = runSpecFromJson(toJson(spec));

        QVERIFY2(read.ok(), read.status().message().c_str());
        const RunSpec& r = read.value();
        QCOMPARE(toJson(r), toJson(spec));
        QCOMPARE(r.seed, spec.seed);
        QVERIFY(r.pack);
        QCOMPARE(r.checkpointMinutes, std::int64_t{7});
        QCOMPARE(r.diskPaths, spec.diskPaths);
        QCOMPARE(r.maxDiskWriteBytes, std::uint64_t{4});
        QCOMPARE(r.data[0].columns, spec.data[0].columns);
        QCOMPARE(r.evalData.size(), std::size_t{2});
        QVERIFY(r.linkBytesPerSecond == spec.linkBytesPerSecond);
        QVERIFY(toJson(r) != toJson(RunSpec()));
    }

    void missingFieldsKeepTheirDefaults()
    {
        Result<RunSpec> read = runSpecFromJson("{}");

        QVERIFY(read.ok());
        RunSpec want;
        want.headPart = 0; // as earlier programs formed the head's sums
        QCOMPARE(toJson(read.value()), toJson(want));
    }

    void badJsonNamesTheField()
    {
        QVERIFY(names(runSpecFromJson(R"({"steps":"x"})").status().message(), "\"steps\""));
        QVERIFY(names(runSpecFromJson(R"({"steps":1.5})").status().message(), "\"steps\""));
        QVERIFY(names(runSpecFromJson(R"({"stepz":1})").status().message(), "stepz"));
        QVERIFY(names(runSpecFromJson(R"({"seed":-1})").status().message(), "\"seed\""));
        QVERIFY(names(runSpecFromJson(R"({"device":"tpu"})").status().message(), "tpu"));
        QVERIFY(!runSpecFromJson("[]").ok());
        QVERIFY(!runSpecFromJson("{\"data\":[1]}").ok());
    }

    void planReportComesBackFromItsJson()
    {
        PlanReport report;
        report.policy = "resident";
        report.inexactBy = "clip-mode=per-group";
        report.fits = true;
        report.advice = {"use a smaller batch"};
        report.lighter = {
            {true, false, Optimizer::AdamW, WeightFormat::Auto, "zero-offload", 12, 2.5},
            {false, true, Optimizer::AdamW, WeightFormat::Auto, "streamed", 7, 1.5},
            {false, false, Optimizer::Factored, WeightFormat::Random16, "streamed", 5, 0.0}};
        report.tiers = {{"device", 10, 6, {{"weights", 4}, {"gradients", 2}}}};
        report.groups = {{"embedding", {{"device", "weights", 4}, {"host", "low plane", 3}}},
            {"shared", {{"device", "activations", 2}}}};
        report.parameters = 260032;
        report.processBytes = 11;
        report.diskReadBytesPerStep = 7;
        report.diskWriteBytesPerStep = 5;
        report.diskWriteBytesOfRun = std::numeric_limits<std::uint64_t>::max();
        report.wear = "The run writes 1 TB.";
        report.predictedStepMs = 0.1;
        report.predictedStallMs[2] = 3.25;

        Result<PlanReport> read = planReportFromJson(toJson(report));

        QVERIFY2(read.ok(), read.status().message().c_str());
        QCOMPARE(toJson(read.value()), toJson(report));
        QCOMPARE(read.value().tiers[0].kinds[1].bytes, std::uint64_t{2});
        QCOMPARE(read.value().groups[0].bytes[1].kind, std::string("low plane"));
        QCOMPARE(read.value().groups[0].bytes[1].bytes, std::uint64_t{3});
        QVERIFY(read.value().predictedStallMs[2] == 3.25);
        QCOMPARE(read.value().diskReadBytesPerStep, std::int64_t{7});
        QCOMPARE(read.value().diskWriteBytesPerStep, std::int64_t{5});
        QCOMPARE(read.value().diskWriteBytesOfRun, report.diskWriteBytesOfRun);
        QCOMPARE(read.value().wear, report.wear);
        QCOMPARE(read.value().processBytes, report.processBytes);
        QVERIFY(!planReportFromJson(R"({"tiers":3})").ok());
    }

    void wordsOfEveryChoiceAreReadBack()
    {
        for (const auto v : {PrecisionChoice::Auto, PrecisionChoice::BF16, PrecisionChoice::F32,
                 PrecisionChoice::Fp8})
            QVERIFY(parsePrecision(name(v)).value() == v);
        for (const auto v : {DataFormat::Auto, DataFormat::Text, DataFormat::Jsonl,
                 DataFormat::Json, DataFormat::Csv, DataFormat::Parquet})
            QVERIFY(parseDataFormat(name(v)).value() == v);
        for (const auto v : {ScheduleKind::Constant, ScheduleKind::Linear, ScheduleKind::Cosine})
            QVERIFY(parseSchedule(name(v)).value() == v);
        for (const auto v : {RecomputeChoice::Auto, RecomputeChoice::None, RecomputeChoice::Cheap,
                 RecomputeChoice::Block})
            QVERIFY(parseRecompute(name(v)).value() == v);
        QVERIFY(names(parsePrecision("fp4").status().message(), "auto, bf16, fp32 or fp8"));
        QVERIFY(names(parseRecompute("norms").status().message(), "auto, none, cheap or block"));
    }

    void amountsOfBytesAreReadWithTheirUnits()
    {
        QCOMPARE(parseBytes("6GiB").value(), std::uint64_t{6} << 30);
        QCOMPARE(parseBytes("200GB").value(), std::uint64_t{200'000'000'000});
        QCOMPARE(parseBytes("1500000").value(), std::uint64_t{1500000});
        QCOMPARE(parseBytes("1.5 KiB").value(), std::uint64_t{1536});
        QCOMPARE(parseBytes("2TiB").value(), std::uint64_t{2} << 40);
        QVERIFY(parseRate("12GB/s").value() == 12e9);
    }

    void amountsThatAreNoneAreRefused()
    {
        for (const char* text : {"", "GiB", "-1", "-0", "6G", "6 GiBs", "nan", "inf", "1e3", "0x10",
                 "9999999999TiB", " 1"})
            QVERIFY2(!parseBytes(text).ok(), text);
        for (const char* text : {"12GB", "0GB/s", "/s", "-1GB/s", "12GB/sec"})
            QVERIFY2(!parseRate(text).ok(), text);
    }

    void usableSpecPasses() { QCOMPARE(checkSpec(usable()).message(), std::string()); }

    void whatIsNotBuiltIsRefusedByName()
    {
        QVERIFY(names(refusal([](RunSpec& s) { s.method = "galore"; }), "'galore' is known but"));
        QVERIFY(names(refusal([](RunSpec& s) {
            s.device = DeviceChoice::Cuda;
            s.linkBytesPerSecond = 1e9;
        }),
            "leave it out with cuda"));
    }

    void everyScratchFolderIsNamedOnce()
    {
        const std::string twice = refusal([](RunSpec& s) { s.diskPaths = {"/d", "/e", "/d"}; });
        QVERIFY2(names(twice, "disk-path") && names(twice, "/d twice"), twice.c_str());
        QVERIFY(names(refusal([](RunSpec& s) { s.diskPaths = {""}; }), "empty"));
        QVERIFY(names(refusal([](RunSpec& s) {
            for (int i = 0; i < 33; ++i)
                s.diskPaths.push_back(std::to_string(i));
        }),
            "at most 32"));
        QCOMPARE(refusal([](RunSpec& s) { s.diskPaths = {"/d", "/e"}; }), std::string());
    }

    // Runs of earlier programs are resumed, too.
    void oneScratchFolderMayBeAText()
    {
        QCOMPARE(runSpecFromJson(R"({"disk_path":"/d"})").value().diskPaths,
            std::vector<std::string>{"/d"});
        const Status wrong = runSpecFromJson(R"({"disk_paths":["/d",1]})").status();
        QVERIFY2(names(wrong.message(), "disk_paths"), wrong.message().c_str());
    }

    void spaceOnADiskNeedsItsFolder()
    {
        const std::string message = refusal([](RunSpec& s) { s.diskBytes = 1; });
        QVERIFY2(names(message, "disk-space") && names(message, "disk-path"), message.c_str());

        QCOMPARE(refusal([](RunSpec& s) {
            s.diskPaths = {"/d"};
            s.diskBytes = 1;
            s.maxDiskWriteBytes = 1;
        }),
            std::string());
        QCOMPARE(refusal([](RunSpec& s) { s.diskPaths = {"/d"}; }), std::string());
        // Checkpoints are written without a scratch folder, too.
        QCOMPARE(refusal([](RunSpec& s) { s.maxDiskWriteBytes = 1; }), std::string());
    }

    void rangesNameTheirField()
    {
        QVERIFY(names(refusal([](RunSpec& s) { s.steps = -1; }), "steps is -1"));
        QVERIFY(names(refusal([](RunSpec& s) { s.epochs = 0.0; }), "epochs"));
        QVERIFY(names(refusal([](RunSpec& s) { s.seqLen = 1; }), "seq-len is 1"));
        QVERIFY(names(refusal([](RunSpec& s) { s.microBatch = 0; }), "micro-batch"));
        QVERIFY(names(refusal([](RunSpec& s) { s.accumulate = 0; }), "accumulate"));
        QVERIFY(names(refusal([](RunSpec& s) { s.learningRate = -1e-5; }), "lr"));
        QVERIFY(names(refusal([](RunSpec& s) { s.beta2 = 1.0; }), "beta2"));
        QVERIFY(names(refusal([](RunSpec& s) { s.eps = 0.0; }), "eps"));
        QVERIFY(names(refusal([](RunSpec& s) { s.keepCheckpoints = 0; }), "keep"));
        QVERIFY(names(refusal([](RunSpec& s) { s.checkpointMinutes = -1; }), "checkpoint-minutes"));
        QVERIFY(
            names(refusal([](RunSpec& s) { s.checkpointMinutes = 43'201; }), "from 0 to 43200"));
        const double nan = std::numeric_limits<double>::quiet_NaN();
        QVERIFY(names(refusal([=](RunSpec& s) { s.clipNorm = nan; }), "clip"));
        QVERIFY(names(refusal([=](RunSpec& s) { s.linkBytesPerSecond = nan; }), "link"));
    }

    void contradictionsAboutTheModelAreRefused()
    {
        QVERIFY(!refusal([](RunSpec& s) { s.modelDir.clear(); }).empty());
        QVERIFY(!refusal([](RunSpec& s) { s.scratchConfig = "/c.json"; }).empty());
        QVERIFY(!refusal([](RunSpec& s) { s.scratchTokenizer = "/t.model"; }).empty());
        QVERIFY(!refusal([](RunSpec& s) { s.data[0].path.clear(); }).empty());
    }
};

MR_TEST(TestRunSpec)

} // namespace mr::test::tst_run_spec

#include "tst_run_spec.moc"
