// Runs that train an adapter beside a model in 4 bits: equal to those beside a model that holds
// what the codes stand for, under every policy; and what becomes of their adapters.

#include "core/model/packed_group.h"
#include "core/model/peft_folder.h"
#include "core/run/run_rig.h"
#include "core/run/saved_loss.h"
#include "core/save/folder_export.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <filesystem>

namespace mr::test::tst_qlora_runs {

namespace fs = std::filesystem;

namespace {

RunSpec qloraSpec(const RunRig& rig, const std::string& name)
{
    RunSpec spec = rig.spec(name);
    spec.method = "qlora";
    spec.rank = 4;
    spec.accumulate = 3;
    spec.learningRate = 3e-2;
    return spec;
}

// The model of the rig with what its codes stand for in place of its matrices.
void writeHeldModel(const std::string& from, const Folder& folder)
{
    const ModelConfig config = readModelConfig(from).value();
    const ParamTable table = buildParamTable(config);
    const auto files = std::move(openWeights(from, config, table)).value();
    const auto held = nf4Model(table, *files);
    const Status saved = saveModel(folder.path(), config, table, *held, ExportType::F32, from);
    if (!saved.ok())
        qFatal("%s", saved.message().c_str());
}

} // namespace

class TestQloraRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { writeHeldModel(m_rig.model.path(), m_held); }

    void bitsAreThoseBesideWhatTheCodesStandFor_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<bool>("bf16");
        QTest::addColumn<int>("buffers");
        QTest::addColumn<bool>("dora");
        QTest::newRow("resident, fp32") << "resident" << false << 2 << false;
        QTest::newRow("resident, bf16, DoRA") << "resident" << true << 2 << true;
        QTest::newRow("streamed, fp32, one slot, DoRA") << "streamed" << false << 1 << true;
        QTest::newRow("streamed, bf16") << "streamed" << true << 2 << false;
    }

    void bitsAreThoseBesideWhatTheCodesStandFor()
    {
        QFETCH(QString, policy);
        QFETCH(bool, bf16);
        QFETCH(int, buffers);
        QFETCH(bool, dora);
        const std::string tag = QTest::currentDataTag();
        RunSpec spec = qloraSpec(m_rig, tag);
        spec.precision = bf16 ? PrecisionChoice::BF16 : PrecisionChoice::F32;
        spec.evalData = spec.data;
        spec.dora = dora;
        spec.dropout = 0.2;
        RunSpec plain = spec;
        plain.method = "lora";
        plain.modelDir = m_held.path();
        plain.outDir += " plain";
        const Outcome want = m_rig.train(plain, *m_device);
        QVERIFY2(want.ended.ok(), want.opened.message().c_str());
        spec.policy = policy.toStdString();
        if (policy == QLatin1String("streamed"))
            spec.policyOptions["buffers"] = std::to_string(buffers);
        spec.evalEvery = 1;
        spec.checkpointEvery = 5;

        const Outcome stopped = m_rig.train(spec, *m_device, stopAt(5));
        QVERIFY2(stopped.ended.ok(), stopped.opened.message().c_str());
        const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
        const Outcome got = m_rig.resume(stopped.dir, *threaded);

        QVERIFY2(got.ended.ok(), got.opened.message().c_str());
        QCOMPARE(got.progress.step, 12);
        QCOMPARE(got.progress.weightsHash, want.progress.weightsHash);
        QVERIFY(got.progress.weightsHash != stopped.progress.weightsHash);
        const fs::path file = fs::path("adapter") / "adapter_model.safetensors";
        QVERIFY(readFile((want.dir / file).string()) == readFile((got.dir / file).string()));
    }

    void theAdapterSaysBesideWhatItWasTrained()
    {
        RunSpec spec = qloraSpec(m_rig, "saved");
        spec.evalData = spec.data;
        spec.evalEvery = 12;
        const Outcome run = m_rig.train(spec, *m_device);
        QVERIFY2(run.ended.ok(), run.opened.message().c_str());
        const std::string folder = (run.dir / "adapter").string();

        const PeftConfig config = readPeftConfig(folder).value();

        QVERIFY(config.settings.nf4Base);
        QCOMPARE(config.baseHash, run.progress.baseHash);
        const ModelConfig model = readModelConfig(m_rig.model.path()).value();
        const ParamTable table = buildParamTable(model);
        QCOMPARE(weightsHash(table, *openWeights(m_rig.model.path(), model, table).value()).value(),
            config.baseHash); // of the model as it is on the disk
        const double saved = lossOf(m_rig, m_rig.model.path(), folder);
        QVERIFY(std::abs(saved - run.progress.evalLoss) < 1e-6);
        QVERIFY(saved < lossOf(m_rig, m_rig.model.path()) - 0.1);
    }

    void itIsMergedIntoWhatItWasTrainedBeside()
    {
        const Outcome run = m_rig.train(qloraSpec(m_rig, "merged"), *m_device);
        QVERIFY2(run.ended.ok(), run.opened.message().c_str());
        const ModelPlace place = modelPlaceOf(run.dir.string()).value();
        const Folder out;

        const auto held = exportFolder(place, out.path("held"), {});
        const auto original = exportFolder(place, out.path("original"), {{}, true});

        QVERIFY2(held.ok() && original.ok(), held.status().message().c_str());
        QVERIFY(Result(held).value().isNf4 && !Result(original).value().isNf4);
        const double apart = lossOf(m_rig, place.model, place.adapter);
        const double ofHeld = std::abs(lossOf(m_rig, out.path("held")) - apart);
        const double ofOriginal = std::abs(lossOf(m_rig, out.path("original")) - apart);
        QVERIFY2(ofHeld < 2e-6, std::to_string(ofHeld).c_str());
        QVERIFY2(ofOriginal > 2e-5, std::to_string(ofOriginal).c_str());
    }

    void itGoesOnBesideFourBitsOnly()
    {
        const Outcome run = m_rig.train(qloraSpec(m_rig, "first"), *m_device);
        RunSpec spec = m_rig.spec("second");
        spec.method = "lora";
        spec.adapterDir = (run.dir / "adapter").string();
        const Outcome refused = m_rig.train(spec, *m_device);
        QCOMPARE(refused.opened.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(contains(refused.opened.message(), "go on with --method qlora"),
            refused.opened.message().c_str());
        spec.method = "qlora";
        spec.steps = 1;
        spec.learningRate = 1e-30;
        const Outcome more = m_rig.train(spec, *m_device);
        QVERIFY2(more.ended.ok(), more.opened.message().c_str());
        QCOMPARE(more.progress.weightsHash, run.progress.weightsHash);
    }

    // In blocks of 64: half a byte an element, a byte a block, a number for 256 of these and the
    // tables.
    void theModelIsHeldInFourBits()
    {
        RunSpec spec = qloraSpec(m_rig, "account");
        spec.precision = PrecisionChoice::BF16;
        for (const char* policy : {"resident", "streamed"}) {
            spec.policy = policy;
            const RunSetup setup = setUpRun(spec, 60).value();
            const Tier home = spec.policy == "resident" ? Tier::Device : Tier::PinnedHost;
            std::size_t packed = 0;
            for (const auto& [rows, cols] :
                {std::pair(24, 24), {12, 24}, {12, 24}, {24, 24}, {40, 24}, {40, 24}, {24, 40}})
                packed += nf4Layout(rows * cols).bytes;
            const std::size_t norms = 2 * 24 * 2;
            for (const MemoryItem& item : setup.memory.items)
                if (item.use == MemoryUse::FrozenWeights && item.group.value == 1) {
                    QCOMPARE(item.tier, home);
                    QCOMPARE(item.bytes, packed + norms);
                }
            const std::size_t landing = setup.memory.bytes(Tier::Device, MemoryUse::PackedLanding);
            QCOMPARE(landing, home == Tier::Device ? 0 : packed + norms);
        }
        const std::int64_t large = std::int64_t{4096} * 14336;
        const double each =
            static_cast<double>(nf4Layout(large).bytes) / static_cast<double>(large);
        QVERIFY(each > 0.5158 && each < 0.5160);
    }

    void codesOfACheckpointAreTheBase()
    {
        const fs::path nf4 = fs::path(sharedData()) / "adapters" / "tiny_nf4";
        if (!fs::exists(nf4))
            QSKIP("the shared test data is not there");
        const Folder model; // the shared one has no tokenizer
        fs::copy(
            nf4, model.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
        fs::copy_file(fs::path(sharedData()) / "models/stories260K/tokenizer.model",
            model.path("tokenizer.model"), fs::copy_options::skip_existing);
        RunSpec spec = qloraSpec(m_rig, "in codes");
        spec.modelDir = model.path();
        spec.steps = 4;
        const Outcome held = m_rig.train(spec, *m_device);
        QVERIFY2(held.ended.ok(), held.opened.message().c_str());
        spec.method = "lora";
        spec.outDir += " in 16 bit";
        const Outcome plain = m_rig.train(spec, *m_device);
        QVERIFY2(plain.ended.ok(), plain.opened.message().c_str());
        QCOMPARE(held.progress.weightsHash, plain.progress.weightsHash);
        const Folder out;
        const auto refused =
            exportFolder(modelPlaceOf(held.dir.string()).value(), out.path("out"), {{}, true});
        QVERIFY2(contains(refused.status().message(), "not the weights before"),
            refused.status().message().c_str());
    }

private:
    RunRig m_rig;
    Folder m_held;
    std::unique_ptr<Device> m_device = smallDevice();
};

MR_TEST(TestQloraRuns)

} // namespace mr::test::tst_qlora_runs

#include "tst_qlora_runs.moc"
