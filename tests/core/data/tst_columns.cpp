// Which column is the prompt, which the response: names, shapes, --map, refusals.

#include "core/data/columns.h"
#include "core/data/data_files.h"
#include "core/data/untrainable.h"

using namespace mr;
using namespace mr::test;

namespace {

using Map = std::map<std::string, std::string>;

std::vector<ColumnFacts> texts(const std::vector<std::string>& names)
{
    std::vector<ColumnFacts> out;
    for (const std::string& name : names)
        out.push_back({name});
    return out;
}

Map chosen(const std::vector<ColumnFacts>& facts, const Map& asked = {})
{
    const DataSource source{"x.jsonl", DataFormat::Auto, asked};
    Result<ColumnMap> map = chooseColumns(source, facts);
    return map.ok() ? map.value().asMap() : Map{{"error", map.status().message()}};
}

std::string refusal(const std::vector<ColumnFacts>& facts, const Map& asked = {})
{
    return chosen(facts, asked)["error"];
}

} // namespace

class TstColumns : public QObject
{
    Q_OBJECT

private slots:
    void knownNamesArePairs();
    void unknownNamesArePairedByShape();
    void mapsOverrideNames();
    void mapsThatCannotBeMeantAreRefused();
    void conversationsAreFoundByName();
    void unclearColumnsAreListed();
    void factsComeFromAllRowsSeen();
    void preferencesAreRefusedInEveryForm_data();
    void preferencesAreRefusedInEveryForm();
    void answersMarkedAsBadAreRefused();
    void mediaAreRefused();
    void refusalsSayWhatTheyAre();
    void columnsThatAreNotUsedAreNamed();
};

void TstColumns::knownNamesArePairs()
{
    QCOMPARE(chosen(texts({"id", "question", "answer"})),
        (Map{{"prompt", "question"}, {"response", "answer"}}));
    QCOMPARE(chosen(texts({"Instruction", "INPUT", "Output"})),
        (Map{{"prompt", "Instruction"}, {"input", "INPUT"}, {"response", "Output"}}));
    QCOMPARE(
        chosen(texts({"input", "target"})), (Map{{"prompt", "input"}, {"response", "target"}}));
    QCOMPARE(chosen(texts({"title", "text"})), (Map{{"text", "text"}}));
    QCOMPARE(chosen({{"question"}, {"answer", false, false}}), // numbers
        (Map{{"prompt", "question"}, {"response", "answer"}}));
    QCOMPARE(chosen(texts({"質問", "回答"})), (Map{{"prompt", "質問"}, {"response", "回答"}}));
}

void TstColumns::unknownNamesArePairedByShape()
{
    QCOMPARE(chosen(texts({"sentence_en", "sentence_ja"})),
        (Map{{"prompt", "sentence_en"}, {"response", "sentence_ja"}}));
    QCOMPARE(chosen({{"id", false, false}, {"left"}, {"right"}}),
        (Map{{"prompt", "left"}, {"response", "right"}}));
    QCOMPARE(chosen(texts({"line"})), (Map{{"text", "line"}}));
}

void TstColumns::mapsOverrideNames()
{
    const auto facts = texts({"question", "answer", "rationale"});
    QCOMPARE(chosen(facts, {{"response", "rationale"}}),
        (Map{{"prompt", "question"}, {"response", "rationale"}}));
    QCOMPARE(chosen(facts, {{"text", "rationale"}}), (Map{{"text", "rationale"}}));
    QCOMPARE(chosen({{"question"}, {"label", false, false}}, {{"response", "label"}}),
        (Map{{"prompt", "question"}, {"response", "label"}}));
}

void TstColumns::mapsThatCannotBeMeantAreRefused()
{
    const auto facts = texts({"question", "answer"});
    QVERIFY(contains(refusal(facts, {{"respond", "answer"}}), "not \"respond\""));
    QVERIFY(contains(refusal(facts, {{"response", "reply"}}),
        "the column \"reply\", which is not there; the columns are \"question\", \"answer\""));
    QVERIFY(contains(refusal(facts, {{"text", "answer"}, {"prompt", "question"}}), "stands alone"));
    QVERIFY(contains(refusal(facts, {{"prompt", "answer"}}), "the same column"));
}

void TstColumns::conversationsAreFoundByName()
{
    const ColumnFacts chat{"messages", false, true};
    QCOMPARE(chosen({chat}), (Map{{"messages", "messages"}}));
    QCOMPARE(chosen({{"talk", false, true}}, {{"messages", "talk"}}), (Map{{"messages", "talk"}}));
    const Map all{{"messages", "messages"}, {"tools", "tools"}, {"system", "system"}};
    const std::vector<ColumnFacts> full{chat, {"tools", false, true}, {"system"}};
    QCOMPARE(chosen(full), all);
    QCOMPARE(chosen(full, all), all);
    QVERIFY(contains(
        refusal({chat, {"chosen", false, true}, {"rejected", false, true}}), "holds preferences"));
    QVERIFY(
        contains(refusal({chat, {"question"}}, {{"messages", "messages"}, {"prompt", "question"}}),
            "stands alone"));
    QCOMPARE(
        chosen({chat, {"question"}, {"answer"}}, {{"prompt", "question"}, {"response", "answer"}}),
        (Map{{"prompt", "question"}, {"response", "answer"}}));
}

void TstColumns::unclearColumnsAreListed()
{
    const std::string message = refusal(texts({"one", "two", "three"}));
    QVERIFY(contains(message, "x.jsonl: cannot tell"));
    QVERIFY(contains(message, "\"one\", \"two\", \"three\""));
    QVERIFY(contains(message, "--map prompt="));
}

void TstColumns::factsComeFromAllRowsSeen()
{
    std::vector<ColumnFacts> facts;
    noteColumns({1, 1, {{"a", "x", CellKind::Text}, {"b", "", CellKind::Null}}}, facts);
    noteColumns({2, 2, {{"b", "1", CellKind::Number}, {"c", "", CellKind::Nested}}}, facts);

    QCOMPARE(facts.size(), 3U);
    QVERIFY(facts[0].text && !facts[1].text && !facts[2].text);
    QVERIFY(!facts[0].nested && !facts[1].nested && facts[2].nested);
}

void TstColumns::preferencesAreRefusedInEveryForm_data()
{
    QTest::addColumn<QStringList>("columns");
    QTest::addColumn<QString>("wayOut");
    QTest::newRow("two texts") << QStringList{"chosen", "rejected"} << "--map text=chosen";
    QTest::newRow("with a prompt")
        << QStringList{"prompt", "chosen", "rejected"} << "--map prompt=prompt,response=chosen";
    QTest::newRow("other names") << QStringList{"Question", "Chosen_Response", "Rejected_Response"}
                                 << "--map prompt=Question,response=Chosen_Response";
    QTest::newRow("with an answer beside")
        << QStringList{"instruction", "output", "rejected", "chosen"} << "response=chosen";
}

void TstColumns::preferencesAreRefusedInEveryForm()
{
    QFETCH(const QStringList, columns);
    QFETCH(const QString, wayOut);
    std::vector<std::string> names;
    for (const QString& column : columns)
        names.push_back(column.toStdString());

    const std::string message = refusal(texts(names));

    QVERIFY2(contains(message, "holds preferences"), message.c_str());
    QVERIFY2(contains(message, wayOut.toStdString()), message.c_str());
    QCOMPARE(chosen(texts({"prompt", "chosen", "rejected"}),
                 {{"prompt", "prompt"}, {"response", "chosen"}}),
        (Map{{"prompt", "prompt"}, {"response", "chosen"}}));
}

namespace {

std::vector<ColumnFacts> factsOf(const std::vector<Record>& records)
{
    std::vector<ColumnFacts> facts;
    for (const Record& record : records)
        noteColumns(record, facts);
    return facts;
}

Record judged(std::int64_t row, const char* label, CellKind kind = CellKind::Number)
{
    return {row, row,
        {{"prompt", "q", CellKind::Text}, {"completion", "a", CellKind::Text},
            {"label", label, kind}}};
}

Record shown(std::int64_t row, const char* prompt, const char* images)
{
    return {row, row,
        {{"prompt", prompt, CellKind::Text}, {"response", "a", CellKind::Text},
            {"images", images, CellKind::Nested}}};
}

} // namespace

void TstColumns::answersMarkedAsBadAreRefused()
{
    QVERIFY(contains(refusal(factsOf({judged(1, "true"), judged(2, "false")})), "marked as bad"));
    QVERIFY(contains(
        refusal(factsOf({judged(1, "True", CellKind::Text), judged(2, "False", CellKind::Text)})),
        "column \"label\" is false"));
    QVERIFY(contains(
        refusal(factsOf({judged(1, "false")}), {{"prompt", "prompt"}, {"response", "completion"}}),
        "marked as bad")); // naming the columns does not make them good answers
    const Map pair{{"prompt", "prompt"}, {"response", "completion"}};
    QCOMPARE(chosen(factsOf({judged(1, "true")})), pair);
    QCOMPARE(chosen(factsOf({judged(1, "0"), judged(2, "1")})), pair); // a class
    // One that comes after the rows that were looked at.
    const auto facts = factsOf({judged(1, "true")});
    const ColumnMap map = chooseColumns({"x.jsonl", DataFormat::Auto, {}}, facts).value();
    QVERIFY(refuseRow(map, judged(200, "true")).ok());
    QVERIFY(contains(refuseRow(map, judged(201, "false")).message(), "row 201 is marked as a bad"));
}

void TstColumns::mediaAreRefused()
{
    QVERIFY(contains(refusal(factsOf({shown(1, "q", R"(["a.jpg"])")})), "column \"images\""));
    const auto facts = factsOf({shown(1, "q", "[]")}); // as mixed sets have it
    const ColumnMap map = chooseColumns({"x.jsonl", DataFormat::Auto, {}}, facts).value();
    const auto refused = [&](const char* prompt, const char* images) {
        return refuseRow(map, shown(7, prompt, images)).message();
    };
    QVERIFY(contains(refused("q", R"(["a.jpg"])"), "row 7 comes with pictures"));
    QVERIFY(contains(refused("<image>Who are they?", "[]"), "holds \"<image>\""));
    QVERIFY(contains(refused("What is this?\n<image>", "[]"), "holds \"<image>\""));
    QVERIFY(refused("Write a feed: <item><image>x</image></item>.", "[]").empty());
    ColumnMap chat;
    chat.messages = "messages";
    const auto said = [&](const char* messages) {
        return refuseRow(chat, {3, 3, {{"messages", messages, CellKind::Nested}}}).message();
    };
    QVERIFY(contains(said(R"([{"role":"user","content":"<image>\nWhat?"}])"), "\"<image>\""));
    QVERIFY(contains(said(R"([{"role":"user","content":"What? <audio>"}])"), "\"<audio>\""));
    QVERIFY(said(R"([{"role":"user","content":"Is \"<image>\" a tag?"}])").empty());
}

void TstColumns::refusalsSayWhatTheyAre()
{
    const auto kind = [](const std::vector<ColumnFacts>& facts) {
        DataRefusal refusal = DataRefusal::None;
        (void)chooseColumns({"x.jsonl", DataFormat::Auto, {}}, facts, &refusal).ok();
        return refusal;
    };
    QCOMPARE(kind(texts({"one", "two", "three"})), DataRefusal::UnknownColumns);
    QCOMPARE(kind(texts({"chosen", "rejected"})), DataRefusal::Preferences);
    QCOMPARE(kind(factsOf({judged(1, "false")})), DataRefusal::BadAnswers);
    QCOMPARE(kind(factsOf({shown(1, "q", R"(["a.jpg"])")})), DataRefusal::Media);
    QCOMPARE(kind(texts({"question", "answer"})), DataRefusal::None);
}

void TstColumns::columnsThatAreNotUsedAreNamed()
{
    const auto facts = texts({"id", "question", "answer", "source"});
    const DataSource source{"x.jsonl", DataFormat::Auto, {}};

    const ColumnMap map = chooseColumns(source, facts).value();

    QCOMPARE(unusedColumns(facts, map), (std::vector<std::string>{"id", "source"}));
}

QTEST_APPLESS_MAIN(TstColumns)
#include "tst_columns.moc"
