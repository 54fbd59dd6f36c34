// Whole runs of models whose blocks differ: with a state, with windows, without rotary positions,
// within a model that sees. Stopped and resumed under other policies they have the bits of
// `resident`; optimizers with little state, adapters, packed rows and answers are those of other
// models.

#include "core/run/changed_model.h"
#include "core/run/gemma4_models.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <bit>
#include <nlohmann/json.hpp>

namespace mr::test::tst_family_runs {

namespace {

using nlohmann::json;

// Qwen 3.5: two blocks with a state, one of attention with gates.
json stateConfig()
{
    return {{"architectures", {"Qwen3_5ForCausalLM"}}, {"model_type", "qwen3_5_text"},
        {"num_hidden_layers", 3}, {"full_attention_interval", 2}, {"head_dim", 8},
        {"linear_num_key_heads", 2}, {"linear_num_value_heads", 4}, {"linear_key_head_dim", 8},
        {"linear_value_head_dim", 12}, {"partial_rotary_factor", 0.5}, {"initializer_range", 0.2}};
}

// OLMo 3: norms behind branches and of whole rows, two ropes.
json rowNormConfig()
{
    return {{"architectures", {"Olmo3ForCausalLM"}}, {"model_type", "olmo3"},
        {"num_hidden_layers", 4}, {"sliding_window", 5}, {"initializer_range", 0.2}};
}

// SmolLM3: one layer without rotary positions.
json stillConfig()
{
    return {{"architectures", {"SmolLM3ForCausalLM"}}, {"model_type", "smollm3"},
        {"num_hidden_layers", 3}, {"no_rope_layer_interval", 3}, {"initializer_range", 0.2}};
}

json configOf(const QString& name)
{
    if (name == QStringLiteral("state"))
        return stateConfig();
    if (name == QStringLiteral("keys as values"))
        return keysAsValuesConfig();
    if (name == QStringLiteral("own inputs"))
        return inputsConfig();
    return name == QStringLiteral("row norms") ? rowNormConfig() : stillConfig();
}

void addModels()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"state", "row norms", "still", "keys as values", "own inputs"})
        QTest::newRow(name) << QString(name);
}

struct Way {
    const char* name;
    const char* policy;
    std::map<std::string, std::string> options = {};
    RecomputeChoice recompute = RecomputeChoice::None;
    bool pack = false;
    PrecisionChoice precision = PrecisionChoice::BF16;
};

const Way kWays[] = {
    {"offloaded", "zero-offload", {{"late", "0.3"}}, RecomputeChoice::Cheap},
    {"streamed", "streamed", {{"tile", "4KiB"}}, RecomputeChoice::Block, true},
    {"from disk", "ssd-vertical", {{"tile", "4KiB"}, {"order", "by-layer"}}, RecomputeChoice::Block,
        true, PrecisionChoice::F32},
};

} // namespace

class TestFamilyRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aStoppedRunGoesOnWithTheBitsOfResident_data() { addModels(); }
    void aStoppedRunGoesOnWithTheBitsOfResident();
    void optimizersWithLittleStateTrainThem_data() { addModels(); }
    void optimizersWithLittleStateTrainThem();
    void anAdapterOnEveryModuleStreamsWithTheBitsOfResident_data() { addModels(); }
    void anAdapterOnEveryModuleStreamsWithTheBitsOfResident();
    void rowsOfTheFileGiveTheLossOfATableThatIsTrained_data();
    void rowsOfTheFileGiveTheLossOfATableThatIsTrained();
    void answersFromMemoryAreThoseOfTheWholeText_data();
    void answersFromMemoryAreThoseOfTheWholeText();

private:
    RunSpec spec(const std::string& name, const ChangedModel& model, const Way& way) const
    {
        RunSpec spec = m_rig.spec(name);
        spec.modelDir = model.folder.path();
        spec.precision = way.precision;
        spec.pack = way.pack;
        spec.recompute = way.recompute;
        spec.accumulate = 3;
        return spec;
    }

    RunSpec plain(const std::string& name, const ChangedModel& model, const Way& way) const
    {
        RunSpec spec = this->spec(name + " plain", model, way);
        spec.policy = "resident";
        spec.recompute = RecomputeChoice::None;
        return spec;
    }

    RunRig m_rig;
    Folder m_scratch;
    std::unique_ptr<Device> m_device = smallDevice();
};

void TestFamilyRuns::aStoppedRunGoesOnWithTheBitsOfResident()
{
    QFETCH(QString, name);
    const ChangedModel model(configOf(name));
    for (const Way& way : kWays) {
        const std::string run = name.toStdString() + " " + way.name;
        const Outcome whole = m_rig.train(plain(run, model, way), *m_device);
        QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
        RunSpec other = spec(run, model, way);
        other.policy = way.policy;
        other.policyOptions = way.options;
        other.checkpointEvery = 5;
        other.diskPaths = {m_scratch.path()};
        const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
        const Outcome stopped = m_rig.train(other, *threaded, stopAt(5));
        QVERIFY2(stopped.opened.ok(), stopped.opened.message().c_str());
        QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());

        const Outcome resumed = m_rig.resume(other.outDir, *m_device);

        QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
        QVERIFY(!whole.progress.weightsHash.empty());
        QVERIFY2(resumed.progress.weightsHash == whole.progress.weightsHash, way.name);
        QCOMPARE(resumed.progress.lastLoss, whole.progress.lastLoss);
    }
}

void TestFamilyRuns::optimizersWithLittleStateTrainThem()
{
    QFETCH(QString, name);
    const ChangedModel model(configOf(name));
    const Way way{"light", "streamed", {{"tile", "4KiB"}}, RecomputeChoice::Block};
    for (const Optimizer optimizer :
        {Optimizer::Factored, Optimizer::ApolloMini, Optimizer::Grass}) {
        const std::string run = name.toStdString() + std::to_string(static_cast<int>(optimizer));
        RunSpec resident = plain(run, model, way);
        resident.optimizer = optimizer;
        const Outcome whole = m_rig.train(resident, *m_device);
        QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
        RunSpec streamed = spec(run, model, way);
        streamed.optimizer = optimizer;
        streamed.policy = way.policy;
        streamed.policyOptions = way.options;

        const Outcome outcome = m_rig.train(streamed, *m_device);

        QVERIFY2(outcome.ended.ok(), outcome.ended.message().c_str());
        QCOMPARE(outcome.progress.weightsHash, whole.progress.weightsHash);
    }
}

void TestFamilyRuns::anAdapterOnEveryModuleStreamsWithTheBitsOfResident()
{
    QFETCH(QString, name);
    const ChangedModel model(configOf(name));
    const Way way{"adapter", "streamed", {}, RecomputeChoice::Block};
    std::vector<std::string> hashes;
    for (const char* policy : {"resident", "streamed"}) {
        RunSpec adapted = spec(name.toStdString() + " adapter " + policy, model, way);
        adapted.policy = policy;
        adapted.method = "lora";
        adapted.deviceMemoryBytes = 4U << 20; // by layer, more waits than one by one
        adapted.rank = 2;
        const Outcome outcome = m_rig.train(adapted, *m_device);
        QVERIFY2(outcome.opened.ok(), outcome.opened.message().c_str());
        QVERIFY2(outcome.ended.ok(), outcome.ended.message().c_str());
        hashes.push_back(outcome.progress.weightsHash);
    }
    QVERIFY(!hashes.front().empty());
    QCOMPARE(hashes.back(), hashes.front());
}

void TestFamilyRuns::rowsOfTheFileGiveTheLossOfATableThatIsTrained_data()
{
    QTest::addColumn<PrecisionChoice>("precision");
    QTest::newRow("fp32") << PrecisionChoice::F32;
    QTest::newRow("bf16") << PrecisionChoice::BF16;
}

// A new adapter changes nothing, so the first loss is that of the model, bit for bit.
void TestFamilyRuns::rowsOfTheFileGiveTheLossOfATableThatIsTrained()
{
    QFETCH(PrecisionChoice, precision);
    const ChangedModel model(inputsConfig());
    const std::string name = precision == PrecisionChoice::F32 ? "table fp32 " : "table bf16 ";
    std::vector<std::uint64_t> losses;
    for (const char* method : {"full", "lora"}) {
        RunSpec first = spec(name + method, model,
            {"table", "resident", {}, RecomputeChoice::None, true, precision});
        first.policy = "resident";
        first.method = method;
        first.steps = 1;

        const Outcome outcome = m_rig.train(first, *m_device);

        QVERIFY2(outcome.opened.ok(), outcome.opened.message().c_str());
        QVERIFY2(outcome.ended.ok(), outcome.ended.message().c_str());
        QVERIFY(outcome.progress.lastLoss > 1.0);
        losses.push_back(std::bit_cast<std::uint64_t>(outcome.progress.lastLoss));
    }
    QCOMPARE(losses.back(), losses.front());
}

void TestFamilyRuns::answersFromMemoryAreThoseOfTheWholeText_data()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"state", "keys as values", "own inputs"})
        QTest::newRow(name) << QString(name);
}

// With memory for what was read, token by token from a state or from k and v; without, all tokens
// each time.
void TestFamilyRuns::answersFromMemoryAreThoseOfTheWholeText()
{
    QFETCH(QString, name);
    const ChangedModel model(configOf(name));
    Prompt prompt;
    prompt.text = "How many sacks of flour?";
    prompt.temperature = 0.0;
    prompt.maxTokens = 8;
    std::vector<std::string> answers;
    for (const RecomputeChoice recompute : {RecomputeChoice::None, RecomputeChoice::Block}) {
        RunSpec asked = plain("asked " + name.toStdString() + std::to_string(answers.size()), model,
            {"asked", "resident", {}, RecomputeChoice::None, false, PrecisionChoice::F32});
        asked.recompute = recompute;
        asked.checkpointEvery = 4;
        const Outcome outcome =
            m_rig.train(asked, *m_device, [&](Engine& engine, std::int64_t step) {
                QVERIFY(step == 12 || engine.ask({step, prompt}).ok());
            });
        QVERIFY2(outcome.ended.ok(), outcome.ended.message().c_str());
        const auto reader = std::move(RunReader::open(m_rig.database)).value();
        const std::vector<AnswerRow> rows = reader->answers(outcome.id).value();
        std::string all;
        for (const AnswerRow& row : rows)
            all += row.answer.text + "|";
        answers.push_back(all);
    }
    QVERIFY(answers.front().size() > 4);
    QCOMPARE(answers.back(), answers.front());
}

MR_TEST(TestFamilyRuns)

} // namespace mr::test::tst_family_runs

#include "tst_family_runs.moc"
