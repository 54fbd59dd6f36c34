#include "core/data/data_files.h"
#include "core/hub/hub_choice.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_hub_choice {

class TestHubChoice : public QObject
{
    Q_OBJECT

    static std::vector<HubFile> filesOf(const QString& paths)
    {
        std::vector<HubFile> files;
        for (const QString& path : paths.split(QLatin1Char(' ')))
            files.push_back({path.toStdString(), 7, {}, false});
        return files;
    }

    static QString joined(const std::vector<HubFile>& files)
    {
        QStringList paths;
        for (const HubFile& file : files)
            paths << QString::fromStdString(file.path);
        return paths.join(QLatin1Char(' '));
    }

private Q_SLOTS:
    void modelsAreChosen_data()
    {
        QTest::addColumn<QString>("files");
        QTest::addColumn<QString>("chosen");
        QTest::newRow("usual")
            << "config.json tokenizer.json model.safetensors README.md LICENSE chat_template.jinja"
            << "config.json tokenizer.json model.safetensors README.md LICENSE chat_template.jinja";
        QTest::newRow("other formats")
            << "model.safetensors pytorch_model.bin pytorch_model.bin.index.json tf_model.h5 "
               "a.onnx "
               "original/consolidated.00.pth flax_model.msgpack onnx/config.json x.gguf"
            << "model.safetensors";
        QTest::newRow("programs") << "model.safetensors modeling_x.py a.PY run.sh"
                                  << "model.safetensors";
        QTest::newRow("the same weights twice")
            << "consolidated.safetensors model-00001-of-00002.safetensors "
               "model.safetensors.index.json consolidated.safetensors.index.json"
            << "model-00001-of-00002.safetensors model.safetensors.index.json";
        QTest::newRow("one copy alone") << "consolidated.safetensors params.json"
                                        << "consolidated.safetensors params.json";
        QTest::newRow("tokenizers") << "model.safetensors merges.txt vocab.txt notes.txt "
                                       "tokenizer.model additional_chat_templates/tool.jinja"
                                    << "model.safetensors merges.txt vocab.txt tokenizer.model "
                                       "additional_chat_templates/tool.jinja";
        QTest::newRow("a tokenizer alone") << "tokenizer.json README.md"
                                           << "tokenizer.json README.md";
    }

    void modelsAreChosen()
    {
        QFETCH(QString, files);
        QFETCH(QString, chosen);
        const auto choice = chooseHubFiles({}, filesOf(files));
        QVERIFY2(choice.ok(), choice.status().message().c_str());
        QCOMPARE(joined(Result(choice).value().files), chosen);
    }

    void whatIsLeftOutHasAReason()
    {
        const HubChoice choice =
            chooseHubFiles({}, filesOf("a.safetensors a.bin a.py b/c.json x.png .gitattributes"))
                .value();
        QStringList reasons;
        for (const HubLeftOut& left : choice.leftOut)
            reasons << QString::fromStdString(left.path + ": " + left.reason);
        QCOMPARE(reasons.join(QStringLiteral("; ")),
            QStringLiteral("a.bin: weights in another format; a.py: a script or program; b/c.json: "
                           "in a folder of its own; x.png: nothing that training needs"));
    }

    void patternsDecide()
    {
        HubRequest request;
        request.include = {"*.gguf", "docs/*"};
        request.exclude = {"*Q4*"};
        const HubChoice choice =
            chooseHubFiles(request, filesOf("a-Q4.gguf a-Q8.gguf docs/x/y.txt docs/z.py b.json"))
                .value();
        QCOMPARE(joined(choice.files), QStringLiteral("a-Q8.gguf docs/x/y.txt"));

        request.include = {"*.safetensor"};
        const Status wrong = chooseHubFiles(request, filesOf("a.safetensors")).status();
        QVERIFY(contains(wrong.message(), "--include *.safetensor matches no file"));
        QVERIFY(contains(wrong.message(), "\n  a.safetensors (7 B)"));
    }

    void filesOfGgufWantAName()
    {
        const Status status = chooseHubFiles({}, filesOf("a-Q4.gguf a-Q8.gguf README.md")).status();
        QVERIFY(contains(status.message(), "name the one that you want with --include"));
        QVERIFY(contains(status.message(), "\n  a-Q4.gguf (7 B)\n  a-Q8.gguf (7 B)"));
    }

    void modelsWithoutSafetensorsAreRefused()
    {
        const Status status = chooseHubFiles({}, filesOf("config.json pytorch_model.bin")).status();
        QVERIFY(contains(status.message(), "has no weights in safetensors"));
        QVERIFY(contains(chooseHubFiles({}, {}).status().message(), "has no files"));
        QVERIFY(contains(chooseHubFiles({}, filesOf("a.png")).status().message(),
            "no file of  would be fetched"));
    }

    void datasetsAreChosen()
    {
        HubRequest request;
        request.kind = HubKind::Dataset;
        const HubChoice choice = chooseHubFiles(request,
            filesOf("data/train.jsonl x.parquet y.csv.gz z.json.zst load.py img/a.png README.md"))
                                     .value();
        QCOMPARE(joined(choice.files),
            QStringLiteral("data/train.jsonl x.parquet y.csv.gz z.json.zst README.md"));
    }

    void patternsMatch()
    {
        QVERIFY(matchesPattern("*", ""));
        QVERIFY(matchesPattern("*.json", "a/b.json"));
        QVERIFY(matchesPattern("a?c*", "abc"));
        QVERIFY(matchesPattern("*a*b*c", "xxaxxbbxxc"));
        QVERIFY(!matchesPattern("*.json", "a.jsonl"));
        QVERIFY(!matchesPattern("a", "ab"));
        QVERIFY(!matchesPattern("", "a"));
        const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
        QVERIFY(!matchesPattern(stars, std::string(1000, 'a'))); // takes no time
    }
};

MR_TEST(TestHubChoice)

} // namespace mr::test::tst_hub_choice

#include "tst_hub_choice.moc"
