// Model folders, sound or not, as a user sees them.

#include "core/model/model_folder.h"
#include "support/test_room.h"

#include <millrace/library.h>

#include <QTest>

#include <algorithm>

namespace mr::test::tst_model_info {

namespace {

constexpr const char* kBpe = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
constexpr const char* kUnigram =
    R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1]]}})";

struct Folder {
    Folder()
        : path(std::filesystem::path(dir.path().toStdString()) / "my-model")
    {
        std::filesystem::create_directories(path);
        put(path / "config.json", tinyConfig());
        const ParamTable table = buildParamTable(config(tinyConfig()));
        put(path / "model.safetensors", safetensors(tinyTensors(table)));
        put(path / "tokenizer.json", kBpe);
    }

    Result<ModelInfo> inspect() { return inspectModel(path.string()); }

    std::string problems()
    {
        std::string all;
        const ModelInfo info = inspect().value();
        for (const std::string& problem : info.problems)
            all += problem + "\n";
        return all;
    }

    QTemporaryDir dir;
    std::filesystem::path path;
};

} // namespace

class TestModelInfo : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void soundFolderHasItsFiguresAndNoProblem()
    {
        Folder f;

        Result<ModelInfo> info = inspectModel(f.path.string() + "/");

        QVERIFY2(info.ok(), info.status().message().c_str());
        QCOMPARE(f.problems(), std::string());
        QCOMPARE(info.value().name, std::string("my-model"));
        QCOMPARE(info.value().parameters, buildParamTable(config(tinyConfig())).parameters);
        QCOMPARE(info.value().tokenizerKind, std::string("bpe"));
        QCOMPARE(info.value().dtype, std::string("float32"));
        QCOMPARE(info.value().bytes, std::filesystem::file_size(f.path / "model.safetensors"));
    }

    void pathThatIsNoModelSaysWhatIsMissing()
    {
        QTemporaryDir dir;
        const std::string empty = dir.path().toStdString();

        QVERIFY(has(inspectModel(empty).status().message(), "it has no config.json"));
        QVERIFY(has(inspectModel(empty + "/none").status().message(), "no such folder"));
    }

    void tokenizerThatCannotBeUsedIsAProblem()
    {
        Folder f;
        std::filesystem::remove(f.path / "tokenizer.json");
        QVERIFY(has(f.problems(), "no tokenizer"));
        for (const char* name : {"tokenizer.model", "tokenizer.json"}) {
            put(f.path / name, "version https://git-lfs.github.com/spec/v1\n");
            QVERIFY(has(f.problems(), "git lfs pull"));
            QCOMPARE(f.inspect().value().tokenizerKind, std::string());
        }
    }

    void tokenizerWithMoreIdsThanTheModelHasRowsIsAProblem()
    {
        Folder f;
        put(f.path / "tokenizer.json",
            R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 17}, "merges": []}})");

        QVERIFY2(has(f.problems(), "the tokenizer has 18 tokens, the model only 17"),
            f.problems().c_str());
        QVERIFY(has(f.problems(), "tokenizer.json") || has(f.problems(), "my-model"));
    }

    void kindOfTheTokenizerIsWhatItsFileSays()
    {
        Folder f;
        put(f.path / "tokenizer.json", kUnigram);
        QCOMPARE(f.inspect().value().tokenizerKind, std::string("unigram"));
        put(f.path / "tokenizer.json", R"({"model": {"type": "WordPiece"}})");
        QVERIFY(has(f.problems(), "type \"WordPiece\" is not supported"));
    }

    void problemsOfWeightsAndConfigAreShownTogetherWithTheRest()
    {
        Folder f;
        std::filesystem::remove(f.path / "model.safetensors");
        QVERIFY(has(f.problems(), "no model.safetensors"));
        QCOMPARE(f.inspect().value().layers, std::int64_t{2});
        put(f.path / "config.json", "{");
        QVERIFY(has(f.problems(), "not JSON"));
    }

    void configAloneIsDescribed()
    {
        Folder f;

        Result<ModelInfo> info = inspectModel((f.path / "config.json").string());

        QVERIFY(info.ok());
        QVERIFY(info.value().parameters > 0);
        QVERIFY(has(info.value().problems.at(0), "config without weights"));
    }
};

MR_TEST(TestModelInfo)

} // namespace mr::test::tst_model_info

#include "tst_model_info.moc"
