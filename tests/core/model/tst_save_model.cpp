// Saving a model folder: exact tensors, carried files, and the config as it was read.

#include "core/model/filled_model.h"
#include "core/model/safetensors.h"
#include "support/test_room.h"

#include <QTest>

#include <string>
#include <vector>

namespace mr::test::tst_save_model {

namespace {

namespace fs = std::filesystem;

// Saved again: the same files, the same tensors to the byte.
void expectTheSameModel(const fs::path& folder, const std::vector<const char*>& files)
{
    QTemporaryDir dir;
    const fs::path out = fs::path(dir.path().toStdString()) / "out";
    Result<ModelConfig> c = readModelConfig(folder);
    QVERIFY2(c.ok(), c.status().message().c_str());
    const ParamTable table = buildParamTable(c.value());
    auto weights = openWeights(folder, c.value(), table);
    QVERIFY2(weights.ok(), weights.status().message().c_str());

    QVERIFY(saveModel(out, c.value(), table, *weights.value(), ExportType::F32, folder).ok());

    for (const char* file : files)
        QVERIFY(contents(out / file) == contents(folder / file));
    Result<SafetensorsReader> a = SafetensorsReader::open(folder / "model.safetensors");
    Result<SafetensorsReader> b = SafetensorsReader::open(out / "model.safetensors");
    QVERIFY(a.ok() && b.ok());
    QCOMPARE(a.value().entries().size(), b.value().entries().size());
    for (const auto& [tensor, entry] : a.value().entries()) {
        std::vector<std::byte> before(entry.end - entry.begin);
        std::vector<std::byte> after(before.size());
        QVERIFY(a.value().readBytes(tensor, 0, before).ok());
        QVERIFY(b.value().readBytes(tensor, 0, after).ok());
        QVERIFY2(before == after, tensor.c_str());
    }
}

} // namespace

class TestSaveModel : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void savedF32ModelIsTheMasterToTheBit()
    {
        FilledModel m;

        const Status status =
            saveModel(m.path / "out/deep", m.config, m.table, m.master, ExportType::F32, {});

        QVERIFY2(status.ok(), status.message().c_str());
        QCOMPARE(hashOfFolder(m.path / "out/deep"), hashOf(m.table, m.master));
        QCOMPARE(contents(m.path / "out/deep/config.json"), tinyConfig());
    }

    void savedBf16ModelIsTheHighHalf()
    {
        FilledModel m;

        QVERIFY(saveModel(m.path / "out", m.config, m.table, m.master, ExportType::BF16, {}).ok());

        for (auto& low : m.master.low)
            std::fill(low.begin(), low.end(), std::int16_t{0});
        QCOMPARE(hashOfFolder(m.path / "out"), hashOf(m.table, m.master));
        Result<ModelConfig> saved = readModelConfig(m.path / "out");
        QCOMPARE(saved.value().dtype, std::string("bfloat16"));
    }

    void tokenizerAndGenerationFilesAreCarriedUnchanged()
    {
        FilledModel m;
        fs::create_directories(m.path / "from/tokenizer_folder");
        const std::vector<std::string> carried = {"tokenizer.model", "tokenizer.json",
            "tokenizer_config.json", "special_tokens_map.json", "generation_config.json",
            "chat_template.jinja", "added_tokens.json", "vocab.json", "merges.txt", "LICENSE.txt",
            "tekken.json"};
        for (const std::string& name : carried)
            put(m.path / "from" / name, name.ends_with(".json")
                                            ? "[\"content of " + name + "\"]\n "
                                            : "content of " + name + std::string("\0\n", 2));
        put(m.path / "from/LICENSE", "");
        for (const char* name : {"README.md", "pytorch_model.bin", "other.txt"})
            put(m.path / "from" / name, "x");

        const Status status = saveModel(
            m.path / "out", m.config, m.table, m.master, ExportType::F32, m.path / "from");

        QVERIFY2(status.ok(), status.message().c_str());
        for (const std::string& name : carried)
            QCOMPARE(contents(m.path / "out" / name), contents(m.path / "from" / name));
        QVERIFY(fs::exists(m.path / "out/LICENSE"));
        for (const char* name : {"README.md", "pytorch_model.bin", "other.txt", "tokenizer_folder"})
            QVERIFY(!fs::exists(m.path / "out" / name));
    }

    void aLinkOutOfTheFolderIsNotCarried_data()
    {
        QTest::addColumn<QString>("name");
        QTest::newRow("settings") << "generation_config.json";
        QTest::newRow("licence") << "LICENSE";
        QTest::newRow("tokens") << "special_tokens_map.json";
    }

    // The link leads to a private file.
    void aLinkOutOfTheFolderIsNotCarried()
    {
        QFETCH(QString, name);
        FilledModel m;
        const fs::path file = m.path / "models--a--b/snapshots/1" / name.toStdString();
        fs::create_directories(file.parent_path());
        put(m.path / "private", "[1]");
        fs::create_symlink(m.path / "private", file);
        fs::create_directory_symlink(m.path, m.path / "models--a--b/blobs"); // nor by that way

        const Status asked = checkCarriedFiles(file.parent_path());
        const Status saved = saveModel(
            m.path / "out", m.config, m.table, m.master, ExportType::F32, file.parent_path());

        QCOMPARE(asked.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(has(asked.message(), "leads out of the model folder"), asked.message().c_str());
        QVERIFY(has(asked.message(), name.toStdString()));
        QCOMPARE(saved.message(), asked.message());
        QVERIFY(!fs::exists(m.path / "out" / name.toStdString()));
    }

    void linksWithinTheFolderAndItsCacheAreCarried()
    {
        FilledModel m;
        const fs::path snapshot = m.path / "models--a--b/snapshots/1";
        fs::create_directories(snapshot / "more");
        fs::create_directories(m.path / "models--a--b/blobs");
        put(m.path / "models--a--b/blobs/0123", "[1]");
        put(snapshot / "more/licence", "free");
        fs::create_symlink("../../blobs/0123", snapshot / "generation_config.json");
        fs::create_symlink("more/licence", snapshot / "LICENSE");

        const Status asked = checkCarriedFiles(snapshot);
        const Status saved =
            saveModel(m.path / "out", m.config, m.table, m.master, ExportType::F32, snapshot);

        QVERIFY2(asked.ok(), asked.message().c_str());
        QVERIFY2(saved.ok(), saved.message().c_str());
        QCOMPARE(contents(m.path / "out/generation_config.json"), std::string("[1]"));
        QCOMPARE(contents(m.path / "out/LICENSE"), std::string("free"));
        QVERIFY(!fs::is_symlink(m.path / "out/LICENSE"));
    }

    void whatIsNamedJsonAndIsNoneIsNotCarried()
    {
        FilledModel m;
        fs::create_directories(m.path / "from");
        put(m.path / "from/added_tokens.json", "-----BEGIN OPENSSH PRIVATE KEY-----");

        const Status asked = checkCarriedFiles(m.path / "from");
        const Status saved = saveModel(
            m.path / "out", m.config, m.table, m.master, ExportType::F32, m.path / "from");

        QVERIFY2(has(asked.message(), "is not JSON"), asked.message().c_str());
        QCOMPARE(saved.message(), asked.message());
        QVERIFY(!fs::exists(m.path / "out/added_tokens.json"));
    }

    void tokenizerFileOfAScratchModelGetsTheNameLoadersLookFor()
    {
        FilledModel m;
        put(m.path / "my_own.spm", "pieces");

        QVERIFY(saveModel(
            m.path / "out", m.config, m.table, m.master, ExportType::F32, m.path / "my_own.spm")
                    .ok());

        QCOMPARE(contents(m.path / "out/tokenizer.model"), std::string("pieces"));
        QVERIFY(has(
            saveModel(m.path / "out", m.config, m.table, m.master, ExportType::F32, m.path / "none")
                .message(),
            "none"));
    }

    void sourceFolderIsNeverOverwritten()
    {
        FilledModel m;
        put(m.path / "model.safetensors", "precious");

        const Status status =
            saveModel(m.path, m.config, m.table, m.master, ExportType::F32, m.path);

        QVERIFY(has(status.message(), "overwrite"));
        QCOMPARE(contents(m.path / "model.safetensors"), std::string("precious"));
    }

    void publishedModelsComeBackByteForByte()
    {
        for (const char* name : {"models/stories260K", "models/babyllama"}) {
            const fs::path folder = sharedData() / name;
            if (!fs::is_directory(folder)) {
                qInfo("skipped: no shared data (MILLRACE_SHARED)");
                return;
            }
            expectTheSameModel(folder, {"config.json", "tokenizer.model"});
        }
    }

    void everyFamilyComesBackInItsOwnForm()
    {
        const char* source = std::getenv("MILLRACE_SOURCE");
        const fs::path goldens =
            fs::path(source == nullptr ? "." : source) / "tests/core/run/goldens";
        for (const char* name : {"llama3_rope", "mistral_window", "qwen2", "qwen3", "phi3"})
            expectTheSameModel(goldens / name, {"config.json"});
    }
};

MR_TEST(TestSaveModel)

} // namespace mr::test::tst_save_model

#include "tst_save_model.moc"
