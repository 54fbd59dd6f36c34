// Jobs for torchrun: the folder is whole, its rows are those that the run takes next, its weights
// and moments are the checkpoint's, and a run that PyTorch cannot continue is refused.

#include "core/job/job_files.h"
#include "core/job/job_rig.h"
#include "core/job/job_source.h"
#include "core/job/job_weights.h"
#include "core/model/peft_folder.h"
#include "support/test_room.h"

#include <QRegularExpression>
#include <QtTest>

#include <fstream>
#include <nlohmann/json.hpp>

namespace mr::test::tst_job_export {

namespace fs = std::filesystem;

namespace {

std::string textOf(const fs::path& file)
{
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json jobOf(const fs::path& job)
{
    return nlohmann::json::parse(textOf(job / "job.json"));
}

std::vector<std::string> filesIn(const fs::path& folder)
{
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file())
            names.push_back(entry.path().lexically_relative(folder).string());
    std::ranges::sort(names);
    return names;
}

// The rows of one micro-batch in the files of a job, laid end to end.
std::vector<std::int32_t> placesOf(
    const std::vector<std::int32_t>& column, std::span<const std::int32_t> rows, std::size_t seqLen)
{
    std::vector<std::int32_t> places;
    for (const std::int32_t row : rows) {
        const auto begin =
            column.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(seqLen);
        places.insert(places.end(), begin, begin + static_cast<std::ptrdiff_t>(seqLen));
    }
    return places;
}

} // namespace

class TestJobExport : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theFolderIsWhole_data();
    void theFolderIsWhole();
    void rowsAreThoseThatTheRunTakesNext_data();
    void rowsAreThoseThatTheRunTakesNext();
    void rowsToEvaluateOnAreTheRunsOwn();
    void weightsAndMomentsAreTheCheckpoints_data();
    void weightsAndMomentsAreTheCheckpoints();
    void anAdapterAndItsModelAreAsTheyWere();
    void settingsAreThoseOfTheRun();
    void dropoutAndBf16AreNoted();
    void runsThatPyTorchCannotContinueAreRefused_data();
    void runsThatPyTorchCannotContinueAreRefused();
    void otherDataAnotherModelAndFinishedRunsAreRefused();

private:
    RunRig m_rig;
};

void TestJobExport::theFolderIsWhole_data()
{
    QTest::addColumn<bool>("adapter");
    QTest::newRow("a model") << false;
    QTest::newRow("an adapter") << true;
}

void TestJobExport::theFolderIsWhole()
{
    QFETCH(bool, adapter);
    RunSpec spec = longSpec(m_rig, adapter ? "whole adapter" : "whole");
    if (adapter)
        spec = adapterSpec(spec);
    const Folder folder;
    const fs::path job = folder.path("job");

    const fs::path run = stoppedRun(m_rig, spec);
    std::uint64_t left = 0;
    int calls = 0;

    const auto stopped = exportJob(run, job, [&calls](std::uint64_t, std::uint64_t) -> Status {
        return ++calls < 3 ? Status() : Status::error(ErrorKind::Cancelled, "stopped");
    });
    QVERIFY(!stopped.ok() && stopped.status().kind() == ErrorKind::Cancelled);
    QVERIFY(fs::is_empty(folder.path()));
    const auto report =
        exportJob(run, job, [&left](std::uint64_t done, std::uint64_t all) -> Status {
            left = all - done;
            return {};
        });

    QVERIFY2(report.ok(), report.status().message().c_str());
    QVERIFY(left == 0);
    std::vector<std::string> files = {"README.md", "data/eval.safetensors",
        "data/index.safetensors", "data/train.safetensors", "job.json", "job.sbatch",
        "model/config.json", "model/model.safetensors", "model/tokenizer.model",
        "model/tokenizer.vocab", "requirements.txt", "state/exp_avg.safetensors",
        "state/exp_avg_sq.safetensors", "train.py"};
    if (adapter)
        files.insert(
            files.end(), {"adapter/adapter_config.json", "adapter/adapter_model.safetensors",
                             "adapter/millrace.json"});
    std::ranges::sort(files);
    std::string found;
    for (const std::string& name : filesIn(job))
        found += name + " ";
    QVERIFY2(filesIn(job) == files, found.c_str());
    for (const auto& [name, text] : kJobFiles)
        QVERIFY(name == "README.md" || textOf(job / name) == text);
    const auto readme = QString::fromStdString(textOf(job / "README.md"));
    QVERIFY(readme.startsWith(QString::fromStdString("# " + spec.name + ": steps 6 to 30")));
    QVERIFY(!readme.contains('@'));
    int links = 0;
    auto link = QRegularExpression(R"(\]\(([^)]*)\))").globalMatch(readme);
    for (; link.hasNext(); ++links)
        QVERIFY(fs::exists(job / link.next().captured(1).toStdString()));
    QVERIFY(links >= 3);
    QVERIFY(fs::is_directory(job) && !fs::exists(folder.path(".job.part")));
    const auto again = exportJob(folder.path("nowhere"), job);
    QVERIFY(contains(again.status().message(), "is there already"));
}

void TestJobExport::rowsAreThoseThatTheRunTakesNext_data()
{
    QTest::addColumn<bool>("pack");
    QTest::newRow("a sequence each") << false;
    QTest::newRow("packed") << true;
}

void TestJobExport::rowsAreThoseThatTheRunTakesNext()
{
    QFETCH(bool, pack);
    RunSpec spec = longSpec(m_rig, pack ? "packed" : "rows");
    spec.pack = pack;
    spec.accumulate = 3;
    const fs::path run = stoppedRun(m_rig, spec);
    const Folder folder;
    const auto report = exportJob(run, folder.path("job"));
    QVERIFY2(report.ok(), report.status().message().c_str());

    const JobSource source = std::move(openJobSource(run)).value();
    QCOMPARE(source.data.train.packing.count() > 0, pack);
    const fs::path data = fs::path(folder.path("job")) / "data";
    const auto rows = tensorIn<std::int32_t>(data / "index.safetensors", "rows");
    const auto trained = tensorIn<std::int64_t>(data / "index.safetensors", "trained");
    const auto tokens = tensorIn<std::int64_t>(data / "index.safetensors", "tokens");
    const auto ids = tensorIn<std::int32_t>(data / "train.safetensors", "ids");
    const auto targets = tensorIn<std::int32_t>(data / "train.safetensors", "targets");
    const auto positions = tensorIn<std::int32_t>(data / "train.safetensors", "positions");
    QCOMPARE(std::ssize(trained), source.stepsLeft());
    QCOMPARE(rows.size(), trained.size() * 6);
    const auto stream =
        BatchStream::start(source.data.train, {spec.seqLen, 2, 3}, source.progress.sampler);
    StepBatch batch;
    for (std::size_t step = 0; step < trained.size(); ++step) {
        QVERIFY(stream->next(batch).ok());
        QCOMPARE(batch.trainedTokens, trained[step]);
        QCOMPARE(batch.tokens, tokens[step]);
        for (std::size_t micro = 0; micro < 3; ++micro) {
            const auto chosen = std::span(rows).subspan(step * 6 + micro * 2, 2);
            const auto seqLen = static_cast<std::size_t>(spec.seqLen);
            QVERIFY(placesOf(ids, chosen, seqLen) == batch.micros[micro].ids);
            QVERIFY(placesOf(targets, chosen, seqLen) == batch.micros[micro].targets);
            QVERIFY(placesOf(positions, chosen, seqLen) == batch.micros[micro].positions);
        }
    }
    QVERIFY(batch.after.epoch > source.progress.sampler.epoch); // rows came a second time
    QCOMPARE(std::int64_t{*std::ranges::max_element(rows)} + 1, Result(report).value().rows);
    QVERIFY(ids.size() <= static_cast<std::size_t>(source.data.train.batchRows() * spec.seqLen));
}

void TestJobExport::rowsToEvaluateOnAreTheRunsOwn()
{
    const fs::path run = stoppedRun(m_rig, longSpec(m_rig, "evaluated"));
    const Folder folder;
    QVERIFY(exportJob(run, folder.path("job")).ok());
    const JobSource source = std::move(openJobSource(run)).value();
    const fs::path file = fs::path(folder.path("job")) / "data" / "eval.safetensors";
    const auto ids = tensorIn<std::int32_t>(file, "ids");
    QCOMPARE(std::ssize(ids), source.data.eval.count() * source.spec().seqLen);
    QVERIFY(source.data.eval.count() > 0);
    TokenSequence sequence;
    for (std::int64_t i = 0; i < source.data.eval.count(); ++i) {
        QVERIFY(source.data.eval.sequences.read(i, sequence).ok());
        const auto row = ids.begin() + i * source.spec().seqLen;
        QVERIFY(std::equal(sequence.tokens.begin(), sequence.tokens.end() - 1, row));
    }
}

void TestJobExport::weightsAndMomentsAreTheCheckpoints_data()
{
    QTest::addColumn<bool>("half");
    QTest::addColumn<QString>("layers");
    QTest::addColumn<bool>("adapter");
    QTest::newRow("fp32") << false << QString() << false;
    QTest::newRow("bf16") << true << QString() << false;
    QTest::newRow("a block") << true << "1" << false;
    QTest::newRow("an adapter") << false << QString() << true;
}

void TestJobExport::weightsAndMomentsAreTheCheckpoints()
{
    QFETCH(bool, half);
    QFETCH(QString, layers);
    QFETCH(bool, adapter);
    RunSpec spec = longSpec(m_rig, std::string("weights ") + QTest::currentDataTag());
    spec.precision = half ? PrecisionChoice::BF16 : PrecisionChoice::F32;
    spec.trainLayers = layers.toStdString();
    const fs::path run = stoppedRun(m_rig, adapter ? adapterSpec(spec) : spec);
    const Folder folder;
    const fs::path job = folder.path("job");
    const auto report = exportJob(run, job);
    QVERIFY2(report.ok(), report.status().message().c_str());

    const JobSource source = std::move(openJobSource(run)).value();
    const ParamTable& table = source.setup.table;
    if (!adapter && layers.isEmpty()) {
        const auto written =
            std::move(openWeights(job / "model", source.setup.config, wholeModel(table))).value();
        QCOMPARE(weightsHash(table, *written).value(), source.progress.weightsHash);
    }
    const fs::path state = source.checkpoint / "state" / "state.safetensors";
    std::int64_t moved = 0;
    for (const NamedTensor& tensor : table.tensors)
        for (const auto& [plane, file] :
            {std::pair("m.", "exp_avg.safetensors"), std::pair("v.", "exp_avg_sq.safetensors")}) {
            const auto whole = tensorIn<float>(state, plane + std::to_string(tensor.group.value));
            const auto part = tensorIn<float>(job / "state" / file, tensor.name);
            QCOMPARE(std::ssize(part), tensor.count());
            QVERIFY(std::equal(part.begin(), part.end(), whole.begin() + tensor.first));
            moved += std::ranges::count_if(part, [](float value) { return value != 0.0F; });
        }
    QVERIFY(moved > table.parameters);
    const auto names = jobOf(job)["optimizer"]["trained"].get<std::vector<std::string>>();
    QCOMPARE(names.size(), table.tensors.size());
}

void TestJobExport::anAdapterAndItsModelAreAsTheyWere()
{
    const fs::path run = stoppedRun(m_rig, adapterSpec(longSpec(m_rig, "adapter")));
    const Folder folder;
    const fs::path job = folder.path("job");
    QVERIFY(exportJob(run, job).ok());
    const JobSource source = std::move(openJobSource(run)).value();
    for (const char* name : {"lora_A", "lora_B"}) {
        const std::string tensor =
            std::string("base_model.model.model.layers.1.mlp.down_proj.") + name + ".weight";
        const auto values = tensorIn<float>(job / "adapter" / "adapter_model.safetensors", tensor);
        QVERIFY(!values.empty());
        QVERIFY(values == tensorIn<float>(
                              source.checkpoint / "adapter" / "adapter_model.safetensors", tensor));
    }
    const std::string norm = "model.norm.weight";
    QVERIFY(tensorIn<float>(job / "model" / "model.safetensors", norm) ==
            tensorIn<float>(fs::path(m_rig.model.path()) / "model.safetensors", norm));
    QCOMPARE(readPeftConfig(job / "adapter").value().baseHash, source.progress.baseHash);
}

void TestJobExport::settingsAreThoseOfTheRun()
{
    RunSpec spec = longSpec(m_rig, "settings");
    spec.clipNorm = 0.25;
    spec.beta2 = 0.97;
    spec.weightDecay = 0.2;
    spec.schedule = ScheduleKind::Linear;
    const Folder folder;
    QVERIFY(exportJob(stoppedRun(m_rig, spec), folder.path("job")).ok());
    const auto job = jobOf(folder.path("job"));
    QCOMPARE(job["from_step"].get<std::int64_t>(), kStopped);
    QCOMPARE(job["optimizer"]["updates"].get<std::int64_t>(), kStopped);
    QCOMPARE(job["optimizer"]["clip_norm"].get<double>(), 0.25);
    QCOMPARE(job["optimizer"]["betas"][1].get<double>(), 0.97);
    QCOMPARE(job["optimizer"]["weight_decay"].get<double>(), 0.2);
    QCOMPARE(job["schedule"]["kind"].get<std::string>(), std::string("linear"));
    QCOMPARE(job["schedule"]["total_steps"].get<std::int64_t>(), 30);
    QCOMPARE(job["schedule"]["warmup_steps"].get<std::int64_t>(), 4);
    QCOMPARE(job["precision"].get<std::string>(), std::string("fp32"));
    const auto decayed = job["optimizer"]["decayed"].get<std::vector<std::string>>();
    const auto has = [&](const char* name) { return std::ranges::count(decayed, name) == 1; };
    QVERIFY(has("model.embed_tokens.weight") && has("model.layers.0.mlp.up_proj.weight"));
    QVERIFY(!has("model.norm.weight") && !has("model.layers.0.input_layernorm.weight"));
}

void TestJobExport::dropoutAndBf16AreNoted()
{
    RunSpec spec = adapterSpec(longSpec(m_rig, "noted"));
    spec.dropout = 0.1;
    spec.precision = PrecisionChoice::BF16;
    const Folder folder;
    const auto report = exportJob(stoppedRun(m_rig, spec), folder.path("job"));
    QVERIFY2(report.ok(), report.status().message().c_str());
    const auto notes = Result(report).value().notes;
    QCOMPARE(notes.size(), std::size_t{2});
    QVERIFY(contains(notes[0], "dropout") && contains(notes[1], "BF16"));
}

void TestJobExport::runsThatPyTorchCannotContinueAreRefused_data()
{
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("words");
    QTest::newRow("a light optimizer") << "factored"
                                       << "optimizer factored";
    QTest::newRow("blocks in turn") << "blocks"
                                    << "one block after the other";
    QTest::newRow("NF4") << "qlora"
                         << "--to merged";
    QTest::newRow("DoRA") << "dora"
                          << "magnitudes (DoRA)";
    QTest::newRow("modules trained whole") << "modules"
                                           << "modules that are trained whole";
    QTest::newRow("rows of the embedding") << "tokens"
                                           << "trained rows of the embedding";
    QTest::newRow("windows") << "zenflow"
                             << "come steps after their gradients";
    QTest::newRow("late by a step") << "zero-offload-dpu"
                                    << "come steps after their gradients";
    QTest::newRow("compact state") << "compact"
                                   << "optimizer state in 8 bits";
    QTest::newRow("a norm for each group") << "per-group"
                                           << "clips each group";
}

void TestJobExport::runsThatPyTorchCannotContinueAreRefused()
{
    QFETCH(QString, kind);
    QFETCH(QString, words);
    const std::string name = kind.toStdString();
    RunSpec spec = longSpec(m_rig, "refused " + name);
    if (name == "qlora" || name == "dora" || name == "modules" || name == "tokens")
        spec = adapterSpec(spec);
    if (name == "factored")
        spec.optimizer = Optimizer::Factored;
    if (name == "blocks")
        spec.train = TrainOrder::Blocks;
    spec.blockSteps = name == "blocks" ? 7 : 0;
    if (name == "qlora")
        spec.method = "qlora";
    spec.dora = name == "dora";
    if (name == "modules")
        spec.savedModules = "embed_tokens,lm_head";
    if (name == "tokens")
        spec.trainedTokens = "9-11";
    if (name == "zenflow" || name == "zero-offload-dpu")
        spec.policy = name;
    if (name == "compact")
        spec.policyOptions = {{"state", "compact"}};
    if (name == "per-group")
        spec.policyOptions = {{"clip-mode", "per-group"}};
    if (name == "compact" || name == "qlora" || name == "factored")
        spec.precision = PrecisionChoice::BF16;
    const Folder folder;

    const auto refused = exportJob(stoppedRun(m_rig, spec), folder.path("job"));

    QVERIFY2(contains(refused.status().message(), words.toStdString()),
        refused.status().message().c_str());
    QVERIFY(refused.status().kind() == ErrorKind::InvalidArgument);
    QVERIFY(fs::is_empty(folder.path()));
}

void TestJobExport::otherDataAnotherModelAndFinishedRunsAreRefused()
{
    const Folder folder;
    auto refused = exportJob(m_rig.model.path(), folder.path("job"));
    QVERIFY(contains(refused.status().message(), "is no run folder"));

    RunSpec spec = adapterSpec(longSpec(m_rig, "moved"));
    spec.data.front().path = folder.path("own.jsonl");
    folder.write("own.jsonl", smallPairs(60));
    const Folder model;
    fs::copy(m_rig.model.path(), model.path(),
        fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    spec.modelDir = model.path();
    const fs::path run = stoppedRun(m_rig, spec);
    folder.write("own.jsonl", smallPairs(60, 1));
    refused = exportJob(run, folder.path("job"));
    QVERIFY(contains(refused.status().message(), "is not the data the run began with"));
    folder.write("own.jsonl", smallPairs(60));
    const ModelConfig config = readModelConfig(model.path()).value();
    const ParamTable table = buildParamTable(config);
    QVERIFY(saveModel(folder.path("new"), config, table, *initialWeights(config, table, 9),
        ExportType::F32, model.path())
                .ok());
    fs::copy_file(folder.path("new/model.safetensors"), model.path("model.safetensors"),
        fs::copy_options::overwrite_existing);
    refused = exportJob(run, folder.path("job"));
    QVERIFY(contains(refused.status().message(), "is not the model the run began with"));
    QVERIFY(!fs::exists(folder.path("job")) && !fs::exists(folder.path(".job.part")));

    RunSpec done = longSpec(m_rig, "done");
    done.steps = kStopped;
    const auto device = smallDevice();
    const Outcome ended = m_rig.train(done, *device);
    refused = exportJob(ended.dir, folder.path("job"));
    QVERIFY(contains(refused.status().message(), "nothing to continue"));
    fs::remove_all(ended.dir / "checkpoints");
    refused = exportJob(ended.dir, folder.path("job"));
    QVERIFY(contains(refused.status().message(), "has no checkpoint"));
}

MR_TEST(TestJobExport)

} // namespace mr::test::tst_job_export

#include "tst_job_export.moc"
