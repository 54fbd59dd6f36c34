// `millrace export --to gguf` as scripts see it, and GGUF files where a model is asked for.

#include "integration/cli_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <filesystem>

namespace mr::test::tst_cli_export {

namespace {

namespace fs = std::filesystem;

// `arguments` with another value of an option that they have.
QStringList with(QStringList arguments, const char* option, const QString& value)
{
    arguments[arguments.indexOf(QLatin1String(option)) + 1] = value;
    return arguments;
}

QString text(const std::string& path)
{
    return QString::fromStdString(path);
}

} // namespace

class TestCliExport : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void aModelBecomesAFileThatAnswersAsItDoes();
    void anAdapterGoesIntoTheFile();
    void aFileIsLookedAtAndNotTrained();
    void anAdapterIsTrainedBesideAFile();
    void everyFormIsReadAgain();
    void ollamaGetsAFolder();
    void wrongInputLeavesNothing_data();
    void wrongInputLeavesNothing();

private:
    std::string file(const std::string& name) const { return m_rig.folder.path(name); }
    Finished exportTo(const std::string& from, const std::string& out, const QStringList& more = {})
    {
        return CliRig::run(QStringList{"export", text(from), "--to", "gguf", "--out", text(out),
                               "--device", "cpu", "--json"} +
                           more);
    }
    Finished ask(const std::string& model)
    {
        return CliRig::run({"generate", "--model", text(model), "--prompt", "The miller", "--text",
            "--greedy", "--max-tokens", "12", "--device", "cpu", "--json"});
    }

    CliRig m_rig;
};

void TestCliExport::initTestCase()
{
    qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(file("cache")));
}

void TestCliExport::aModelBecomesAFileThatAnswersAsItDoes()
{
    const Finished done = exportTo(m_rig.model.path(), file("model.gguf"), {"--precision", "f32"});
    QVERIFY2(done.code == 0, done.errors.constData());
    const QJsonObject said = done.lines().at(0);
    QCOMPARE(said["path"].toString(), text(file("model.gguf")));
    QVERIFY(said["passed"].toBool());

    const QJsonObject kept =
        QJsonDocument::fromJson(QByteArray::fromStdString(readFile(file("model.gguf.check.json"))))
            .object();
    QVERIFY(kept["passed"].toBool());
    QCOMPARE(kept["asked"]["texts"].toInt(), 200);
    QVERIFY(kept["asked"]["tokens"].toInt() > 50);
    QCOMPARE(kept["asked"]["same_tokens"].toInt(), kept["asked"]["tokens"].toInt());
    QCOMPARE(kept["weights"]["F32"]["largest_error"].toDouble(), 0.0);

    const Finished original = ask(m_rig.model.path());
    const Finished exported = ask(file("model.gguf"));
    QVERIFY2(exported.code == 0, exported.errors.constData());
    QCOMPARE(exported.lines().at(0)["ids"].toArray(), original.lines().at(0)["ids"].toArray());
    QCOMPARE(exported.lines().at(0)["ids"].toArray().size(), 12);
}

void TestCliExport::anAdapterGoesIntoTheFile()
{
    const Finished trained = CliRig::run(with(
        m_rig.train("run", {"--method", "lora", "--rank", "8", "--steps", "20", "--device", "cpu"}),
        "--lr", "0.05"));
    QVERIFY2(trained.code == 0, trained.errors.constData());
    const Finished done = exportTo(file("run"), file("run.gguf"), {"--precision", "f32"});
    QVERIFY2(done.code == 0, done.errors.constData());
    const auto own = ask(file("run")).lines().at(0)["ids"].toArray();
    QCOMPARE(ask(file("run.gguf")).lines().at(0)["ids"].toArray(), own);
    QVERIFY(ask(m_rig.model.path()).lines().at(0)["ids"].toArray() != own);

    const Finished shown = CliRig::run({"runs", "show", "1", "--db", m_rig.database(), "--json"});
    QVERIFY2(shown.code == 0, shown.errors.constData());
    const QJsonArray exports = shown.lines().at(0)["exports"].toArray();
    QCOMPARE(exports.size(), 1);
    const QJsonObject entry = exports[0].toObject();
    QCOMPARE(entry["form"].toString(), QStringLiteral("gguf"));
    QCOMPARE(entry["path"].toString(), text(file("run.gguf")));
    QVERIFY(entry["passed"].toBool());
    QCOMPARE(entry["facts"], done.lines().at(0)["facts"]);
}

void TestCliExport::aFileIsLookedAtAndNotTrained()
{
    QVERIFY(exportTo(m_rig.model.path(), file("q8.gguf"), {"--precision", "q8_0"}).code == 0);
    const Finished seen = CliRig::run({"inspect", text(file("q8.gguf")), "--json"});
    QVERIFY2(seen.code == 0, seen.errors.constData());
    const QJsonObject model = seen.lines().at(0);
    QCOMPARE(model["kind"].toString(), QStringLiteral("model"));
    QCOMPARE(model["architecture"].toString(), QStringLiteral("LlamaForCausalLM"));
    QCOMPARE(model["tokenizer"].toString(), QStringLiteral("sentencepiece"));

    const QStringList words{"tokenize", "--text", "The miller counts 7 sacks.", "--model"};
    QCOMPARE(CliRig::run(words + QStringList{text(file("q8.gguf"))}).out,
        CliRig::run(words + QStringList{text(m_rig.model.path())}).out);

    const Finished refused = CliRig::run(
        with(m_rig.train("never", {"--device", "cpu"}), "--model", text(file("q8.gguf"))));
    QVERIFY(refused.code != 0);
    QVERIFY2(refused.says("the weights of a GGUF file are not trained; train an adapter"),
        refused.errors.constData());
    QVERIFY(!fs::exists(file("never")));
}

// An adapter beside a file in F32 is the one beside the model that the file was made of.
void TestCliExport::anAdapterIsTrainedBesideAFile()
{
    QVERIFY(exportTo(m_rig.model.path(), file("base.gguf"), {"--precision", "f32"}).code == 0);
    const auto train = [&](const char* name, const std::string& model) {
        const QStringList run = m_rig.train(
            name, {"--method", "lora", "--rank", "4", "--steps", "6", "--device", "cpu"});
        return CliRig::run(with(with(run, "--lr", "0.05"), "--model", text(model)));
    };
    const Finished trained = train("beside", file("base.gguf"));
    QVERIFY2(trained.code == 0, trained.errors.constData());
    QVERIFY(train("own", m_rig.model.path()).code == 0);
    const std::string weights = "/adapter/adapter_model.safetensors";
    QVERIFY(!readFile(file("own") + weights).empty());
    QVERIFY(readFile(file("own") + weights) == readFile(file("beside") + weights));
    const auto answer = ask(file("own")).lines().at(0)["ids"].toArray();
    QCOMPARE(ask(file("beside")).lines().at(0)["ids"].toArray(), answer);
    const Finished merged = CliRig::run({"export", text(file("beside")), "--to", "merged",
        "--precision", "fp32", "--out", text(file("merged")), "--json"});
    QVERIFY2(merged.code == 0, merged.errors.constData());
    QCOMPARE(ask(file("merged")).lines().at(0)["ids"].toArray(), answer);
    const Finished resumed = CliRig::run({"resume", text(file("beside"))});
    QVERIFY2(resumed.says("has done all of its 6 steps"), resumed.errors.constData());
}

void TestCliExport::everyFormIsReadAgain()
{
    const QStringList run = with(m_rig.train("forms", {"--method", "lora", "--rank", "4", "--steps",
                                                          "20", "--device", "cpu"}),
        "--lr", "0.05");
    QVERIFY(CliRig::run(run).code == 0);
    const auto own = ask(file("forms")).lines().at(0)["ids"].toArray();
    const auto write = [&](const char* form, const std::string& out) {
        return CliRig::run(
            {"export", text(file("forms")), "--to", form, "--out", text(file(out)), "--json"});
    };
    for (const char* form : {"safetensors", "merged", "peft", "gguf-adapter"}) {
        const Finished done = write(form, std::string("form-") + form);
        QVERIFY2(done.code == 0, done.errors.constData());
    }
    QCOMPARE(ask(file("form-safetensors")).lines().at(0)["ids"].toArray(), own);
    QCOMPARE(ask(file("form-merged")).lines().at(0)["ids"].toArray(), own);
    QCOMPARE(ask(file("form-peft")).lines().at(0)["ids"].toArray(), own);
    const Finished unknown = write("onnx", "form-none");
    QVERIFY(unknown.code == 2 && unknown.says("--to onnx is not known; use one of: safetensors"));
    const Finished plain = CliRig::run(
        {"export", text(m_rig.model.path()), "--to", "peft", "--out", text(file("form-none"))});
    QVERIFY(plain.code == 2 && plain.says("has no adapter; export it --to safetensors"));
    QVERIFY(!fs::exists(file("form-none")));
}

void TestCliExport::ollamaGetsAFolder()
{
    fs::copy(m_rig.model.path(), file("chatty"), fs::copy_options::recursive);
    m_rig.folder.write("chatty/chat_template.jinja",
        "{% for m in messages %}<s>{{ m.role }}\n{{ m.content }}</s>{% endfor %}"
        "{% if add_generation_prompt %}<s>assistant\n{% endif %}");
    m_rig.folder.write("chatty/generation_config.json", R"({"temperature": 0.6})");

    const Finished done = CliRig::run({"export", text(file("chatty")), "--to", "ollama", "--out",
        text(file("ollama")), "--precision", "f32", "--device", "cpu", "--json"});

    QVERIFY2(done.code == 0, done.errors.constData());
    QVERIFY(done.lines().at(0)["passed"].toBool());
    QVERIFY(
        fs::exists(file("ollama/model.gguf")) && fs::exists(file("ollama/model.gguf.check.json")));
    const std::string modelfile = readFile(file("ollama/Modelfile"));
    for (const char* line :
        {"FROM ./model.gguf\n", "TEMPLATE \"\"\"{{ range $i, $m := .Messages }}",
            "PARAMETER stop \"</s>\"\n", "PARAMETER temperature 0.6\n"})
        QVERIFY2(contains(modelfile, line), modelfile.c_str());
    QVERIFY(!fs::exists(file("ollama.failed")) && !fs::exists(file(".ollama.failed.part")));
}

void TestCliExport::wrongInputLeavesNothing_data()
{
    QTest::addColumn<QStringList>("more");
    QTest::addColumn<QString>("words");
    QTest::newRow("type") << QStringList{"--precision", "q3_k"}
                          << "--to gguf has no type q3_k; use auto, q8_0";
    QTest::newRow("check") << QStringList{"--check", "no"} << "--check no is not known";
    QTest::newRow("base") << QStringList{"--base", "original"} << "has no adapter; leave base out";
}

void TestCliExport::wrongInputLeavesNothing()
{
    QFETCH(QStringList, more);
    QFETCH(QString, words);
    const Finished done = exportTo(m_rig.model.path(), file("none.gguf"), more);
    QVERIFY(done.code != 0);
    QVERIFY2(contains((done.errors + done.out).toStdString(), words.toStdString()),
        (done.errors + done.out).constData());
    for (const auto& entry : fs::directory_iterator(m_rig.folder.path()))
        QVERIFY(entry.path().filename().string().find("none") == std::string::npos);
}

MR_TEST(TestCliExport)

} // namespace mr::test::tst_cli_export

#include "tst_cli_export.moc"
