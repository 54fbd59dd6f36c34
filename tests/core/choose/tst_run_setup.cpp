// Budgets of host memory on machines that are made up: what is chosen, what is believed, and the
// words where a run does not fit.

#include "core/choose/replan.h"
#include "core/choose/run_setup.h"
#include "support/test_room.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <memory>

namespace mr::test::tst_run_setup {

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// 6 million parameters: with zero-offload the host holds some 100 MiB.
constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "hidden_act": "silu", "torch_dtype": "bfloat16"})";

// A virtual machine that gets memory as it uses it.
MachineInfo growing()
{
    MachineInfo machine = inspectMachine();
    machine.memoryBytes = 94 * kGiB;
    machine.availableBytes = 20 * kMiB;
    machine.memoryIsLimited = false;
    return machine;
}

bool has(const std::string& text, const char* words)
{
    if (text.find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, text.c_str());
    return false;
}

bool isBelieved(const RunSetup& setup)
{
    const PlanReport report = reportOf(setup);
    return std::any_of(report.advice.begin(), report.advice.end(),
        [](const std::string& advice) { return advice.find("is believed") != std::string::npos; });
}

} // namespace

class TestRunSetup : public QObject
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

    void aChosenBudgetGoesByWhatIsAvailable()
    {
        const RunSetup setup = setUp(spec(), growing());

        QCOMPARE(setup.spec.hostMemoryBytes, 5 * kMiB);
        QVERIFY(has(setup.limit, "host memory: needs "));
        QVERIFY(has(setup.limit, "the budget is 5.0 MiB, "));
        QVERIFY(has(setup.limit, "; this machine has 94.0 GiB of memory, 20.0 MiB of it available; "
                                 "--host-memory gives another budget"));
        QVERIFY(!isBelieved(setup));
    }

    void aBudgetThatTheUserGivesIsBelieved()
    {
        RunSpec asked = spec();
        asked.hostMemoryBytes = 100 * kGiB;

        const RunSetup setup = setUp(asked, growing());

        QVERIFY2(setup.limit.empty(), setup.limit.c_str());
        QCOMPARE(setup.budget.hostBytes, std::size_t{100 * kGiB});
        QVERIFY(isBelieved(setup));
        QVERIFY(has(believedBudget(setup), "The host memory budget of 100.0 GiB is believed"));
    }

    void memoryThatIsThereNeedsNoBelief()
    {
        RunSpec asked = spec();
        asked.hostMemoryBytes = 100 * kGiB;
        MachineInfo machine = growing();
        machine.availableBytes = kGiB;

        QVERIFY(!isBelieved(setUp(asked, machine)));
    }

    void theLimitOfAControlGroupIsNamed()
    {
        MachineInfo machine = growing();
        machine.memoryBytes = 30 * kMiB;
        machine.memoryIsLimited = true;

        QVERIFY(has(setUp(spec(), machine).limit,
            "the control group of this program may use 30.0 MiB of memory"));
    }

    void anotherPlanNamesTheMachineToo()
    {
        RunSpec asked = spec();
        asked.hostMemoryBytes = 100 * kGiB;
        const RunSetup before = setUp(asked, growing());

        const auto next =
            replan(before, {Tier::PinnedHost, std::size_t{1 * kMiB}}, ReplanScope::SamePolicy);

        QVERIFY(next.status().kind() == ErrorKind::OutOfMemory);
        QVERIFY(has(next.status().message(), "this machine has 94.0 GiB of memory"));
    }

private:
    RunSpec spec() const
    {
        RunSpec spec;
        spec.scratchConfig = m_folder->filePath(QStringLiteral("config.json")).toStdString();
        spec.scratchTokenizer = "tokenizer.model";
        spec.data.push_back({"data.txt", DataFormat::Text, {}});
        spec.device = DeviceChoice::Cpu;
        spec.policy = "zero-offload";
        spec.deviceMemoryBytes = kGiB;
        spec.seqLen = 64;
        spec.steps = 10;
        return spec;
    }

    static RunSetup setUp(const RunSpec& spec, const MachineInfo& machine)
    {
        auto setup = setUpRun(spec, 10, machine);
        if (!setup.ok())
            qFatal("%s", setup.status().message().c_str());
        return std::move(setup).value();
    }

    std::unique_ptr<QTemporaryDir> m_folder;
};

MR_TEST_WITH_APP(TestRunSetup)

} // namespace mr::test::tst_run_setup

#include "tst_run_setup.moc"
