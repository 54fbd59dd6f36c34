// Jobs that come home: weights, losses and record become a run folder that the history takes, and
// what is no result of a job is refused.

#include "core/job/job_import.h"
#include "core/job/job_rig.h"
#include "core/run/run_history.h"
#include "core/run/saved_loss.h"
#include "core/save/model_folder.h"
#include "support/test_room.h"

#include <QtTest>

#include <fstream>

namespace mr::test::tst_job_import {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLosses =
    R"({"step": 7, "loss": 2.5, "lr": 0.001, "grad_norm": 1, "tokens": 96, "loss_tokens": 90, "wall_ms": 12.5}
{"step": 8, "loss": 2.25, "lr": 0.002, "grad_norm": 1, "tokens": 96, "loss_tokens": 90, "wall_ms": 10}
{"step": 8, "eval_loss": 3.5}
)";

std::string hashOf(const fs::path& model)
{
    const ModelConfig config = readModelConfig(model).value();
    const ParamTable table = buildParamTable(config);
    return weightsHash(table, *openWeights(model, config, table).value()).value();
}

void put(const fs::path& file, const std::string& text)
{
    std::ofstream(file) << text;
}

// The folder that train.py leaves where it changes no weight.
fs::path finished(RunRig& rig, const RunSpec& spec, const Folder& folder)
{
    const fs::path job = folder.path("job");
    const auto report = exportJob(stoppedRun(rig, spec), job);
    if (!report.ok())
        qFatal("%s", report.status().message().c_str());
    const char* trained = isAdapterRun(spec) ? "adapter" : "model";
    fs::create_directories(job / "out");
    fs::copy(job / trained, job / "out" / trained, fs::copy_options::recursive);
    fs::copy_file(job / "job.json", job / "out" / "job.json");
    put(job / "out" / "losses.jsonl", kLosses);
    return job / "out";
}

} // namespace

class TestJobImport : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aModelComesHomeWithItsHistory();
    void aModelComesHomeInTheTypeThatIsAskedFor();
    void anAdapterComesHomeBesideItsModel();
    void whatIsNoResultIsRefused();

private:
    RunRig m_rig;
};

void TestJobImport::aModelComesHomeWithItsHistory()
{
    const Folder folder;
    const fs::path out = finished(m_rig, longSpec(m_rig, "mill"), folder);
    const fs::path home = folder.path("home");

    const auto report = importJob(out, home, {});

    QVERIFY2(report.ok(), report.status().message().c_str());
    QCOMPARE(Result(report).value().steps, 2);
    QCOMPARE(Result(report).value().lastLoss, 2.25);
    QCOMPARE(hashOf(home / "model"), hashOf(out / "model"));
    QVERIFY(fs::exists(home / "model" / "tokenizer.model"));
    const auto id = rebuildHistory(*m_rig.store, home);
    QVERIFY2(id.ok(), id.status().message().c_str());
    const RunRow row = m_rig.row(Result(id).value());
    QCOMPARE(row.name, std::string("mill (torchrun)"));
    QCOMPARE(row.lastStep, 8);
    QCOMPARE(row.totalSteps, 30);
    QCOMPARE(row.lastLoss, 2.25);
    QCOMPARE(row.bestEval, 3.5);
    QVERIFY(!row.resumable);
    QCOMPARE(m_rig.steps(row.id).size(), std::size_t{2});
    QCOMPARE(modelPlaceOf(home.string()).value().model, (home / "model").string());
    QVERIFY(!fs::exists(folder.path(".home.part")));
}

void TestJobImport::aModelComesHomeInTheTypeThatIsAskedFor()
{
    const Folder folder;
    RunSpec spec = longSpec(m_rig, "halves");
    spec.precision = PrecisionChoice::BF16;
    const fs::path out = finished(m_rig, spec, folder);
    QVERIFY(importJob(out, folder.path("half"), {}).ok());
    QVERIFY(importJob(out, folder.path("wide"), {ExportType::F32, {}}).ok());
    QCOMPARE(readModelConfig(folder.path("half/model")).value().dtype, std::string("bfloat16"));
    QCOMPARE(readModelConfig(folder.path("wide/model")).value().dtype, std::string("float32"));
    QCOMPARE(hashOf(folder.path("wide/model")), hashOf(out / "model"));
    QVERIFY(hashOf(folder.path("half/model")) != hashOf(out / "model"));
}

void TestJobImport::anAdapterComesHomeBesideItsModel()
{
    const Folder folder;
    const fs::path out = finished(m_rig, adapterSpec(longSpec(m_rig, "beside")), folder);
    const auto report = importJob(out, folder.path("home"), {});
    QVERIFY2(report.ok(), report.status().message().c_str());
    const ModelPlace place = modelPlaceOf(folder.path("home")).value();
    QCOMPARE(place.model, m_rig.model.path());
    QCOMPARE(place.adapter, folder.path("home/adapter"));
    QCOMPARE(lossOf(m_rig, place.model, place.adapter),
        lossOf(m_rig, m_rig.model.path(), (out.parent_path() / "adapter").string()));
    // Elsewhere the model has another path, and another model is none.
    const Folder other;
    fs::copy(m_rig.model.path(), other.path(),
        fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    QVERIFY(importJob(out, folder.path("moved"), {{}, other.path()}).ok());
    QCOMPARE(modelPlaceOf(folder.path("moved")).value().model, other.path());
    const ModelConfig config = readModelConfig(other.path()).value();
    const ParamTable table = buildParamTable(config);
    QVERIFY(saveModel(folder.path("new"), config, table, *initialWeights(config, table, 9),
        ExportType::F32, other.path())
                .ok());
    auto refused = importJob(out, folder.path("wrong"), {{}, folder.path("new")});
    QVERIFY(contains(refused.status().message(), "with other weights"));
    refused = importJob(out, folder.path("wrong"), {{}, folder.path("nowhere")});
    QVERIFY(contains(refused.status().message(), "--model"));
    QVERIFY(!fs::exists(folder.path("wrong")) && !fs::exists(folder.path(".wrong.part")));
}

void TestJobImport::whatIsNoResultIsRefused()
{
    const Folder folder;
    const fs::path out = finished(m_rig, longSpec(m_rig, "refused"), folder);
    const auto message = [&](const fs::path& from) {
        return importJob(from, folder.path("home"), {}).status().message();
    };
    QVERIFY(
        contains(importJob(out, folder.path("job"), {}).status().message(), "is there already"));
    QVERIFY(contains(message(m_rig.model.path()), "has no job.json"));
    put(out / "losses.jsonl", std::string(kLosses) + "{\"step\": 9");
    QVERIFY(contains(message(out), "losses.jsonl:4"));
    put(out / "losses.jsonl", kLosses);
    fs::resize_file(out / "model" / "model.safetensors", 5000);
    QVERIFY(contains(message(out), "model.safetensors"));
    fs::remove_all(out / "model");
    QVERIFY(contains(message(out), "has no model/ yet"));
    put(out / "job.json", R"({"kind": "something"})");
    QVERIFY(contains(message(out), "\"kind\""));
    put(out / "job.json",
        R"({"kind": "millrace-torchrun", "format": 2, "from_step": 1, "steps": 2, "run": {}})");
    QVERIFY(contains(message(out), "\"format\""));
    put(out / "job.json", "{");
    QVERIFY(contains(message(out), "job.json"));
    QVERIFY(!fs::exists(folder.path("home")) && !fs::exists(folder.path(".home.part")));
}

MR_TEST(TestJobImport)

} // namespace mr::test::tst_job_import

#include "tst_job_import.moc"
