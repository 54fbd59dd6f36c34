// Choices and messages of `auto`, from rates in the user's cache, and refusals of the planner.

#include "core/choose/measure_rates.h"
#include "core/choose/rate_cache.h"
#include "core/choose/rate_correction.h"
#include "core/choose/rate_estimator.h"
#include "core/choose/run_setup.h"
#include "core/choose/scratch_rates.h"
#include "core/device/cpu/cpu_device.h"
#include "core/prove/plain_run.h"
#include "core/tier/scratch_folder.h"
#include "support/test_room.h"

#include <millrace/library.h>
#include <millrace/planner.h>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <string_view>

namespace mr::test::tst_planner {

namespace {

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "hidden_act": "silu", "torch_dtype": "bfloat16"})";

// A machine on which the link is fast and the host slow: every update wants to be on the device.
Feedback slowHost()
{
    Feedback rates;
    rates.hostToDeviceBytesPerSecond = 50e9;
    rates.deviceToHostBytesPerSecond = 50e9;
    rates.hostAdamwElementsPerSecond = 1e7;
    rates.deviceAdamwElementsPerSecond = 1e10;
    rates.deviceFlopsPerSecond = 1e13;
    return rates;
}

} // namespace

class TestPlanner : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        QVERIFY(m_folder->isValid());
        qputenv("XDG_DATA_HOME", m_folder->path().toUtf8());
        QFile config(m_folder->filePath(QStringLiteral("config.json")));
        QVERIFY(config.open(QIODevice::WriteOnly));
        config.write(kConfig);
    }

    void bookKeepsWhatItWasGiven()
    {
        RateCache cache;
        cache.put("a machine", slowHost());
        QVERIFY(cache.save(RateCache::defaultPath()).ok());

        const RateCache again = RateCache::load(RateCache::defaultPath());

        QVERIFY(again.find("another") == nullptr);
        const Feedback* rates = again.find("a machine");
        QVERIFY(rates != nullptr);
        QCOMPARE(rates->hostAdamwElementsPerSecond, 1e7);
        QCOMPARE(rates->deviceFlopsPerSecond, 1e13);
    }

    void brokenBookIsAnEmptyBook()
    {
        const auto path = RateCache::defaultPath();
        QVERIFY(QDir().mkpath(QString::fromStdString(path.parent_path().string())));
        for (const char* text : {"", "{", "[]", R"({"version": "1", "entries": {}})",
                 R"({"version": 1, "entries": {"k": {"h2d_bytes_per_s": "fast"}}})"}) {
            QFile file(QString::fromStdString(path.string()));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(text);
            file.close();

            const RateCache cache = RateCache::load(path);

            const Feedback* rates = cache.find("k");
            QVERIFY(rates == nullptr || rates->hostToDeviceBytesPerSecond == 0.0);
        }
    }

    void whatABusyMomentMeasuredIsMeasuredAgain()
    {
        constexpr double kNow = 1.8e9;
        constexpr double kDay = 24.0 * 3600.0;
        RateCache cache;
        cache.put("of an older program", slowHost());
        cache.putMeasured("calm", slowHost(), {kNow, 3.0});
        cache.putMeasured("busy", slowHost(), {kNow, 60.0});
        QVERIFY(cache.save(RateCache::defaultPath()).ok());
        cache = RateCache::load(RateCache::defaultPath());

        QVERIFY(!cache.isFresh("none", kNow) && !cache.isFresh("of an older program", kNow));
        QVERIFY(
            cache.isFresh("calm", kNow + 29.0 * kDay) && !cache.isFresh("calm", kNow + 31 * kDay));
        QVERIFY(cache.isFresh("busy", kNow + 60.0) && !cache.isFresh("busy", kNow + 700.0));
        QVERIFY(!cache.isFresh("calm", kNow - 60.0)); // a clock that was put back

        Feedback faster = slowHost();
        faster.deviceFlopsPerSecond *= 2.0;
        cache.putMeasured("calm", faster, {kNow + 40.0 * kDay, 60.0});
        cache.putMeasured("calm", faster, {kNow + 41.0 * kDay, 60.0}); // not the second time either
        cache.putMeasured("busy", faster, {kNow + 700.0, 60.0});
        // Calm rates are kept and tried again soon; busy ones give way to newer ones.
        QCOMPARE(cache.find("calm")->deviceFlopsPerSecond, slowHost().deviceFlopsPerSecond);
        QVERIFY(cache.isFresh("calm", kNow + 41.0 * kDay + 500.0));
        QVERIFY(!cache.isFresh("calm", kNow + 41.0 * kDay + 700.0));
        QCOMPARE(cache.find("busy")->deviceFlopsPerSecond, faster.deviceFlopsPerSecond);
    }

    void memoryIsAdvisedOnlyWhereItIsWhatLacks()
    {
        RunSpec spec = usable();
        put(spec, slowHost());
        spec.policy = "zero-offload"; // resident fits as well, and is faster here
        Result<PlanReport> report = planRun(spec);

        QVERIFY2(report.ok(), report.status().message().c_str());
        QVERIFY(report.value().fits);
        std::string all;
        for (const std::string& advice : report.value().advice)
            all += advice + "\n";
        QVERIFY2(
            all.find("With policy resident, which fits, too: ") != std::string::npos, all.c_str());
        QVERIFY2(all.find("memory of") == std::string::npos, all.c_str());
        QVERIFY(all.find("With policy") == all.rfind("With policy"));
    }

    void aDiskThatWasNeverMeasuredIsNamedWithTheCommand()
    {
        RunSpec spec = usable();
        put(spec, slowHost());
        spec.policy = "ssd-vertical";
        spec.diskPaths = {m_folder->path().toStdString()};
        Result<PlanReport> report = planRun(spec);

        QVERIFY2(report.ok(), report.status().message().c_str());
        QCOMPARE(report.value().predictedStepMs, 0.0);
        std::string all;
        for (const std::string& advice : report.value().advice)
            all += advice + "\n";
        QVERIFY2(all.find("millrace bench disk") != std::string::npos, all.c_str());
        QVERIFY2(all.find(spec.diskPaths.front()) != std::string::npos, all.c_str());
    }

    void aForecastIsWrongByAQuarterOnAnIdleMachine()
    {
        Result<RunSetup> made = slowlyForetold();
        QVERIFY2(made.ok(), made.status().message().c_str());
        RunSetup setup = std::move(made).value();
        QVERIFY(setup.forecast.known);
        const double told = setup.forecast.stepSeconds;

        QVERIFY(isForecastWrong(setup, {told / 2.0, kLeastTruthSteps, 0.0}));
        QVERIFY(isForecastWrong(setup, {told * 2.0, kLeastTruthSteps, kMostOthersPercent}));
        QVERIFY(!isForecastWrong(setup, {told / 1.2, kLeastTruthSteps, 0.0}));
        QVERIFY(!isForecastWrong(setup, {told * 1.3, kLeastTruthSteps, 0.0}));
        QVERIFY(!isForecastWrong(setup, {told / 2.0, kLeastTruthSteps - 1, 0.0}));
        QVERIFY(!isForecastWrong(setup, {told / 2.0, kLeastTruthSteps, 10.5}));
        QVERIFY(!isForecastWrong(setup, {0.0, kLeastTruthSteps, 0.0}));
        setup.forecast = {}; // no rates are known
        QVERIFY(!isForecastWrong(setup, {told / 2.0, kLeastTruthSteps, 0.0}));
    }

    void whatARunMeasuredTakesThePlaceOfWhatTheBookHad()
    {
        Result<RunSetup> made = slowlyForetold();
        QVERIFY2(made.ok(), made.status().message().c_str());
        const RunSetup setup = std::move(made).value();
        Feedback measured = setup.rates;
        measured.deviceFlopsPerSecond = 1e11;
        measured.block = {0.001, 0.002, 0.001};

        QVERIFY(correctRates(setup, measured, 1.0, RateCache::defaultPath()));

        const RunSetup again = setUpRun(setup.asked, 10).value();
        QCOMPARE(again.rates.deviceFlopsPerSecond, 1e11);
        QVERIFY(again.forecast.stepSeconds < setup.forecast.stepSeconds / 10.0);
        const std::string words = correctionWords(setup, {0.25, 20, 0.0});
        QVERIFY2(words.find("took 250 ms") != std::string::npos, words.c_str());
        // Where nothing was ever measured there is no forecast to mend.
        QVERIFY(QFile::remove(QString::fromStdString(RateCache::defaultPath().string())));
        QVERIFY(!correctRates(setup, measured, 1.0, RateCache::defaultPath()));
        QVERIFY(!QFile::exists(QString::fromStdString(RateCache::defaultPath().string())));
    }

    void withoutRatesTheFirstThatFitsIsTakenAndNoTimeIsMadeUp()
    {
        RunSpec spec = usable();

        Result<PlanReport> report = planRun(spec);

        QVERIFY2(report.ok(), report.status().message().c_str());
        QCOMPARE(report.value().policy, std::string("resident"));
        QCOMPARE(report.value().predictedStepMs, 0.0);
        QVERIFY(report.value().reason.find("no rates are measured") != std::string::npos);
    }

    void withRatesTheFastestThatFitsIsTakenAndSaysWhy()
    {
        RunSpec spec = usable();
        put(spec, slowHost());
        Result<PlanReport> all = planRun(spec);
        QVERIFY2(all.ok(), all.status().message().c_str());
        QCOMPARE(all.value().policy, std::string("resident"));

        spec.deviceMemoryBytes = all.value().tiers[0].totalBytes * 6 / 10;
        Result<PlanReport> report = planRun(spec);

        QVERIFY2(report.ok(), report.status().message().c_str());
        QVERIFY(report.value().fits);
        QCOMPARE(report.value().policy, std::string("deep-optimizer-states"));
        QVERIFY(report.value().predictedStepMs > 0.0);
        double sum = report.value().predictedComputeMs;
        for (const double stall : report.value().predictedStallMs)
            sum += stall;
        QVERIFY(std::abs(sum - report.value().predictedStepMs) < 1e-6 * sum);
        QVERIFY(report.value().reason.find("the fastest that fits") != std::string::npos);
        bool saysMore = false;
        for (const std::string& advice : report.value().advice)
            saysMore = saysMore || advice.find("the speed") != std::string::npos;
        QVERIFY(saysMore); // more device memory would be faster here
    }

    // The device is short of a few bytes of activations. Norms and activations cost little to make
    // again, and blocks a third of the work; state on the host would wait for its update.
    void cheapRecomputationIsChosenWhereItIsEnough()
    {
        RunSpec spec = usable();
        Feedback rates = slowHost();
        rates.deviceFlopsPerSecond = 1e11;
        put(spec, rates);
        spec.policy = "resident";
        spec.recompute = RecomputeChoice::None;
        const PlanReport all = planRun(spec).value();
        spec.recompute = RecomputeChoice::Cheap;
        const PlanReport cheap = planRun(spec).value();
        spec.recompute = RecomputeChoice::Block;
        const PlanReport block = planRun(spec).value();
        const auto deviceBytes = [](const PlanReport& plan) { return plan.tiers[0].totalBytes; };
        QVERIFY(deviceBytes(block) < deviceBytes(cheap) && deviceBytes(cheap) < deviceBytes(all));
        QVERIFY(all.predictedStepMs < cheap.predictedStepMs);
        QVERIFY(cheap.predictedStepMs < block.predictedStepMs);

        spec.policy = "auto";
        spec.recompute = RecomputeChoice::Auto;
        const auto chosen = [&](std::uint64_t memory) {
            spec.deviceMemoryBytes = memory;
            return planRun(spec).value();
        };
        const PlanReport report = chosen(deviceBytes(all) - 1);

        QCOMPARE(report.recompute, std::string("cheap"));
        QCOMPARE(report.policy, std::string("resident"));
        QVERIFY2(report.reason.find("resident, recompute cheap, ") != std::string::npos,
            report.reason.c_str());
        QCOMPARE(resolveSpec(spec, 10).value().recompute, RecomputeChoice::Cheap);
        spec.policy = "resident";
        QCOMPARE(chosen(deviceBytes(all)).recompute, std::string("none"));
        QCOMPARE(chosen(deviceBytes(cheap)).recompute, std::string("cheap"));
        QCOMPARE(chosen(deviceBytes(cheap) - 1).recompute, std::string("block"));
    }

    // Weights leave the device; what they leave goes to activations where rates say that it pays.
    void streamedWeightsMakeRoomForActivations()
    {
        RunSpec spec = usable();
        spec.seqLen = 16;
        Feedback rates = slowHost();
        rates.deviceFlopsPerSecond = 1e9; // the link never waits
        rates.hostAdamwElementsPerSecond = 1e10;
        put(spec, rates);
        spec.policy = "streamed";
        spec.recompute = RecomputeChoice::Cheap;
        spec.policyOptions = {{"boundary", "device"}, {"weights-on-device", "0"}};
        spec.deviceMemoryBytes = planRun(spec).value().tiers[0].totalBytes;
        spec.policy = "auto";
        spec.policyOptions.clear();
        spec.recompute = RecomputeChoice::Auto;

        const PlanReport known = planRun(spec).value();

        QVERIFY2(known.fits, known.limit.c_str());
        QCOMPARE(known.policy, std::string("streamed"));
        QCOMPARE(known.recompute, std::string("cheap"));
        QVERIFY(QFile::remove(QString::fromStdString(RateCache::defaultPath().string())));
        QCOMPARE(planRun(spec).value().recompute, std::string("block"));
    }

    void whatDoesNotFitIsAdvisedToRecomputeAsLittleAsIsEnough()
    {
        RunSpec spec = usable();
        spec.policy = "resident";
        const auto deviceBytes = [&](RecomputeChoice how) {
            spec.recompute = how;
            return planRun(spec).value().tiers[0].totalBytes;
        };
        const std::uint64_t cheap = deviceBytes(RecomputeChoice::Cheap);
        const std::uint64_t none = deviceBytes(RecomputeChoice::None);
        const auto says = [&](std::uint64_t memory, const char* words) {
            spec.deviceMemoryBytes = memory;
            const PlanReport plan = planRun(spec).value();
            return std::ranges::any_of(plan.advice,
                [&](const auto& advice) { return advice.find(words) != std::string::npos; });
        };

        QVERIFY(says(none - 1, "recompute cheap") && !says(none - 1, "recompute block"));
        QVERIFY(says(cheap - 1, "recompute block") && !says(cheap - 1, "recompute cheap"));
        spec.recompute = RecomputeChoice::Cheap;
        QVERIFY(says(cheap - 1, "recompute block"));
    }

    // Where AdamW fits, and in what the others need alone.
    void lighterWaysAreOfferedWhereAdamwDoesNotFit()
    {
        RunSpec spec = usable();
        spec.precision = PrecisionChoice::BF16;
        spec.steps = 240; // two rounds of blocks in turn
        spec.policy = "zero-offload";
        const PlanReport whole = planRun(spec).value();
        QVERIFY(whole.fits && whole.lighter.empty());
        spec.policyOptions["late"] = "0.5"; // not of a light optimizer, so a way leaves it out
        spec.hostMemoryBytes = static_cast<std::int64_t>(whole.tiers[1].totalBytes / 2);

        const PlanReport plan = planRun(spec).value();

        QVERIFY(!plan.fits && plan.lighter.size() == 4);
        QVERIFY(plan.lighter[0].compactState);
        QVERIFY(plan.lighter[1].optimizer == Optimizer::Factored);
        QVERIFY(plan.lighter[2].weights == WeightFormat::Random16);
        QVERIFY(plan.lighter[3].blocks);
        for (const LighterWay& way : plan.lighter) {
            const PlanReport taken = planRun(withLighterWay(spec, way)).value();
            QVERIFY2(taken.fits, taken.limit.c_str());
            QCOMPARE(taken.policy, way.policy);
            QCOMPARE(taken.diskWriteBytesPerStep, std::int64_t{0});
        }
    }

    void aBookWithoutCheapSecondsHasThemEstimated()
    {
        RunSpec spec = usable();
        spec.policy = "resident";
        spec.recompute = RecomputeChoice::Cheap;
        Feedback rates = slowHost();
        rates.block = {0.01, 0.02, 0.01};
        put(spec, rates);
        const RunSetup old = setUpRun(spec, 10).value();
        QCOMPARE(old.rates.block.recompute, 0.01);
        QCOMPARE(old.rates.block.cheap, estimatedCheapSeconds(old.shape, rates));
        QVERIFY(old.rates.block.cheap > 0.0);
        rates.block.cheap = 0.002;
        put(spec, rates);
        QCOMPARE(setUpRun(spec, 10).value().rates.block.cheap, 0.002);
    }

    void aThirdOfWhatResidentNeedsIsEnough_data()
    {
        QTest::addColumn<bool>("full");
        QTest::addColumn<bool>("known");
        for (const bool full : {false, true})
            for (const bool known : {false, true})
                QTest::addRow("%s, rates %s", full ? "fp32" : "bf16", known ? "known" : "not known")
                    << full << known;
    }

    void aThirdOfWhatResidentNeedsIsEnough()
    {
        QFETCH(const bool, full);
        QFETCH(const bool, known);
        RunSpec spec = usable();
        spec.precision = full ? PrecisionChoice::F32 : PrecisionChoice::BF16;
        if (known)
            put(spec, slowHost());
        spec.policy = "resident";
        Result<PlanReport> resident = planRun(spec);
        QVERIFY2(resident.ok(), resident.status().message().c_str());

        spec.policy = "auto";
        spec.deviceMemoryBytes = resident.value().tiers[0].totalBytes / 3;
        Result<PlanReport> report = planRun(spec);

        QVERIFY2(report.ok(), report.status().message().c_str());
        QVERIFY2(report.value().fits, report.value().limit.c_str());
        QVERIFY(report.value().exact);
        QVERIFY(report.value().reason.find(report.value().policy) != std::string::npos);

        // Where zero-offload does not fit, the run streams.
        spec.deviceMemoryBytes = report.value().tiers[0].totalBytes * 8 / 10;
        report = planRun(spec);
        QVERIFY2(report.ok(), report.status().message().c_str());
        QVERIFY2(report.value().fits, report.value().limit.c_str());
        QCOMPARE(report.value().policy, std::string("streamed"));
    }

    void whatWasChosenIsWhatAResolvedSpecKeeps()
    {
        RunSpec spec = usable();
        put(spec, slowHost());
        spec.policy = "deep-optimizer-states";

        Result<RunSpec> resolved = resolveSpec(spec, 10);

        QVERIFY2(resolved.ok(), resolved.status().message().c_str());
        const std::string share = resolved.value().policyOptions.at("device-share");
        QVERIFY(std::stod(share) > 0.9);
        Result<RunSpec> again = resolveSpec(resolved.value(), 10);
        QVERIFY(again.ok());
        QCOMPARE(toJson(again.value()), toJson(resolved.value()));
    }

    void anIntervalThatTheRunWillChooseIsPlannedWithAStandIn()
    {
        RunSpec spec = usable();
        spec.policy = "zenflow";
        spec.policyOptions = {{"interval", "4"}};
        const PlanReport known = planRun(spec).value();
        spec.policyOptions = {{"interval", "magnitude"}};

        Result<PlanReport> report = planRun(spec);
        Result<RunSpec> resolved = resolveSpec(spec, 10);

        QVERIFY2(report.ok(), report.status().message().c_str());
        QCOMPARE(report.value().tiers[0].totalBytes, known.tiers[0].totalBytes);
        QCOMPARE(report.value().tiers[1].totalBytes, known.tiers[1].totalBytes);
        const auto says = [](const PlanReport& plan) {
            return std::any_of(plan.advice.begin(), plan.advice.end(), [](const auto& advice) {
                return advice.find("those of windows of 4 steps") != std::string::npos;
            });
        };
        QVERIFY(says(report.value()));
        QVERIFY(!says(known));
        QCOMPARE(resolved.value().policyOptions.at("interval"), std::string("magnitude"));
        QCOMPARE(resolved.value().policyOptions.at("energy"), std::string("l1"));
    }

    // A step moves the same bytes from and to the disk however many micro-batches it has.
    void howManyTokensHideTheDiskIsSaid()
    {
        RunSpec spec = usable();
        spec.policy = "ssd-vertical";
        spec.clipNorm = 0.0; // updates begin beside backward
        spec.diskPaths = {m_folder->path().toStdString()};
        spec.diskBytes = std::uint64_t{1} << 40;
        Feedback fast = slowHost();
        fast.hostAdamwElementsPerSecond = 1e10;
        fast.deviceFlopsPerSecond = 1e11;
        put(spec, fast);
        const auto adviceWith = [&](double bytesPerSecond) {
            RateCache cache = RateCache::load(RateCache::defaultPath());
            cache.putDisk(rateKey(inspectScratchFolder(spec.diskPaths.front()).value()),
                {bytesPerSecond, bytesPerSecond, bytesPerSecond, bytesPerSecond});
            (void)cache.save(RateCache::defaultPath()).ok();
            const PlanReport plan = planRun(spec).value();
            const auto said = std::find_if(plan.advice.begin(), plan.advice.end(),
                [](const std::string& a) { return a.find("is hidden") != std::string::npos; });
            return said == plan.advice.end() ? std::string() : *said;
        };

        const std::string slow = adviceWith(1e9);

        QVERIFY2(slow.find("micro-batches a step") != std::string::npos, slow.c_str());
        QVERIFY(adviceWith(1e13).empty());
    }

    void clippingByGroupIsPlannedAndSaysWhatItIs()
    {
        const auto says = [](const RunSpec& spec) {
            const PlanReport plan = planRun(spec).value();
            const bool isSaid =
                std::any_of(plan.advice.begin(), plan.advice.end(), [](const auto& advice) {
                    return advice.find("not those of clip-mode=exact") != std::string::npos;
                });
            if (plan.exact == isSaid)
                qFatal("what is said is not what the report has");
            return isSaid;
        };
        RunSpec spec = usable();
        spec.policy = "zero-offload";
        spec.policyOptions = {{"clip-mode", "exact"}};
        QVERIFY(!says(spec));
        spec.policyOptions = {{"clip-mode", "per-group"}};
        QVERIFY(says(spec));
        QCOMPARE(planRun(spec).value().inexactBy, std::string("clip-mode=per-group"));
        Result<RunSpec> resolved = resolveSpec(spec, 10);
        QVERIFY2(resolved.ok(), resolved.status().message().c_str());
        QCOMPARE(resolved.value().policyOptions.at("clip-mode"), std::string("per-group"));
        spec.clipNorm = 0.0; // nothing is clipped
        QVERIFY(!says(spec));
    }

    void flippedSumsAreSaidToBeInexact()
    {
        RunSpec spec = usable();
        spec.policy = "streamed";
        spec.recompute = RecomputeChoice::Block;
        for (const char* order : {"by-microbatch", "by-layer", "by-layer-flip"}) {
            spec.policyOptions = {{"order", order}};

            const PlanReport plan = planRun(spec).value();

            const bool flips = std::string_view(order) == "by-layer-flip";
            QCOMPARE(plan.exact, !flips);
            QCOMPARE(plan.inexactBy, std::string(flips ? "order=by-layer-flip" : ""));
            QCOMPARE(std::any_of(plan.advice.begin(), plan.advice.end(),
                         [](const auto& advice) {
                             return advice.find("sums its gradients from the last") !=
                                    std::string::npos;
                         }),
                flips);
        }
    }

    void aRunOfStepsAloneCannotChooseAnInterval()
    {
        PlainRunSpec spec;
        spec.config = readModelConfig(usable().scratchConfig).value();
        spec.micro = {16, 1, 1, DType::F32};
        spec.policy = "zenflow";
        QVERIFY(PlainRun::plan(spec).ok());
        spec.options = {{"interval", "magnitude"}};

        const auto plan = PlainRun::plan(spec);

        QVERIFY(!plan.ok());
        QVERIFY2(plan.status().message().find("give a number of steps") != std::string::npos,
            plan.status().message().c_str());
    }

    void policiesAndOptionsThatDoNotExistAreRefusedByName_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<QString>("option");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("words");
        const auto row = [](const char* policy, const char* option, const char* value,
                             const char* words) {
            QTest::addRow("%s %s=%s", policy, option, value)
                << QString::fromUtf8(policy) << QString::fromUtf8(option)
                << QString::fromUtf8(value) << QString::fromUtf8(words);
        };
        row("zeroff", "", "", "is not known");
        row("resident", "urgent", "0.1", "is not of this policy");
        row("auto", "ugrent", "0.1", "is not known");
        row("zero-offload", "clip-mode", "previous-norm", "are of light optimizers");
        row("zenflow", "clip-mode", "per-group", "clipped by the norm of all groups");
        row("zero-offload", "late", "1.5", "want a share from 0 to 1");
        row("zero-offload", "device-share", "0.5", "is not of this policy");
        row("deep-optimizer-states", "device-share", "half", "or auto");
        row("deep-optimizer-states", "tile", "1KiB", "want 2KiB to 16GiB");
        row("resident", "state", "half", "want fp32 or compact");
        row("zenflow", "state", "bf16", "want fp32 or compact");
        row("zenflow", "interval", "sometimes", "auto or magnitude");
        row("resident", "interval", "magnitude", "is not of this policy");
    }

    void policiesAndOptionsThatDoNotExistAreRefusedByName()
    {
        QFETCH(QString, policy);
        QFETCH(QString, option);
        QFETCH(QString, value);
        QFETCH(QString, words);
        RunSpec spec = usable();
        spec.policy = policy.toStdString();
        if (!option.isEmpty())
            spec.policyOptions[option.toStdString()] = value.toStdString();

        const Status status = planRun(spec).status();

        QCOMPARE(status.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(status.message().find(words.toStdString()) != std::string::npos,
            status.message().c_str());
    }

    void compactStateNeedsBf16AndTakesLessMemory_data()
    {
        QTest::addColumn<QString>("policy");
        for (const char* policy : {"zero-offload", "zenflow", "zero-offload-dpu"})
            QTest::newRow(policy) << QString::fromUtf8(policy);
    }

    void compactStateNeedsBf16AndTakesLessMemory()
    {
        QFETCH(QString, policy);
        RunSpec spec = usable();
        spec.policy = policy.toStdString();
        const PlanReport plain = planRun(spec).value();
        spec.policyOptions["state"] = "compact";

        const PlanReport compact = planRun(spec).value();
        spec.precision = PrecisionChoice::F32;
        const Status refused = planRun(spec).status();

        QVERIFY(compact.tiers[1].totalBytes < plain.tiers[1].totalBytes);
        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY(refused.message().find("state=compact needs precision bf16") != std::string::npos);
    }

    void layersAndSharedBytesAddUpToTheTiers()
    {
        for (const char* policy : {"resident", "zero-offload"}) {
            RunSpec spec = usable();
            spec.policy = policy;

            const PlanReport report = planRun(spec).value();

            QCOMPARE(report.groups.size(), std::size_t{9}); // embedding, 6 blocks, head, shared
            QCOMPARE(report.groups[1].name, std::string("block 0"));
            QCOMPARE(report.groups.back().name, std::string("shared"));
            for (const PlanTier& tier : report.tiers) {
                std::uint64_t sum = 0;
                for (const PlanGroup& group : report.groups) {
                    for (const PlanGroupBytes& part : group.bytes)
                        sum += part.tier == tier.tier ? part.bytes : 0;
                }
                QCOMPARE(sum, tier.totalBytes);
            }
        }
    }

    void ratesAreMeasuredFromRealSteps()
    {
        Result<RunSpec> resolved = resolveSpec(usable(), 10);
        QVERIFY(resolved.ok());
        Result<RateSubject> subject = subjectOf(resolved.value());
        QVERIFY(subject.ok());
        QVERIFY(!subject.value().standIn);
        CpuDeviceOptions options;
        options.memoryBytes = subject.value().deviceBytes;
        options.mode = CpuDeviceOptions::Mode::Threaded;
        Result<std::unique_ptr<Device>> device = makeCpuDevice(options);
        QVERIFY(device.ok());

        Result<Feedback> rates = measureRates(*device.value(), subject.value());

        QVERIFY2(rates.ok(), rates.status().message().c_str());
        QVERIFY(rates.value().hostToDeviceBytesPerSecond > 0.0);
        QVERIFY(rates.value().deviceToHostBytesPerSecond > 0.0);
        QVERIFY(rates.value().hostAdamwElementsPerSecond > 0.0);
        QVERIFY(rates.value().deviceAdamwElementsPerSecond > 0.0);
        QVERIFY(rates.value().deviceFlopsPerSecond > 0.0);
        QVERIFY(rates.value().block.forward > 0.0);
        QVERIFY(rates.value().block.backward > 0.0);
        QVERIFY(rates.value().head.backward > 0.0);
    }

    void aModelTooLargeToTryIsStoodInFor()
    {
        Result<RunSpec> resolved = resolveSpec(usable(), 10);
        QVERIFY(resolved.ok());
        MachineInfo small = inspectMachine();
        small.availableBytes = 1 << 20;
        auto config = readModelConfig(resolved.value().scratchConfig);
        QVERIFY(config.ok());

        Result<RateSubject> subject = rateSubject(resolved.value(), config.value(), small);

        QVERIFY(subject.ok());
        QVERIFY(subject.value().standIn);
        QVERIFY(subject.value().key.find("stand-in") != std::string::npos);
    }

private:
    RunSpec usable() const
    {
        RunSpec spec;
        spec.scratchConfig = m_folder->filePath(QStringLiteral("config.json")).toStdString();
        spec.scratchTokenizer = "tokenizer.model";
        spec.data.push_back({"data.txt", DataFormat::Text, {}});
        spec.device = DeviceChoice::Cpu;
        spec.precision = PrecisionChoice::BF16;
        spec.seqLen = 64;
        spec.steps = 10;
        return spec;
    }

    // A run on the device alone, with rates that predict 100 times the time of its steps.
    Result<RunSetup> slowlyForetold()
    {
        RunSpec spec = usable();
        spec.policy = "resident";
        Feedback slow = slowHost();
        slow.deviceFlopsPerSecond = 1e9;
        put(spec, slow);
        return setUpRun(spec, 10);
    }

    static Result<RateSubject> subjectOf(const RunSpec& resolved)
    {
        auto config = readModelConfig(resolved.scratchConfig);
        if (!config.ok())
            return config.status();
        return rateSubject(resolved, config.value(), inspectMachine());
    }

    void put(const RunSpec& spec, const Feedback& rates)
    {
        RunSpec plain = spec;
        plain.policy = "resident";
        Result<RunSpec> resolved = resolveSpec(plain, 10);
        QVERIFY2(resolved.ok(), resolved.status().message().c_str());
        Result<RateSubject> subject = subjectOf(resolved.value());
        QVERIFY(subject.ok());
        RateCache cache;
        cache.put(subject.value().key, rates);
        QVERIFY(cache.save(RateCache::defaultPath()).ok());
    }

    std::unique_ptr<QTemporaryDir> m_folder;
};

MR_TEST_WITH_APP(TestPlanner)

} // namespace mr::test::tst_planner

#include "tst_planner.moc"
