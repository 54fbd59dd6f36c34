// Datasets, good or broken, as the New run page and `inspect` show them.

#include "core/tokenizer/small_bpe.h"
#include "core/tokenizer/small_tokenizer.h"
#include "support/test_room.h"

#include <millrace/library.h>

namespace mr::test::tst_dataset_info {

namespace {

DatasetInfo look(const std::string& path, const std::string& model = {}, int rows = 3)
{
    DataSource source;
    source.path = path;
    Result<DatasetInfo> info = inspectDataset(source, model, 32, rows);
    if (!info.ok())
        qFatal("%s", info.status().message().c_str());
    return std::move(info).value();
}

} // namespace

class TstDatasetInfo : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { trainTokenizer(m_folder); }
    void rowsAndColumnsAreKnownWithoutAModel();
    void previewsShowTheTrainedTokens();
    void problemsKeepWhatWasFound();
    void aModelWithoutATokenizerIsAProblem();
    void filesThatAreNotThereAreAStatus();
    void aRefusalComesWithTheColumnsToChooseFrom();
    void columnsThatAreNotUsedAreNamed();
    void whatMayBeMeantIsListed();
    void conversationsAskForATemplateOfAModelWithoutOne();
    void notesOfTheTokenizerAndEmptyThoughtsAreKnown();

private:
    Folder m_folder;
};

void TstDatasetInfo::rowsAndColumnsAreKnownWithoutAModel()
{
    const std::string text = "{\"id\":1,\"question\":\"a\",\"answer\":\"b\"}\n";
    const DatasetInfo info = look(m_folder.write("a.jsonl", text + text));

    QVERIFY(info.problems.empty());
    QCOMPARE(info.format, DataFormat::Jsonl);
    QCOMPARE(info.columns, (std::vector<std::string>{"id", "question", "answer"}));
    QCOMPARE(info.mapping.at("response"), std::string("answer"));
    QCOMPARE(info.rows, 2);
    QCOMPARE(info.tokens, 0);
    QCOMPARE(info.bytes, 2 * text.size());
}

void TstDatasetInfo::previewsShowTheTrainedTokens()
{
    const std::string path =
        m_folder.write("p.jsonl", "{\"prompt\":\"a\",\"response\":\"\"}\n{\"prompt\":\"The "
                                  "miller\",\"response\":\"counts\"}\n"
                                  "{\"prompt\":\"a\",\"response\":\"" +
                                      std::string(300, 'z') + "\"}\n");

    const DatasetInfo info = look(path, m_folder.path(), 10);

    QVERIFY(info.problems.empty());
    QCOMPARE(info.rows, 3);
    QCOMPARE(info.emptyRows, 1);
    QCOMPARE(info.cutRows, 1);
    QCOMPARE(info.sequences, 2);
    QCOMPARE(info.preview.size(), 2U);
    QCOMPARE(info.preview[0].row, 2);
    QVERIFY(!info.preview[0].cut && info.preview[1].cut);
    const std::vector<PreviewToken>& tokens = info.preview[0].tokens;
    QCOMPARE(tokens.front().text, std::string("<s>"));
    QCOMPARE(tokens.back().text, std::string("</s>"));
    QVERIFY(!tokens.front().trained && tokens.back().trained);
    std::int64_t trained = 0;
    for (const PreviewRow& row : info.preview)
        for (const PreviewToken& token : row.tokens)
            trained += token.trained ? 1 : 0;
    QCOMPARE(info.trainedTokens, trained);
    QCOMPARE(look(path, m_folder.path(), 1).preview.size(), 1U);
}

void TstDatasetInfo::problemsKeepWhatWasFound()
{
    const DatasetInfo broken =
        look(m_folder.write("b.jsonl", "{\"prompt\":\"a\",\"response\":\"b\"}\n{\"prompt\":\n"),
            m_folder.path());
    QCOMPARE(broken.problems.size(), 1U);
    QVERIFY(contains(broken.problems[0], "line 2: not valid JSON"));

    const DatasetInfo unclear = look(m_folder.write("c.csv", "x,y,z\n1,2,3\n"));
    QCOMPARE(unclear.format, DataFormat::Csv);
    QCOMPARE(unclear.columns.size(), 3U);
    QVERIFY(contains(unclear.problems.at(0), "--map"));

    const DatasetInfo nothing =
        look(m_folder.write("e.jsonl", "{\"prompt\":\"a\",\"response\":\"\"}\n"), m_folder.path());
    QVERIFY(contains(nothing.problems.at(0), "no row has anything to train on"));
    QVERIFY(contains(look(m_folder.write("z.txt", "")).problems.at(0), "is empty"));
}

void TstDatasetInfo::aModelWithoutATokenizerIsAProblem()
{
    const Folder empty;
    const DatasetInfo info =
        look(m_folder.write("m.jsonl", "{\"prompt\":\"a\",\"response\":\"b\"}\n"), empty.path());
    QCOMPARE(info.rows, 1);
    QVERIFY(contains(info.problems.at(0), "has no tokenizer.json, no tokenizer.model"));
}

void TstDatasetInfo::aRefusalComesWithTheColumnsToChooseFrom()
{
    const DatasetInfo unclear = look(m_folder.write("u.csv", "x,y,z\na,b,c\n"));
    QCOMPARE(unclear.refusal, DataRefusal::UnknownColumns);
    QCOMPARE(unclear.columns, (std::vector<std::string>{"x", "y", "z"}));
    const DatasetInfo preferences =
        look(m_folder.write("p.csv", "prompt,chosen,rejected\na,b,c\n"));
    QCOMPARE(preferences.refusal, DataRefusal::Preferences);
    const DatasetInfo late = look(
        m_folder.write("k.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\",\"label\":true}\n"
                                  "{\"prompt\":\"a\",\"completion\":\"b\",\"label\":false}\n"));
    QCOMPARE(late.refusal, DataRefusal::BadAnswers);
}

void TstDatasetInfo::columnsThatAreNotUsedAreNamed()
{
    const DatasetInfo info = look(m_folder.write(
        "n.jsonl", "{\"id\":1,\"question\":\"a\",\"answer\":\"b\",\"source\":\"c\"}\n"));
    QCOMPARE(info.unusedColumns, (std::vector<std::string>{"id", "source"}));
    QCOMPARE(info.layout, std::string("question and answer (GSM8K)"));
    QVERIFY(look(m_folder.write("t.txt", "a text\n")).unusedColumns.empty());
}

void TstDatasetInfo::whatMayBeMeantIsListed()
{
    const DatasetInfo info = look(
        m_folder.write("h.jsonl", "{\"question\":\"a\",\"answer\":\"b\",\"hint\":\"look up\"}\n"));
    QCOMPARE(info.refusal, DataRefusal::UnknownColumns);
    QVERIFY(!info.readings.empty());
    QCOMPARE(info.readings[0].mapping.at("prompt"), std::string("question"));
    QCOMPARE(info.readings[0].firstRow, std::string("\"a\" -> \"b\""));
    QCOMPARE(info.readings[0].firstTexts.at("prompt"), std::string("\"a\""));
    QCOMPARE(info.readings[0].firstTexts.at("response"), std::string("\"b\""));
}

void TstDatasetInfo::conversationsAskForATemplateOfAModelWithoutOne()
{
    DataSource source;
    source.path = m_folder.write("chat.jsonl",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"The miller\"},"
        "{\"role\":\"assistant\",\"content\":\"counts\"}]}\n");
    const DatasetInfo missing = look(source.path, m_folder.path());
    QCOMPARE(missing.refusal, DataRefusal::NoTemplate);
    QVERIFY(!contains(missing.problems.at(0), "line 1")); // no row is to blame
    source.columns["chat_template"] = "chatml";

    const DatasetInfo taught = inspectDataset(source, m_folder.path(), 128, 3).value();

    QVERIFY(taught.problems.empty());
    QCOMPARE(taught.chatTemplate, std::string("chatml"));
    QCOMPARE(taught.preview.at(0).tokens.front().text, std::string("<s>"));
    std::string lastTrained; // behind it is a line end, which nobody has to learn
    for (const PreviewToken& token : taught.preview.at(0).tokens)
        lastTrained = token.trained ? token.text : lastTrained;
    QCOMPARE(lastTrained, std::string("</s>"));
    source.columns["chat_template"] = "no-such-template";
    const DatasetInfo unknown = inspectDataset(source, m_folder.path(), 128, 3).value();
    QVERIFY(contains(unknown.problems.at(0), "want chatml, llama3 or a file"));
}

void TstDatasetInfo::filesThatAreNotThereAreAStatus()
{
    DataSource source;
    source.path = m_folder.path("absent.jsonl");
    Result<DatasetInfo> info = inspectDataset(source, {}, 32, 3);
    QVERIFY(!info.ok());
    QVERIFY(contains(info.status().message(), "absent.jsonl"));
    QVERIFY(info.status().kind() == ErrorKind::Io);
}

void TstDatasetInfo::notesOfTheTokenizerAndEmptyThoughtsAreKnown()
{
    const Folder model;
    writeSmallBpe(model);
    model.write("tekken.json", R"({"config": {"pattern": "[a-z]"}})");
    model.write("config.json", R"({"model_type": "llama"})");
    model.write("chat_template.jinja",
        "{% for m in messages %}{{ m.role + ': ' }}{% if m.role == 'assistant' %}"
        "{{ '<think></think>' }}{% endif %}{{ m.content + '</s>' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}");
    const DatasetInfo info =
        look(m_folder.write("thoughts.jsonl", R"({"prompt":"/no_think a","response":"b"})"
                                              "\n"),
            model.path());
    QVERIFY2(info.problems.empty(), info.problems.empty() ? "" : info.problems[0].c_str());
    QCOMPARE(info.answers, 1);
    QCOMPARE(info.emptyThoughts, 1);
    QCOMPARE(info.unreadSwitches, 1);
    QCOMPARE(info.notes.size(), std::size_t{1});
    QVERIFY(contains(info.notes[0], "cuts words in another way"));
}

MR_TEST(TstDatasetInfo)

} // namespace mr::test::tst_dataset_info

#include "tst_dataset_info.moc"
