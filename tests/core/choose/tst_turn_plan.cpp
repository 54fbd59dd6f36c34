// Plans of runs in which blocks take turns, and what models of 8B and 14B need by light optimizers
// and in turns.

#include "core/choose/run_setup.h"
#include "core/plan/turn_memory.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <set>

namespace mr::test::tst_turn_plan {

namespace {

constexpr std::uint64_t kGb = 1'000'000'000;

// Planned from its config alone.
RunSpec specOf(const char* model, std::uint64_t device, double host)
{
    RunSpec spec;
    spec.scratchConfig =
        qEnvironmentVariable("MILLRACE_SOURCE").toStdString() + "/tests/bench/configs/" + model;
    spec.precision = PrecisionChoice::BF16;
    spec.device = DeviceChoice::Cpu;
    spec.seqLen = 1024;
    spec.accumulate = 8;
    spec.steps = 2000;
    spec.deviceMemoryBytes = device * kGb;
    spec.hostMemoryBytes = static_cast<std::uint64_t>(host * 1e9);
    return spec;
}

RunSpec inTurns(RunSpec spec)
{
    spec.train = TrainOrder::Blocks;
    return spec;
}

} // namespace

class TestTurnPlan : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        QVERIFY(m_folder->isValid());
        qputenv("XDG_DATA_HOME", m_folder->path().toUtf8()); // no rates of this machine
    }

    void fourteenBillionTakeTurnsInThirtyTwoGigabytes()
    {
        RunSpec spec = specOf("qwen3-14b.json", 16, 27.5);
        QVERIFY(!planRun(spec).value().fits);

        const PlanReport plan = planRun(inTurns(spec)).value();

        QVERIFY2(plan.fits, plan.limit.c_str());
        QCOMPARE(plan.method, std::string("blocks"));
        QCOMPARE(plan.diskWriteBytesPerStep, std::int64_t{0});
        QCOMPARE(plan.d2hBytesPerStep, std::int64_t{512}); // losses; no weight goes back
        // The blocks but the embedding's and the head's two matrices.
        QCOMPARE(plan.trainedParameters, plan.parameters - 2 * 151'936 * 5120LL - 5120);
    }

    void eightBillionTrainLightOnTwelveGigabytes()
    {
        RunSpec spec = specOf("qwen3-8b.json", 12, 27.5);
        spec.optimizer = Optimizer::Factored;
        const PlanReport plan = planRun(spec).value();
        QVERIFY2(plan.fits, plan.limit.c_str());
        QVERIFY(plan.tiers[1].totalBytes < 275 * kGb / 10);
    }

    // Embedding and head, 2.5 GB, come by rows and tiles where the device is small, and only there.
    void eightBillionTrainLightOnSixGigabytes()
    {
        RunSpec spec = specOf("qwen3-8b.json", 6, 27.5);
        spec.optimizer = Optimizer::Factored;
        const RunSetup setup = setUpRun(spec, 0).value();
        QVERIFY2(setup.limit.empty(), setup.limit.c_str());
        QVERIFY(setup.numbers.vocabulary == Tier::PinnedHost);
        QVERIFY(setup.reason.find("vocabulary=host") != std::string::npos);
        QCOMPARE(setup.diskTraffic.writtenBytes, 0.0);
        for (const GroupId end : {GroupId{0}, GroupId{37}})
            for (const MemoryItem& item : setup.memory.items)
                QVERIFY(item.group != end || item.use != MemoryUse::Weights);
        spec.deviceMemoryBytes = 8 * kGb;
        QVERIFY(!setUpRun(spec, 0).value().numbers.vocabulary);
        spec.policy = "streamed";
        spec.policyOptions = {{"vocabulary", "device"}};
        spec.deviceMemoryBytes = 6 * kGb;
        QVERIFY(!setUpRun(spec, 0).value().limit.empty());
    }

    // The nearest to AdamW that fits; nothing is taken unasked, or where a policy was asked for.
    void anotherOptimizerIsTakenWhereThatIsAllowed_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("device");
        QTest::addColumn<QString>("taken");
        QTest::newRow("AdamW fits") << "qwen2.5-1.5b.json" << 16 << "adamw fp32 together";
        QTest::newRow("compact") << "qwen3-4b.json" << 16 << "adamw fp32 together compact";
        QTest::newRow("24 bits") << "qwen3-8b.json" << 12 << "factored 24bit together";
        QTest::newRow("16 bits") << "qwen3-14b.json" << 16 << "factored bf16-random together";
        QTest::newRow("blocks") << "qwen3-14b.json" << 12 << "adamw fp32 blocks";
    }

    void anotherOptimizerIsTakenWhereThatIsAllowed()
    {
        QFETCH(QString, model);
        QFETCH(int, device);
        QFETCH(QString, taken);
        const double host = taken.endsWith(QLatin1String("compact")) ? 40.0 : 27.5;
        RunSpec spec =
            specOf(model.toStdString().c_str(), static_cast<std::uint64_t>(device), host);
        if (taken.endsWith(QLatin1String("blocks"))) // what memory lacks is read from its files
            std::swap(spec.modelDir, spec.scratchConfig);
        const RunSetup asked = setUpRun(spec, 0).value();
        const bool fits = asked.limit.empty();
        QCOMPARE(fits, taken == QLatin1String("adamw fp32 together"));
        QVERIFY(asked.spec.optimizer == Optimizer::AdamW && !trainsInTurns(asked.spec));
        spec.allowOther = true;

        const RunSetup setup = setUpRun(spec, 0).value();

        QVERIFY2(setup.limit.empty(), setup.limit.c_str());
        QStringList words;
        for (const std::string_view word :
            {name(setup.spec.optimizer), name(setup.spec.weights), name(setup.spec.train)})
            words << QString::fromStdString(std::string(word));
        if (setup.spec.policyOptions.contains("state"))
            words << QString::fromStdString(setup.spec.policyOptions.at("state"));
        QCOMPARE(words.join(QLatin1Char(' ')), taken);
        QCOMPARE(setup.diskTraffic.writtenBytes, 0.0);
        QCOMPARE(setup.reason.starts_with("AdamW as it is does not fit, so "), !fits);
        // Its record is resolved to the same run.
        const RunSetup again = setUpRun(setup.spec, 0).value();
        QCOMPARE(toJson(again.spec), toJson(setup.spec));
        spec.policy = "zero-offload";
        QCOMPARE(setUpRun(spec, 0).value().limit.empty(), fits);
    }

    // One allocation serves all turns, whichever group is trained.
    void everyTurnFitsTheBytesOfTheRun_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<QString>("layers");
        for (const char* policy : {"resident", "streamed", "ssd-vertical"})
            for (const char* layers : {"", "3-6,head"})
                QTest::addRow("%s %s", policy, layers) << policy << layers;
    }

    void everyTurnFitsTheBytesOfTheRun()
    {
        QFETCH(QString, policy);
        QFETCH(QString, layers);
        RunSpec spec = inTurns(specOf("qwen3-8b.json", 128, 128.0));
        spec.policy = policy.toStdString();
        spec.trainLayers = layers.toStdString();
        spec.diskPaths = {m_folder->path().toStdString()};
        spec.diskBytes = 100 * kGb;
        RunSetup setup = setUpRun(spec, 0).value();
        QVERIFY2(setup.limit.empty(), setup.limit.c_str());
        const MemoryPlan first = setup.memory;
        const std::vector<GroupId> groups = setup.turns.schedule.groups;
        QVERIFY(groups.size() > 3);
        for (const GroupId group : groups) {
            QVERIFY(takeTurn(setup, group).ok());
            const MemoryPlan& now = setup.memory;
            QCOMPARE(now.items.size(), first.items.size());
            for (std::size_t i = 0; i < now.items.size(); ++i)
                QCOMPARE(now.items[i].bytes, first.items[i].bytes);
            const MemoryPlan alone =
                planMemory(setup.step, setup.shape, setup.budget, setup.rates, setup.policy)
                    .value();
            for (const MemoryItem& item : alone.items) {
                const auto held = std::ranges::find_if(now.items, [&](const MemoryItem& other) {
                    return other.tier == item.tier && other.use == item.use &&
                           other.group == item.group;
                });
                QVERIFY(held != now.items.end());
                QVERIFY(held->bytes >= item.bytes);
            }
        }
    }

    // State that goes from turn to turn belongs to no group.
    void theMapOfMemoryHasOneSetOfStateForAll()
    {
        const PlanReport plan = planRun(inTurns(specOf("qwen2.5-1.5b.json", 64, 64.0))).value();
        std::set<std::string> kinds;
        for (const PlanGroup& group : plan.groups)
            for (const auto& bytes : group.bytes)
                if (group.name != "shared")
                    kinds.insert(bytes.kind);
        QCOMPARE(kinds, (std::set<std::string>{"frozen weights"}));
        QVERIFY(std::ranges::any_of(plan.advice, [](const std::string& text) {
            return text.starts_with("28 blocks take turns of 35 steps, so a round has 980 and the "
                                    "run 2.0 rounds.");
        }));
    }

private:
    std::unique_ptr<QTemporaryDir> m_folder;
};

MR_TEST(TestTurnPlan)

} // namespace mr::test::tst_turn_plan

#include "tst_turn_plan.moc"
