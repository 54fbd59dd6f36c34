// `millrace models` as scripts see it, and names of models where a path is meant.

#include "integration/cli_rig.h"
#include "support/test_room.h"

#include <QCryptographicHash>
#include <QtTest>

#include <filesystem>

namespace mr::test::tst_cli_models {

namespace {

namespace fs = std::filesystem;

QString text(const std::string& path)
{
    return QString::fromStdString(path);
}

} // namespace

class TestCliModels : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void withoutModelsThePlacesAreTold();
    void everyModelIsAnObject();
    void peopleReadATable();
    void aFolderThatIsNotThereIsRefused();
    void aNameStandsForItsPath();
    void aNameOfSeveralModelsIsRefused();
    void aModelThatCannotBeUsedIsRefusedByItsName();
    void aBlobOfOllamaIsAskedAndNotTrained();

private:
    std::string file(const std::string& name) const { return m_rig.folder.path(name); }
    void put(const std::string& name, const std::string& content) const
    {
        fs::create_directories(fs::path(file(name)).parent_path());
        m_rig.folder.write(name, content);
    }
    void copyModel(const std::string& to) const
    {
        fs::create_directories(file(to));
        fs::copy(file(m_snapshot), file(to));
    }
    static QJsonObject named(const Finished& seen, const char* name)
    {
        for (const QJsonObject& each : seen.events("model"))
            if (each["name"].toString() == QLatin1String(name))
                return each;
        return {};
    }

    const std::string m_snapshot = "hf/hub/models--Mill--Tiny/snapshots/" + std::string(40, 'a');
    CliRig m_rig;
};

void TestCliModels::initTestCase()
{
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
        qunsetenv(name);
    qputenv("HOME", QByteArray::fromStdString(file("home")));
    qputenv("HF_HOME", QByteArray::fromStdString(file("hf")));
    qputenv("OLLAMA_MODELS", QByteArray::fromStdString(file("ollama")));
    qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(file("cache")));
}

// First of all tests: nothing is there yet.
void TestCliModels::withoutModelsThePlacesAreTold()
{
    for (const char* place : {"/usr/share/ollama/.ollama/models", "/var/lib/ollama/models"})
        if (fs::exists(place))
            QSKIP("this machine has models of its own");

    const Finished seen = CliRig::run({"models"});

    QCOMPARE(seen.code, 0);
    const std::string out = seen.out.toStdString();
    QVERIFY(contains(out, "No models were found. Looked at:"));
    QVERIFY(contains(out, file("hf/hub") + " (is not there)"));
    QVERIFY(contains(out, "--folder DIR"));
}

void TestCliModels::everyModelIsAnObject()
{
    put("hf/hub/models--Mill--Tiny/refs/main", std::string(40, 'a'));
    for (const char* name : {"config.json", "tokenizer.model", "model.safetensors"})
        put(m_snapshot + "/" + name, readFile(m_rig.model.path(name)));
    put(m_snapshot + "/README.md", "---\nlicense: mit\n---\n");
    copyModel("mine/deep/tiny");
    put("ollama/manifests/registry.ollama.ai/library/bad/1b", "{");

    const Finished seen = CliRig::run({"models", "--folder", text(file("mine")), "--json"});

    QCOMPARE(seen.code, 0);
    const QJsonObject tiny = named(seen, "Mill/Tiny");
    QCOMPARE(tiny["path"].toString(), text(file(m_snapshot)));
    QCOMPARE(tiny["source"].toString(), QString("Hugging Face"));
    QCOMPARE(tiny["use"].toString(), QString("train"));
    QCOMPARE(tiny["licence"].toString(), QString("mit"));
    QVERIFY(tiny["bytes"].toInteger() > 1000 && tiny["parameters"].toInteger() > 1000);
    QCOMPARE(named(seen, "deep/tiny")["source"].toString(), QString("folder"));
    QCOMPARE(named(seen, "bad:1b")["use"].toString(), QString("nothing"));
    QVERIFY(!named(seen, "bad:1b")["reason"].toString().isEmpty());
    const QJsonObject end = seen.events("end").at(0);
    QCOMPARE(end["models"].toInteger(), qint64(seen.events("model").size()));
    QVERIFY(!end["places"].toArray().isEmpty());
}

void TestCliModels::peopleReadATable()
{
    const Finished seen = CliRig::run({"models"});

    const std::string out = seen.out.toStdString();
    QVERIFY(contains(out, "Hugging Face\n  Mill/Tiny "));
    QVERIFY(contains(out, "\n      " + file(m_snapshot) + "\n"));
    QVERIFY(contains(out, "Ollama\n  bad:1b "));
    QVERIFY(contains(out, "on the disk"));
}

void TestCliModels::aFolderThatIsNotThereIsRefused()
{
    const Finished seen = CliRig::run({"models", "--folder", text(file("none"))});

    QCOMPARE(seen.code, 2);
    QVERIFY(seen.says("none: there is no such folder"));
}

void TestCliModels::aNameStandsForItsPath()
{
    const Finished seen = CliRig::run({"inspect", "Mill/Tiny", "--json"});
    QVERIFY2(seen.code == 0, seen.errors.constData());
    QCOMPARE(seen.lines().at(0)["kind"].toString(), QString("model"));

    const Finished said = CliRig::run({"generate", "--model", "Mill/Tiny", "--prompt", "The",
        "--text", "--greedy", "--max-tokens", "2", "--device", "cpu", "--json"});
    QVERIFY2(said.code == 0, said.errors.constData());

    QStringList train = m_rig.train("run", words("--steps 1"));
    train[train.indexOf("--model") + 1] = "Mill/Tiny";
    const Finished run = CliRig::run(train);
    QVERIFY2(run.code == 0, run.errors.constData());
    QVERIFY(contains(readFile(file("run/run.json")), file(m_snapshot)));

    const Finished none = CliRig::run({"inspect", "Mill/None"});
    QCOMPARE(none.code, 2);
    QVERIFY(none.says("Mill/None: does not exist"));
}

void TestCliModels::aNameOfSeveralModelsIsRefused()
{
    copyModel("home/.lmstudio/models/Mill/Tiny");

    const Finished seen = CliRig::run({"inspect", "Mill/Tiny"});

    QCOMPARE(seen.code, 2);
    QVERIFY(seen.says("names several models"));
    QVERIFY(seen.says(file(m_snapshot)));
    QVERIFY(seen.says(file("home/.lmstudio/models/Mill/Tiny")));
    fs::remove_all(file("home/.lmstudio"));
}

void TestCliModels::aModelThatCannotBeUsedIsRefusedByItsName()
{
    const Finished seen = CliRig::run({"generate", "--model", "bad:1b", "--prompt", "x"});

    QCOMPARE(seen.code, 2);
    QVERIFY(seen.says("\"bad:1b\" is on this machine and cannot be used: "));
}

void TestCliModels::aBlobOfOllamaIsAskedAndNotTrained()
{
    const Finished made = CliRig::run({"export", text(m_rig.model.path()), "--to", "gguf", "--out",
        text(file("tiny.gguf")), "--precision", "f32", "--check", "weights", "--device", "cpu"});
    QVERIFY2(made.code == 0, made.errors.constData());
    const std::string bytes = readFile(file("tiny.gguf"));
    const std::string hash =
        QCryptographicHash::hash(QByteArray::fromStdString(bytes), QCryptographicHash::Sha256)
            .toHex()
            .toStdString();
    put("ollama/blobs/sha256-" + hash, bytes);
    put("ollama/manifests/registry.ollama.ai/library/tiny/1b",
        R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)" +
            hash + R"(", "size": )" + std::to_string(bytes.size()) + "}]}");

    const QJsonObject tiny = named(CliRig::run({"models", "--json"}), "tiny:1b");
    QCOMPARE(tiny["use"].toString(), QString("adapter"));
    const Finished seen = CliRig::run({"inspect", tiny["path"].toString(), "--json"});
    QVERIFY2(seen.code == 0, seen.errors.constData());
    const Finished said = CliRig::run({"generate", "--model", "tiny:1b", "--prompt", "The",
        "--text", "--greedy", "--max-tokens", "2", "--device", "cpu", "--json"});
    QVERIFY2(said.code == 0, said.errors.constData());
    QStringList train = m_rig.train("refused", words("--steps 1"));
    train[train.indexOf("--model") + 1] = "tiny:1b";
    const Finished run = CliRig::run(train);
    QCOMPARE(run.code, 2);
    QVERIFY(run.says("the weights of a GGUF file are not trained"));
}

MR_TEST(TestCliModels)

} // namespace mr::test::tst_cli_models

#include "tst_cli_models.moc"
