// Adapters for other programs: files of GGUF against their own arithmetic, folders of PEFT read
// back, and the refusals.

#include "core/gguf/gguf_file.h"
#include "core/model/peft_folder.h"
#include "core/model/safetensors.h"
#include "core/run/run_rig.h"
#include "core/save/adapter_export.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <filesystem>

namespace mr::test::tst_adapter_export {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kHead = 8; // rows of a head of stories260K

std::vector<float> tensorOf(const fs::path& folder, const std::string& name)
{
    auto reader = SafetensorsReader::open(folder / "adapter_model.safetensors");
    std::int64_t count = 1;
    for (const std::int64_t size : reader.value().entries().at(name).shape)
        count *= size;
    std::vector<float> out(static_cast<std::size_t>(count));
    if (!reader.value().readFloats(name, 0, out).ok())
        qFatal("%s cannot be read", name.c_str());
    return out;
}

std::vector<float> tensorOf(const GgufFile& file, const std::string& name)
{
    const GgufTensor* tensor = file.tensor(name);
    if (tensor == nullptr)
        qFatal("%s is not in the file", name.c_str());
    std::vector<float> out(static_cast<std::size_t>(tensor->count()));
    if (!file.readFloats(*tensor, 0, out).ok())
        qFatal("%s cannot be read", name.c_str());
    return out;
}

} // namespace

class TestAdapterExport : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void factorsLieAsTheRowsOfTheModelsFile_data();
    void factorsLieAsTheRowsOfTheModelsFile();
    void aPeftFolderIsReadBackAsItWas();
    void aModelOfTheHubKeepsItsName();
    void aStopLeavesNothing();
    void whatAFormCannotHoldIsRefused_data();
    void whatAFormCannotHoldIsRefused();

private:
    ModelPlace place(const std::string& adapter) const
    {
        return {
            (m_shared / "models/stories260K").string(), (m_shared / "adapters" / adapter).string()};
    }

    fs::path m_shared;
    Folder m_folder;
};

void TestAdapterExport::initTestCase()
{
    m_shared = sharedData();
    if (m_shared.empty())
        QSKIP("the shared test data is not there");
}

void TestAdapterExport::factorsLieAsTheRowsOfTheModelsFile_data()
{
    QTest::addColumn<QString>("adapter");
    QTest::addColumn<QString>("module"); // in PEFT's file, and in that of GGUF
    QTest::addColumn<QString>("tensor");
    QTest::addColumn<bool>("turned");
    QTest::addColumn<double>("scale"); // that PEFT multiplies B A by
    QTest::newRow("q") << "tiny_lora"
                       << "layers.0.self_attn.q_proj"
                       << "blk.0.attn_q" << true << 2.0;
    QTest::newRow("rank stabilised") << "tiny_rslora"
                                     << "layers.0.self_attn.q_proj"
                                     << "blk.0.attn_q" << true << 16.0 / std::sqrt(8.0);
    QTest::newRow("another rank") << "tiny_rslora"
                                  << "layers.1.self_attn.q_proj"
                                  << "blk.1.attn_q" << true << 16.0 / std::sqrt(4.0);
    QTest::newRow("another alpha") << "tiny_rslora"
                                   << "layers.2.self_attn.v_proj"
                                   << "blk.2.attn_v" << false << 4.0 / std::sqrt(8.0);
}

void TestAdapterExport::factorsLieAsTheRowsOfTheModelsFile()
{
    QFETCH(QString, adapter);
    QFETCH(QString, module);
    QFETCH(QString, tensor);
    QFETCH(bool, turned);
    QFETCH(double, scale);
    const ModelPlace from = place(adapter.toStdString());
    const fs::path out = m_folder.path(std::string(QTest::currentDataTag()) + ".gguf");

    auto report = exportGgufAdapter(from, out);

    QVERIFY2(report.ok(), report.status().message().c_str());
    const GgufFile file = GgufFile::open(out).value();
    QCOMPARE(std::get<std::string>(file.find("general.architecture")->data), std::string("llama"));
    QCOMPARE(std::get<std::string>(file.find("adapter.type")->data), std::string("lora"));
    const std::string before = "base_model.model.model." + module.toStdString();
    const std::string name = tensor.toStdString() + ".weight";
    QCOMPARE(tensorOf(file, name + ".lora_a"), tensorOf(from.adapter, before + ".lora_A.weight"));
    const std::vector<float> b = tensorOf(from.adapter, before + ".lora_B.weight");
    const std::vector<float> got = tensorOf(file, name + ".lora_b");
    const auto rank = static_cast<std::size_t>(file.tensor(name + ".lora_b")->ne[0]);
    const double alpha = std::get<double>(file.find("adapter.lora.alpha")->data);
    QCOMPARE(got.size(), b.size());
    for (std::size_t row = 0; row < b.size() / rank; ++row) {
        const std::size_t inHead = row % kHead;
        const std::size_t source =
            turned ? row - inHead + inHead / 2 + inHead % 2 * kHead / 2 : row;
        for (std::size_t k = 0; k < rank; ++k) {
            const double mine = alpha / static_cast<double>(rank) * double{got[row * rank + k]};
            const double theirs = scale * double{b[source * rank + k]};
            QVERIFY(std::abs(mine - theirs) <= 1e-6 * std::abs(theirs));
        }
    }
}

void TestAdapterExport::aPeftFolderIsReadBackAsItWas()
{
    const ModelPlace from = place("tiny_rslora");
    const std::string name = "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight";

    auto report = exportPeft(from, m_folder.path("wide"), ExportType::F32);
    QVERIFY2(report.ok(), report.status().message().c_str());
    QVERIFY(exportPeft(from, m_folder.path("half"), ExportType::F16).ok());

    QVERIFY(readPeftConfig(m_folder.path("wide")).value().settings ==
            readPeftConfig(from.adapter).value().settings);
    const std::vector<float> want = tensorOf(from.adapter, name);
    QCOMPARE(tensorOf(m_folder.path("wide"), name), want);
    const std::vector<float> half = tensorOf(m_folder.path("half"), name);
    for (std::size_t i = 0; i < want.size(); ++i)
        QVERIFY(std::abs(half[i] - want[i]) <= 0x1p-11F * std::abs(want[i]));
    QVERIFY(fs::file_size(m_folder.path("half/adapter_model.safetensors")) <
            fs::file_size(m_folder.path("wide/adapter_model.safetensors")));
}

void TestAdapterExport::aModelOfTheHubKeepsItsName()
{
    const std::string cached = "hub/models--people--tiny--model/snapshots/0123";
    fs::create_directories(fs::path(m_folder.path(cached)).parent_path());
    ModelPlace from = place("tiny_lora");
    fs::copy(from.model, m_folder.path(cached));
    from.model = m_folder.path(cached);

    auto report = exportPeft(from, m_folder.path("named"), ExportType::F32);

    QVERIFY2(report.ok(), report.status().message().c_str());
    QCOMPARE(
        readPeftConfig(m_folder.path("named")).value().base, std::string("people/tiny--model"));
}

void TestAdapterExport::aStopLeavesNothing()
{
    const ModelPlace from = place("tiny_rslora");
    int calls = 0;
    const WriteProgress stop = [&calls](std::uint64_t, std::uint64_t) -> Status {
        return ++calls < 2 ? Status() : Status::error(ErrorKind::Cancelled, "stopped");
    };
    const auto peft = exportPeft(from, m_folder.path("stopped"), ExportType::F32, stop);
    QVERIFY(!peft.ok() && peft.status().kind() == ErrorKind::Cancelled);
    QCOMPARE(calls, 2);
    calls = 0;
    const auto gguf = exportGgufAdapter(from, m_folder.path("stopped.gguf"), stop);
    QVERIFY(!gguf.ok() && gguf.status().kind() == ErrorKind::Cancelled);
    QCOMPARE(calls, 2);
    for (const char* name : {"stopped", ".stopped.part", "stopped.gguf", ".stopped.gguf.part"})
        QVERIFY2(!fs::exists(m_folder.path(name)), name);
}

void TestAdapterExport::whatAFormCannotHoldIsRefused_data()
{
    QTest::addColumn<QString>("adapter");
    QTest::addColumn<QString>("words");
    QTest::newRow("DoRA") << "tiny_dora"
                          << "is a DoRA adapter, and GGUF adapters are LoRA alone";
    QTest::newRow("none") << ""
                          << "has no adapter; export it --to gguf";
}

void TestAdapterExport::whatAFormCannotHoldIsRefused()
{
    QFETCH(QString, adapter);
    QFETCH(QString, words);
    ModelPlace from = place(adapter.toStdString());
    if (adapter.isEmpty())
        from.adapter.clear();
    const auto refused = exportGgufAdapter(from, m_folder.path("refused.gguf"));
    QVERIFY2(contains(refused.status().message(), words.toStdString()),
        refused.status().message().c_str());
    QVERIFY(!fs::exists(m_folder.path("refused.gguf")));
    QVERIFY(!fs::exists(m_folder.path(".refused.gguf.part")));
}

MR_TEST(TestAdapterExport)

} // namespace mr::test::tst_adapter_export

#include "tst_adapter_export.moc"
